//! Waits behind a call until replicas or disks have it.

use std::time::Duration;

use redis::{Cmd, Value};

use crate::error::{Error, ErrorKind, Result};
use crate::queue::Queue;

const MAX_SERVERS: u32 = 1000;

/// A wait behind a call: see [`Queue::durable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Durability {
    disk: bool,
    replicas: u32,
    timeout: Duration,
}

/// A call was done, and fewer servers have it than it was to wait for: the kind of error is [`ErrorKind::NotDurable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotDurable {
    /// How many servers it was to wait for: replicas, or disks.
    pub wanted: u32,
    /// How many have it; `None` if that is unknown: the connection broke, or the server refused to wait.
    pub reached: Option<u32>,
    /// Of a call on one item: true if it added or completed that item. Of others the [`PartialError`](crate::PartialError) has the answers.
    pub took_effect: Option<bool>,
}

impl Durability {
    /// Waits until that many replicas (1 to 1000) have the call in memory, at most for a time, at least 1 ms.
    pub fn replicas(count: u32, timeout: Duration) -> Durability {
        Durability { disk: false, replicas: count, timeout }
    }

    /// Waits until the primary has the call on disk, and that many replicas (0 to 1000) on theirs. The server is Redis or Valkey 7.2 or
    /// later, with an append-only file.
    pub fn disk(timeout: Duration, replicas: u32) -> Durability {
        Durability { disk: true, replicas, timeout }
    }

    fn check(&self) -> Result<()> {
        let least = u32::from(!self.disk);
        if !(least..=MAX_SERVERS).contains(&self.replicas) {
            return Err(Error::refused(format!("a number of replicas is {least} to {MAX_SERVERS}, not {}", self.replicas)));
        }
        if self.timeout < Duration::from_millis(1) {
            let why = "a timeout of replicas or a disk is at least 1 ms: the server would wait without limit";
            return Err(Error::refused(why));
        }
        Ok(())
    }

    pub(crate) fn name(&self) -> &'static str {
        if self.disk { "WAITAOF" } else { "WAIT" }
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    fn wanted(&self) -> u32 {
        u32::from(self.disk) + self.replicas
    }

    pub(crate) fn command(&self) -> Cmd {
        let mut command = redis::cmd(self.name());
        if self.disk {
            command.arg(1);
        }
        command.arg(self.replicas).arg(u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX));
        command
    }

    /// The same command, which shows at once whether the server can wait so.
    pub(crate) fn probe(&self) -> Cmd {
        let mut command = redis::cmd(self.name());
        let words: &[u32] = if self.disk { &[1, 0, 1] } else { &[0, 1] };
        command.arg(words);
        command
    }

    /// The error, if fewer servers have the call. Further replicas do not stand in for the primary.
    pub(crate) fn shortfall(&self, reply: Result<Value>) -> Option<Error> {
        let reached = reply.and_then(|reply| match reply {
            Value::Int(count) if !self.disk => Ok(count),
            Value::Array(counts) if self.disk => match counts.as_slice() {
                [Value::Int(local), Value::Int(replicas)] => Ok(local + i64::from(self.replicas).min(*replicas)),
                _ => Err(Error::bad_reply("it has another number of counts")),
            },
            _ => Err(Error::bad_reply("it is no count")),
        });
        let (reached, why) = match reached {
            Ok(count) if count >= i64::from(self.wanted()) => return None,
            Ok(count) => (u32::try_from(count).ok(), format!("{count} of {} have it after {:?}", self.wanted(), self.timeout)),
            Err(error) => (None, error.to_string()),
        };
        Some(Error::not_durable(NotDurable { wanted: self.wanted(), reached, took_effect: None }, &why))
    }

    /// What an error of the probe says of the server: a replica refuses to wait, and then the script says more.
    pub(crate) fn read_probe(&self, reply: Result<Value>) -> Result<bool> {
        let Err(error) = reply else { return Ok(true) };
        let text = error.to_string();
        if *error.kind() == ErrorKind::Connection {
            return Err(Error::unavailable(format!("not connected: {text}")));
        }
        if text.contains("replica instances") {
            return Ok(false);
        }
        if text.to_lowercase().contains("unknown command") {
            let why = format!("the server has no command {}, nothing was done: WAITAOF needs Redis or Valkey 7.2 or later", self.name());
            return Err(Error::no_durability(why));
        }
        if text.contains("appendonly") {
            let why = "the server keeps no append-only file, nothing was done: set appendonly yes, or use Durability::replicas";
            return Err(Error::no_durability(why));
        }
        Err(error)
    }
}

impl Queue {
    /// Returns the same queue with a wait behind each call that adds or completes. These return once the servers have the call, or with an
    /// error of kind [`ErrorKind::NotDurable`], which has their answers: the call was done, nothing is sent again (LQ-CLIENT-1), and later
    /// entries of a long list were not sent. Each such call uses a separate connection. A [`Worker`](crate::Worker) on it does not wait for its
    /// completions.
    pub fn durable(&self, durability: Durability) -> Result<Queue> {
        durability.check()?;
        Ok(self.with_durability(Some(durability)))
    }
}
