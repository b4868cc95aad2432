//! The calls of each script: keys and arguments. Nothing here sends.

use std::time::Duration;

use crate::encoding::Words;
use crate::error::Result;
use crate::generated::codecs::*;
use crate::generated::scripts::*;
use crate::item::{Completion, Extension, NewItem, Release};
use crate::keys::QueueKeys;
use crate::script::{Call, Script};

pub(crate) fn queue_call(script: &'static Script, keys: &QueueKeys, args: Words) -> Call {
    Call { script, keys: keys.keys(script.keys), args }
}

fn with_more(script: &'static Script, keys: &QueueKeys, args: Words, more: Words) -> Call {
    let mut call = queue_call(script, keys, args);
    call.keys.extend(more);
    call
}

/// A lease of one queue, or of several of one group (LQ-BLOCK-23).
pub(crate) fn lease(queues: &[&QueueKeys], count: usize, duration: Duration) -> Call {
    if let [only] = queues {
        return queue_call(&LEASE, only, encode_lease_arguments(count as i64, duration));
    }
    let parts = LEASE_ANY.keys_for_each("queue");
    let keys = queues.iter().flat_map(|each| each.keys(parts)).collect();
    let args = encode_lease_any_arguments(queues.len(), count as i64, duration);
    Call { script: &LEASE_ANY, keys, args }
}

pub(crate) fn item_args(item: &NewItem) -> Result<Words> {
    Ok(encode_add_entry(&item.id, &item.data, encode_add_options(&item.options)?))
}

pub(crate) fn add(keys: &QueueKeys, entries: Vec<Words>) -> Call {
    queue_call(&ADD, keys, encode_add_arguments(entries))
}

pub(crate) fn complete(keys: &QueueKeys, entries: &[Completion]) -> Result<Call> {
    Ok(queue_call(&COMPLETE, keys, encode_complete_arguments(simple_entries(entries)?)))
}

pub(crate) fn complete_and_lease(keys: &QueueKeys, entries: &[Completion], count: usize, duration: Duration) -> Result<Call> {
    let args = encode_complete_and_lease_arguments(count as i64, duration, simple_entries(entries)?);
    Ok(queue_call(&COMPLETE_AND_LEASE, keys, args))
}

fn simple_entries(entries: &[Completion]) -> Result<Vec<Words>> {
    entries.iter().map(|each| Ok(encode_complete_entry(&each.id, each.token, completion_options(each)?))).collect()
}

/// `keep` is sent with every result, and 0 keeps it as the item was added (LQ-CLIENT-7).
fn completion_options(entry: &Completion) -> Result<Words> {
    let mut options = entry.options.clone();
    if entry.keeps_outcome() && options.keep.is_none() {
        options.keep = Some(Duration::ZERO);
    }
    encode_complete_with_options(&options)
}

pub(crate) fn complete_with(keys: &QueueKeys, entries: &[Completion]) -> Result<Call> {
    let targets = targets_of(entries);
    let parts = COMPLETE_WITH.keys_for_each("target queue");
    let mut more: Words = targets.iter().flat_map(|each| each.keys(parts)).collect();
    let mut args = Vec::with_capacity(entries.len());
    for entry in entries {
        let mut follow_ups = Vec::with_capacity(entry.follow_ups.len());
        for each in &entry.follow_ups {
            let number = targets.iter().position(|target| *target == each.queue.keys()).unwrap_or_default() + 1;
            follow_ups.push(encode_complete_with_follow_up(number as i64, item_args(&each.item)?));
        }
        args.push(encode_complete_with_entry(&entry.id, entry.token, completion_options(entry)?, follow_ups));
        if entry.keeps_outcome() {
            more.push(keys.result_key(&entry.id));
        }
    }
    Ok(with_more(&COMPLETE_WITH, keys, encode_complete_with_arguments(args, targets.len()), more))
}

/// The queues of follow-ups, each once, in the order in which they are named first (LQ-CALL-13).
pub(crate) fn targets_of(entries: &[Completion]) -> Vec<&QueueKeys> {
    let mut targets = Vec::new();
    for each in entries.iter().flat_map(|entry| &entry.follow_ups) {
        if !targets.contains(&each.queue.keys()) {
            targets.push(each.queue.keys());
        }
    }
    targets
}

pub(crate) fn release(keys: &QueueKeys, entries: &[Release]) -> Result<Call> {
    let mut more = Words::new();
    let mut args = Vec::with_capacity(entries.len());
    for each in entries {
        args.push(encode_release_entry(&each.id, each.token, encode_release_options(&each.options)?));
        if each.options.keep.is_some() {
            more.push(keys.result_key(&each.id));
        }
    }
    Ok(with_more(&RELEASE, keys, encode_release_arguments(args), more))
}

pub(crate) fn extend(keys: &QueueKeys, entries: &[Extension]) -> Call {
    let args: Vec<Words> = entries.iter().map(|each| encode_extend_entry(&each.id, each.token, each.duration)).collect();
    queue_call(&EXTEND, keys, encode_extend_arguments(args))
}

pub(crate) fn outcome(keys: &QueueKeys, ids: &[Vec<u8>]) -> Call {
    let more = ids.iter().map(|id| keys.result_key(id)).collect();
    with_more(&OUTCOME, keys, encode_outcome_arguments(ids), more)
}

pub(crate) fn settle(keys: &QueueKeys) -> Call {
    queue_call(&SETTLE, keys, Words::new())
}
