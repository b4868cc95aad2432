//! A Lua script: its digest, keys and source are those of the manifest.

use std::collections::BTreeMap;

use redis::RedisWrite;

use crate::encoding::Words;
use crate::generated::scripts;

pub(crate) struct Script {
    pub(crate) name: &'static str,
    pub(crate) sha1: &'static str,
    pub(crate) keys: &'static [&'static str],
    pub(crate) more_keys: &'static [(&'static str, &'static [&'static str])],
    pub(crate) source: &'static str,
}

impl Script {
    /// The keys behind the fixed ones, for each of `what`.
    pub(crate) fn keys_for_each(&self, what: &str) -> &'static [&'static str] {
        self.more_keys.iter().find(|(each, _)| *each == what).map_or(&[], |(_, keys)| keys)
    }
}

/// The SHA-1 digest of each script that this client sends, by name.
pub fn script_digests() -> BTreeMap<&'static str, &'static str> {
    scripts::ALL.iter().map(|each| (each.name, each.sha1)).collect()
}

/// A call of a script that has not been sent.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) script: &'static Script,
    pub(crate) keys: Words,
    pub(crate) args: Words,
}

impl Call {
    pub(crate) fn by_digest(&self) -> redis::Cmd {
        self.command("EVALSHA", self.script.sha1)
    }

    pub(crate) fn by_source(&self) -> redis::Cmd {
        self.command("EVAL", self.script.source)
    }

    fn command(&self, name: &str, script: &str) -> redis::Cmd {
        let words = self.keys.iter().chain(&self.args);
        let bytes = name.len() + script.len() + words.clone().map(Vec::len).sum::<usize>();
        let mut found = redis::Cmd::with_capacity(3 + self.keys.len() + self.args.len(), bytes);
        found.arg(name).arg(script).arg(self.keys.len());
        words.for_each(|each| found.write_arg(each));
        found
    }
}

/// A command of these words.
pub(crate) fn command(words: &[Vec<u8>]) -> redis::Cmd {
    let mut found = redis::Cmd::new();
    for each in words {
        found.arg(each.as_slice());
    }
    found
}
