//! Long lists, split into calls (LQ-CALL-8).

use redis::Value;

use crate::error::{ListResult, PartialError, Result};
use crate::generated::scripts::{MAX_ENTRIES, MAX_FOLLOW_UPS, MAX_TARGETS};
use crate::item::Completion;
use crate::queue::Queue;
use crate::requests::targets_of;
use crate::script::Call;

/// A call of a list, and how many entries it has.
pub(crate) struct Part {
    pub(crate) call: Call,
    pub(crate) count: usize,
}

/// Makes a part of each 256 entries. All are encoded before the first is sent.
pub(crate) fn parts<E>(entries: &[E], encode: impl Fn(&[E]) -> Result<Call>) -> Result<Vec<Part>> {
    let part = |chunk: &[E]| Ok(Part { call: encode(chunk)?, count: chunk.len() });
    entries.chunks(MAX_ENTRIES).map(part).collect()
}

/// Splits before the entry that does not fit; an entry is never split (LQ-CALL-11).
pub(crate) fn chunks_of_hand_offs(entries: &[Completion]) -> Vec<&[Completion]> {
    let mut found = Vec::new();
    let mut begin = 0;
    for end in 1..=entries.len() {
        if end - begin > 1 && !fits_in_call(&entries[begin..end]) {
            found.push(&entries[begin..end - 1]);
            begin = end - 1;
        }
    }
    if begin < entries.len() {
        found.push(&entries[begin..]);
    }
    found
}

fn fits_in_call(entries: &[Completion]) -> bool {
    let follow_ups: usize = entries.iter().map(|each| each.follow_ups.len()).sum();
    entries.len() <= MAX_ENTRIES && follow_ups <= MAX_FOLLOW_UPS && targets_of(entries).len() <= MAX_TARGETS
}

/// Adds the answers of a call to those before it, or makes the error with them (LQ-CLIENT-2).
pub(crate) fn collect<T: std::fmt::Debug>(mut answers: Vec<T>, count: usize, found: Result<Vec<T>>) -> ListResult<T> {
    match found {
        Ok(found) => {
            answers.extend(found);
            Ok(answers)
        }
        Err(cause) => Err(PartialError::new(answers, count, cause)),
    }
}

impl Queue {
    /// Makes one call after the other and returns an answer for each entry.
    pub(crate) async fn run_parts<T: std::fmt::Debug>(&self, parts: Vec<Part>, read: impl Fn(Value) -> Result<Vec<T>>) -> ListResult<T> {
        let mut answers = Vec::new();
        for part in parts {
            let found = self.pool().call(&part.call).await.and_then(&read);
            answers = collect(answers, part.count, found)?;
        }
        Ok(answers)
    }
}
