//! What a caller gives: items to add, leases to complete, release and extend.

use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::generated::codecs::{AddOptions, CompleteWithOptions, ReleaseOptions};
use crate::leased_item::LeasedItem;
use crate::queue::Queue;

const MAX_ID_BYTES: usize = 256;

/// An item to add.
#[derive(Clone, Debug, PartialEq)]
pub struct NewItem {
    /// 1 to 256 bytes of UTF-8 without NUL.
    pub id: Vec<u8>,
    /// At most as long as the queue allows, 1 MiB unless it is configured.
    pub data: Vec<u8>,
    /// How it is added.
    pub options: AddOptions,
}

impl NewItem {
    /// An item of this id and data.
    pub fn new(id: impl Into<Vec<u8>>, data: impl Into<Vec<u8>>) -> NewItem {
        NewItem { id: id.into(), data: data.into(), options: AddOptions::new() }
    }

    /// The item with these options.
    pub fn with(mut self, options: AddOptions) -> NewItem {
        self.options = options;
        self
    }
}

/// The id of a follow-up of an item: `<id>/<step>`, the same whenever the item runs again, so that it is added once. If that is longer
/// than an id may be, the SHA-256 of the item's id takes its place.
pub fn derived_id(id: &str, step: &str) -> String {
    let derived = format!("{id}/{step}");
    if derived.len() <= MAX_ID_BYTES {
        return derived;
    }
    format!("{:x}/{step}", Sha256::digest(id.as_bytes()))
}

/// An item to add, to a queue of the same group, if and only if the call completes the item before it.
#[derive(Clone, Debug)]
pub struct FollowUp {
    /// Where it is added.
    pub queue: Queue,
    /// What is added.
    pub item: NewItem,
}

/// An item to complete: [`LeasedItem::completion`] makes one, or give id and token. Without `keep` and `result` nothing is kept, even if
/// the item was added with a `keep` (LQ-CLIENT-7).
#[derive(Clone, Debug)]
pub struct Completion {
    /// The id.
    pub id: Vec<u8>,
    /// The token of the lease.
    pub token: i64,
    /// How it is completed.
    pub options: CompleteWithOptions,
    /// At most 256, to at most 16 queues.
    pub follow_ups: Vec<FollowUp>,
    pub(crate) lease: Option<crate::lease::LeaseRef>,
}

impl Completion {
    /// A completion by id and token.
    pub fn new(id: impl Into<Vec<u8>>, token: i64) -> Completion {
        Completion { id: id.into(), token, options: CompleteWithOptions::new(), follow_ups: Vec::new(), lease: None }
    }

    /// Keeps these bytes as the result of the item, as long as its outcome is kept.
    pub fn result(mut self, result: impl Into<Vec<u8>>) -> Completion {
        self.options.result = Some(result.into());
        self
    }

    /// How long the result is kept; 0 keeps it as the item was added.
    pub fn keep(mut self, keep: Duration) -> Completion {
        self.options.keep = Some(keep);
        self
    }

    /// Completes the item only while this lease is its current one.
    pub fn only_current(mut self) -> Completion {
        self.options.only_current = true;
        self
    }

    /// Adds an item in the same step, if and only if this call completes this one.
    pub fn then(mut self, queue: &Queue, item: NewItem) -> Completion {
        self.follow_ups.push(FollowUp { queue: queue.clone(), item });
        self
    }

    pub(crate) fn keeps_outcome(&self) -> bool {
        self.options.keep.is_some() || self.options.result.is_some()
    }

    /// True if the script `complete` can do this. Otherwise it takes `complete_with`, which costs more.
    pub(crate) fn is_simple(&self) -> bool {
        !self.keeps_outcome() && self.follow_ups.is_empty()
    }
}

/// An item to release: [`LeasedItem::releasing`] makes one, or give id and token.
#[derive(Clone, Debug)]
pub struct Release {
    /// The id.
    pub id: Vec<u8>,
    /// The token of the lease.
    pub token: i64,
    /// How it is released.
    pub options: ReleaseOptions,
    pub(crate) lease: Option<crate::lease::LeaseRef>,
}

impl Release {
    /// A release by id and token.
    pub fn new(id: impl Into<Vec<u8>>, token: i64) -> Release {
        Release { id: id.into(), token, options: ReleaseOptions::new(), lease: None }
    }

    /// The release with these options; where they have no `keep`, that of the lease stays (LQ-CLIENT-12).
    pub fn with(mut self, options: ReleaseOptions) -> Release {
        let keep = options.keep.or(self.options.keep);
        self.options = ReleaseOptions { keep, ..options };
        self
    }
}

/// A lease to extend to a duration from now.
#[derive(Clone, Debug)]
pub struct Extension {
    /// The id.
    pub id: Vec<u8>,
    /// The token of the lease.
    pub token: i64,
    /// From now.
    pub duration: Duration,
}

impl Extension {
    /// The extension of the lease of an item. Unlike [`LeasedItem::extend`] it does not tell the item.
    pub fn of(item: &LeasedItem, duration: Duration) -> Extension {
        Extension { id: item.id().into(), token: item.token(), duration }
    }
}
