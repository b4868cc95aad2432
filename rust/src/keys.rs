//! The names of keys.

use crate::encoding::Words;
use crate::error::{Error, Result};
use crate::generated::scripts::KEY_PATTERN;

/// The SET of the queues that clients have used (LQ-REGISTRY-1).
pub(crate) const REGISTRY: &str = "leaseq:queues";

/// The names of the keys of a queue. Queues of one group share a hash slot (LQ-KEY-1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct QueueKeys {
    pub(crate) name: String,
    pub(crate) group: String,
    prefix: String,
    entry: String,
}

impl QueueKeys {
    pub(crate) fn new(name: &str, group: &str) -> Result<QueueKeys> {
        if !is_name(name) || !is_name(group) {
            return Err(Error::refused("the name of a queue or group has 1 to 100 of A-Z, a-z, 0-9, _, . and -"));
        }
        let prefix = KEY_PATTERN.replace("<group>", group).replace("<name>", name).replace("<key>", "");
        Ok(QueueKeys { name: name.into(), group: group.into(), prefix, entry: format!("{group}:{name}") })
    }

    pub(crate) fn key(&self, part: &str) -> Vec<u8> {
        [self.prefix.as_bytes(), part.as_bytes()].concat()
    }

    pub(crate) fn keys(&self, parts: &[&str]) -> Words {
        parts.iter().map(|part| self.key(part)).collect()
    }

    pub(crate) fn result_key(&self, id: &[u8]) -> Vec<u8> {
        [self.prefix.as_bytes(), b"result:", id].concat()
    }

    pub(crate) fn registry_entry(&self) -> &str {
        &self.entry
    }
}

/// LQ-KEY-2.
pub(crate) fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=100).contains(&name.len()) && name.bytes().all(allowed)
}

/// True for `<group>:<name>`.
pub(crate) fn is_registry_entry(entry: &str) -> bool {
    entry.split_once(':').is_some_and(|(group, name)| is_name(group) && is_name(name))
}

/// The hash tag of a key, which determines its slot.
pub(crate) fn group_of_key(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|byte| *byte == b'{') else { return b"" };
    let behind = &key[open + 1..];
    behind.iter().position(|byte| *byte == b'}').map_or(b"", |close| &behind[..close])
}
