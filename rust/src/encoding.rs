//! How values are written and replies are read.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::Value;

use crate::error::{Error, Result};

/// Words of a command.
pub(crate) type Words = Vec<Vec<u8>>;

/// A name and a value that travel with an item beside its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The name, which matches `[A-Za-z0-9_.-]{1,100}`.
    pub name: String,
    /// The value.
    pub value: Vec<u8>,
}

/// What became of an item to add: its creation in microseconds since 1970 on the server's clock, 0 if the id existed, or -1 if
/// there was no room or, of a follow-up, if this call did not complete the item before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added(pub(crate) i64);

impl Added {
    /// True if this call added the item.
    pub fn is_new(self) -> bool {
        self.0 > 0
    }

    /// True if the id was there already, in whatever state.
    pub fn existed(self) -> bool {
        self.0 == 0
    }

    /// True if the queue was full or, of a follow-up, if this call did not complete the item before it.
    pub fn had_no_room(self) -> bool {
        self.0 < 0
    }

    /// When this call added the item.
    pub fn time(self) -> Option<SystemTime> {
        micro_time(self.0)
    }
}

/// A value as a word of a command.
pub(crate) trait Word {
    fn word(&self) -> Vec<u8>;
}

impl Word for i64 {
    fn word(&self) -> Vec<u8> {
        self.to_string().into_bytes()
    }
}

impl Word for usize {
    fn word(&self) -> Vec<u8> {
        self.to_string().into_bytes()
    }
}

impl Word for bool {
    fn word(&self) -> Vec<u8> {
        if *self { b"1".into() } else { b"0".into() }
    }
}

impl Word for Duration {
    /// The nearest whole millisecond (LQ-CALL-12).
    fn word(&self) -> Vec<u8> {
        nearest_ms(*self).to_string().into_bytes()
    }
}

impl Word for SystemTime {
    fn word(&self) -> Vec<u8> {
        match self.duration_since(UNIX_EPOCH) {
            Ok(after) => after.word(),
            Err(before) => format!("-{}", nearest_ms(before.duration())).into_bytes(),
        }
    }
}

impl Word for [u8] {
    fn word(&self) -> Vec<u8> {
        self.to_vec()
    }
}

impl Word for str {
    fn word(&self) -> Vec<u8> {
        self.into()
    }
}

pub(crate) fn nearest_ms(duration: Duration) -> u128 {
    (duration.as_nanos() + 500_000) / 1_000_000
}

/// Refuses a time above 0 that would become 0, where 0 has another meaning (LQ-CALL-12).
pub(crate) fn check_kept(duration: Option<Duration>, name: &str) -> Result<()> {
    match duration {
        Some(given) if !given.is_zero() && nearest_ms(given) == 0 => Err(Error::refused(format!("{name} is shorter than a millisecond"))),
        _ => Ok(()),
    }
}

/// The time of microseconds since 1970; 0 and less is none.
pub(crate) fn micro_time(micros: i64) -> Option<SystemTime> {
    (micros > 0).then(|| UNIX_EPOCH + Duration::from_micros(micros.unsigned_abs()))
}

/// Reads a flat reply, one element after the other.
pub(crate) struct Reply {
    rest: std::vec::IntoIter<Value>,
}

impl Reply {
    /// A reply that is an array.
    pub(crate) fn elements(reply: Value) -> Result<Reply> {
        match reply {
            Value::Array(all) => Ok(Reply { rest: all.into_iter() }),
            _ => Err(Error::bad_reply("no array")),
        }
    }

    /// A reply that is bare for one entry, and an array for several (LQ-CALL-4).
    pub(crate) fn answers(reply: Value) -> Result<Reply> {
        match reply {
            Value::Array(_) => Reply::elements(reply),
            bare => Ok(Reply { rest: vec![bare].into_iter() }),
        }
    }

    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn bad(&self, why: &str) -> Error {
        Error::bad_reply(why)
    }

    pub(crate) fn value(&mut self) -> Result<Value> {
        self.rest.next().ok_or_else(|| Error::bad_reply("it is too short"))
    }

    pub(crate) fn number(&mut self) -> Result<i64> {
        let value = self.value()?;
        number_of(&value).ok_or_else(|| Error::bad_reply("no integer"))
    }

    pub(crate) fn count(&mut self) -> Result<usize> {
        usize::try_from(self.number()?).map_err(|_| Error::bad_reply("a count is wrong"))
    }

    pub(crate) fn flag(&mut self) -> Result<bool> {
        Ok(self.number()? == 1)
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>> {
        bytes_of(self.value()?).ok_or_else(|| Error::bad_reply("no string"))
    }

    pub(crate) fn text(&mut self) -> Result<String> {
        String::from_utf8(self.bytes()?).map_err(|_| Error::bad_reply("no text"))
    }

    pub(crate) fn ms(&mut self) -> Result<Duration> {
        Ok(Duration::from_millis(self.number()?.max(0).unsigned_abs()))
    }

    pub(crate) fn time(&mut self) -> Result<Option<SystemTime>> {
        Ok(micro_time(self.number()?))
    }

    /// How long until something is due; -1, nothing is, becomes `None`.
    pub(crate) fn wait(&mut self) -> Result<Option<Duration>> {
        Ok(u64::try_from(self.number()?).ok().map(Duration::from_micros))
    }

    /// Names and numbers. A later protocol may have values of another type: they are skipped (LQ-READ-7).
    pub(crate) fn named(&mut self) -> Result<BTreeMap<String, i64>> {
        let mut found = BTreeMap::new();
        while self.remaining() >= 2 {
            let name = self.text()?;
            if let Some(number) = number_of(&self.value()?) {
                found.insert(name, number);
            }
        }
        Ok(found)
    }

    pub(crate) fn rows<T>(&mut self, count: usize, read: impl Fn(&mut Reply) -> Result<T>) -> Result<Vec<T>> {
        if count > self.remaining() {
            return Err(Error::bad_reply("a count is wrong"));
        }
        (0..count).map(|_| read(self)).collect()
    }

    pub(crate) fn counted<T>(&mut self, read: impl Fn(&mut Reply) -> Result<T>) -> Result<Vec<T>> {
        let count = self.count()?;
        self.rows(count, read)
    }
}

/// An integer; other types, also digits in a string, are none.
pub(crate) fn number_of(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

pub(crate) fn bytes_of(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.into_bytes()),
        Value::Okay => Some(b"OK".into()),
        _ => None,
    }
}

/// The strings of an array.
pub(crate) fn strings_of(value: Value) -> Result<Vec<Vec<u8>>> {
    let mut reply = Reply::elements(value)?;
    reply.rows(reply.remaining(), Reply::bytes)
}
