//! Calls for a pipeline or a transaction of the application's own.

use std::collections::HashSet;

use redis::{Cmd, Value};

use crate::encoding::{Added, Words};
use crate::error::{Error, Result};
use crate::generated::codecs::read_add_reply;
use crate::item::NewItem;
use crate::queue::Queue;
use crate::requests;
use crate::script::Call;

/// Collects calls for a pipeline or a transaction of redis-rs. What a queue does around a call is left to the caller: splitting long lists,
/// reading the outcomes of items that died, choosing `complete_with`.
#[derive(Debug, Default)]
pub struct Pipeline {
    loaded: HashSet<&'static str>,
    commands: Vec<Cmd>,
}

impl Pipeline {
    /// An empty one.
    pub fn new() -> Pipeline {
        Pipeline::default()
    }

    /// Appends an add. [`added`] reads its reply.
    pub fn add(&mut self, queue: &Queue, items: &[NewItem]) -> Result<()> {
        let entries = items.iter().map(requests::item_args).collect::<Result<Vec<Words>>>()?;
        self.append(&requests::add(queue.keys(), entries));
        Ok(())
    }

    /// The first use of each script is sent whole: a NOSCRIPT would leave one call out in the middle (LQ-SCRIPT-3).
    fn append(&mut self, call: &Call) {
        let first = self.loaded.insert(call.script.name);
        self.commands.push(if first { call.by_source() } else { call.by_digest() });
    }

    /// The commands, in order, for a [`redis::Pipeline`].
    pub fn into_commands(self) -> Vec<Cmd> {
        self.commands
    }
}

/// Reads the reply to an add of a [`Pipeline`].
pub fn added(reply: Value) -> Result<Vec<Added>> {
    match reply.extract_error() {
        Ok(value) => read_add_reply(value),
        Err(error) => Err(Error::of_redis(&error).unwrap_or_else(|| Error::reply_lost("the reply did not come"))),
    }
}
