//! A leased item: the right to work on it until a deadline.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::encoding::Header;
use crate::error::{PartialError, Result};
use crate::generated::codecs::{Completed, LeaseItem, ReleaseOptions, Released};
use crate::heartbeat::Heartbeat;
use crate::item::{Completion, Release};
use crate::lease::{Granted, Lease, LeaseRef, State, first, rounded};
use crate::queue::Queue;

/// An item, and the right to work on it until a deadline. Complete or release it. It is a guard: dropped before, it releases the item in the
/// background, so that another worker gets it at once; after [`LeasedItem::forget`] it comes back at its deadline.
#[derive(Debug)]
pub struct LeasedItem {
    lease: LeaseRef,
}

impl LeasedItem {
    pub(crate) fn new(queue: &Queue, granted: Granted, deadline: Option<SystemTime>, duration: Duration, sent: Instant) -> LeasedItem {
        let duration = rounded(duration);
        let state = State {
            duration,
            deadline,
            held_until: sent + duration,
            asked_at: sent,
            under_way: Vec::new(),
            next: 0,
            in_doubt: false,
            beat: None,
        };
        let Granted { item, keep, content_type, headers } = granted;
        let LeaseItem { id, data, token, attempt } = item;
        let lease = Lease {
            queue: queue.clone(),
            id,
            data,
            token,
            attempt,
            keep,
            content_type,
            headers,
            ended: AtomicBool::new(false),
            lost: CancellationToken::new(),
            forgotten: AtomicBool::new(false),
            state: Mutex::new(state),
        };
        LeasedItem { lease: Arc::new(lease) }
    }

    /// The queue that it was leased from.
    pub fn queue(&self) -> &Queue {
        &self.lease.queue
    }

    /// The id that it was added with.
    pub fn id(&self) -> &str {
        &self.lease.id
    }

    /// The bytes that it was added with.
    pub fn data(&self) -> &[u8] {
        &self.lease.data
    }

    /// The number of this lease, greater than that of every earlier lease of the queue: a fencing token.
    pub fn token(&self) -> i64 {
        self.lease.token
    }

    /// How often it has been leased since it was added or revived, this lease included.
    pub fn attempt(&self) -> i64 {
        self.lease.attempt
    }

    /// How long its outcome is kept, if it is.
    pub fn keep(&self) -> Option<Duration> {
        self.lease.keep
    }

    /// What its data are, if it was said.
    pub fn content_type(&self) -> Option<&[u8]> {
        self.lease.content_type.as_deref()
    }

    /// The headers, in the order of the server.
    pub fn headers(&self) -> &[Header] {
        &self.lease.headers
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers().iter().find(|each| each.name == name).map(|each| each.value.as_slice())
    }

    /// The end of the lease, by the server's clock.
    pub fn deadline(&self) -> Option<SystemTime> {
        self.lease.state().deadline
    }

