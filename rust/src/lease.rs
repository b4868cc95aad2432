//! What is known of a lease, and its extensions.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::encoding::{Header, nearest_ms};
use crate::error::{Error, Result};
use crate::generated::codecs::LeaseItem;
use crate::heartbeat::Heartbeat;
use crate::item::Extension;
use crate::queue::Queue;

/// A reference to a lease, by which calls tell it that they ended the item.
pub(crate) type LeaseRef = Arc<Lease>;

/// What a reply says of one leased item.
pub(crate) struct Granted {
    pub(crate) item: LeaseItem,
    pub(crate) keep: Option<Duration>,
    pub(crate) content_type: Option<Vec<u8>>,
    pub(crate) headers: Vec<Header>,
}

impl Granted {
    pub(crate) fn new(item: LeaseItem) -> Granted {
        Granted { item, keep: None, content_type: None, headers: Vec::new() }
    }
}

#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) queue: Queue,
    pub(crate) id: String,
    pub(crate) data: Vec<u8>,
    pub(crate) token: i64,
    pub(crate) attempt: i64,
    pub(crate) keep: Option<Duration>,
    pub(crate) content_type: Option<Vec<u8>>,
    pub(crate) headers: Vec<Header>,
    /// A call ended the item.
    pub(crate) ended: AtomicBool,
    pub(crate) lost: CancellationToken,
    pub(crate) forgotten: AtomicBool,
    pub(crate) state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) duration: Duration,
    pub(crate) deadline: Option<SystemTime>,
    pub(crate) held_until: Instant,
    /// When the extension that set `duration` was sent.
    pub(crate) asked_at: Instant,
    /// The numbers of extensions without a reply yet, and whether another one ended meanwhile: then it is unknown which the server took last.
    pub(crate) under_way: Vec<(u64, bool)>,
    pub(crate) next: u64,
    /// Extensions overlapped, so the lease must be extended again at once (LQ-CLIENT-28).
    pub(crate) in_doubt: bool,
    pub(crate) beat: Option<Arc<Heartbeat>>,
}

impl Lease {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The duration, until when the lease is held for certain, and whether it must be extended at once.
    pub(crate) fn term(&self) -> (Duration, Instant, bool) {
        let state = self.state();
        (state.duration, state.held_until, state.in_doubt)
    }

    pub(crate) fn extension(&self, duration: Duration) -> Extension {
        Extension { id: self.id.clone().into(), token: self.token, duration }
    }

    pub(crate) fn mark_lost(&self) {
        self.lost.cancel();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.ended.load(SeqCst) || self.lost.is_cancelled()
    }

    /// Runs an extension and notes the new deadline, if the lease was not lost. It settles what is in doubt, unless another overlaps it too.
    pub(crate) async fn extend_by(
        &self,
        duration: Duration,
        extend: impl Future<Output = Result<Option<SystemTime>>>,
    ) -> Result<Option<SystemTime>> {
        let held_until = Instant::now() + rounded(duration);
        let number = {
            let mut state = self.state();
            state.next += 1;
            state.in_doubt = false;
            let number = state.next;
            state.under_way.push((number, false));
            number
        };
        let under_way = UnderWay { lease: self, number };
        let deadline = extend.await;
        let overtaken = under_way.end();
        if let Ok(Some(deadline)) = deadline {
            let mut state = self.state();
            // overtaken: the server may have taken either last
            if !overtaken || Some(deadline) < state.deadline {
                state.deadline = Some(deadline);
            }
            if !overtaken || held_until < state.held_until {
                state.held_until = held_until;
            }
        }
        deadline
    }

    /// Notes that an extension has ended; true if another one ended meanwhile.
    fn extension_ended(&self, number: u64) -> bool {
        let mut state = self.state();
        let Some(at) = state.under_way.iter().position(|(each, _)| *each == number) else { return false };
        let (_, overtaken) = state.under_way.swap_remove(at);
        state.under_way.iter_mut().for_each(|each| each.1 = true);
        state.in_doubt |= overtaken;
        overtaken
    }
}

/// An extension under way; one that is dropped before its reply has ended too.
struct UnderWay<'a> {
    lease: &'a Lease,
    number: u64,
}

impl UnderWay<'_> {
    fn end(self) -> bool {
        self.lease.extension_ended(self.number)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.lease.extension_ended(self.number);
    }
}

pub(crate) fn rounded(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(nearest_ms(duration)).unwrap_or(u64::MAX)).min(Duration::from_secs(1 << 32))
}

pub(crate) fn first<T>(answers: Vec<T>) -> Result<T> {
    answers.into_iter().next().ok_or_else(|| Error::bad_reply("it is empty"))
}