    /// When it was leased or last extended, by the server's clock.
    #[cfg(feature = "jobs")]
    pub(crate) fn leased_at(&self) -> SystemTime {
        let state = self.lease.state();
        state.deadline.and_then(|deadline| deadline.checked_sub(state.duration)).unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// True while the lease is held: no call ended it, it was not found lost, and its time, counted from before the call that leased or
    /// extended it, is not over (LQ-CLIENT-3).
    pub fn is_held(&self) -> bool {
        !self.lease.is_over() && Instant::now() < self.lease.state().held_until
    }

    /// Waits until the lease is found to be lost: stop working on the item then. Work that was finished can still be completed.
    pub async fn lost(&self) {
        self.lease.lost.cancelled().await;
    }

    /// A token that is cancelled when the lease is found to be lost.
    pub fn lost_token(&self) -> CancellationToken {
        self.lease.lost.clone()
    }

    /// The entry of this item for [`Queue::complete_all`] and others: its outcome is kept as it was added (LQ-CLIENT-7).
    pub fn completion(&self) -> Completion {
        let mut entry = Completion::new(self.id(), self.token());
        entry.options.keep = self.lease.keep.map(|_| Duration::ZERO);
        entry.lease = Some(self.lease.clone());
        entry
    }

    /// Completes the item. True if this call did, or, if its outcome is kept, an earlier call with this lease.
    pub async fn complete(&self) -> Result<bool> {
        Ok(self.complete_with(self.completion()).await?.completed)
    }

    /// Completes the item with a result or follow-ups: see [`LeasedItem::completion`].
    pub async fn complete_with(&self, entry: Completion) -> Result<Completed> {
        let queue = self.queue();
        if entry.follow_ups.is_empty() {
            return match queue.complete_all(vec![entry]).await {
                Ok(completed) => Ok(Completed { completed: completed.first() == Some(&true), follow_ups: Vec::new() }),
                Err(PartialError { answers, cause, .. }) => Err(cause.with_answer(answers.first().copied())),
            };
        }
        match queue.hand_off_all(vec![entry]).await {
            Ok(answers) => first(answers),
            Err(PartialError { answers, cause, .. }) => Err(cause.with_answer(answers.first().map(|each| each.completed))),
        }
    }

    /// The entry of this item for [`Queue::release_all`].
    pub fn releasing(&self) -> Release {
        let mut entry = Release::new(self.id(), self.token());
        entry.options.keep = self.lease.keep.map(|_| Duration::ZERO);
        entry.lease = Some(self.lease.clone());
        entry
    }

    /// Gives the item back and returns its state.
    pub async fn release(&self, options: ReleaseOptions) -> Result<Released> {
        first(self.queue().release_all(vec![self.releasing().with(options)]).await?)
    }

    /// Makes the item a dead letter with a last error, for a person to look at. False if the lease is lost.
    pub async fn dead_letter(&self, reason: Option<&str>) -> Result<bool> {
        let mut options = ReleaseOptions::new().dead();
        options.error = reason.map(Into::into);
        Ok(self.release(options).await? == Released::Dead)
    }

    /// Extends the lease to a duration from now, and returns the new deadline: `None` if the lease is lost. A heartbeat goes on with that
    /// duration.
    pub async fn extend(&self, duration: Duration) -> Result<Option<SystemTime>> {
        let sent = Instant::now();
        let lease = &self.lease;
        let extend = async { first(lease.queue.extend_all(&[lease.extension(duration)]).await?) };
        let deadline = lease.extend_by(duration, extend).await;
        let beat = {
            let mut state = lease.state();
            if matches!(deadline, Ok(Some(_))) && sent >= state.asked_at {
                // of two overlapping calls, the last sent counts (LQ-CLIENT-13)
                (state.duration, state.asked_at) = (rounded(duration), sent);
            }
            state.beat.clone()
        };
        if matches!(deadline, Ok(None)) && !beat.as_ref().is_some_and(|beat| beat.is_ending()) {
            lease.mark_lost();
        }
        if let Some(beat) = beat {
            beat.reschedule();
        }
        deadline
    }

    /// Extends the lease in the background, every third of its duration, until the item is completed or released, the lease is lost (see
    /// [`LeasedItem::lost`]), or the returned heartbeat is stopped.
    pub fn heartbeat(&self) -> Arc<Heartbeat> {
        let beat = self.queue().pool().beats.start(&self.lease);
        self.lease.state().beat = Some(beat.clone());
        beat
    }

    /// Lets the lease go on without this guard: the item comes back at its deadline.
    pub fn forget(self) {
        self.leave();
    }

    /// Does not release it when it is dropped.
    pub(crate) fn leave(&self) {
        self.lease.forgotten.store(true, SeqCst);
    }
}

impl Drop for LeasedItem {
    fn drop(&mut self) {
        let pool = self.queue().pool();
        if self.lease.is_over() || self.lease.forgotten.load(SeqCst) || pool.closing.is_cancelled() {
            return;
        }
        if let Some(beat) = &self.lease.state().beat {
            beat.stop();
        }
        let (queue, entry) = (self.queue().clone(), self.releasing());
        pool.spawn(async move { drop(queue.release_all(vec![entry]).await) });
    }
}
