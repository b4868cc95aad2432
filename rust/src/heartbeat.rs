//! Extensions in the background.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};
use crate::generated::codecs::read_extend_reply;
use crate::lease::{Lease, LeaseRef, first};
use crate::requests;

/// The longest time that an extension in the background waits for its reply.
const MAX_LIMIT: Duration = Duration::from_secs(5);

/// The heartbeats of a client, by queue and token, so that every call that ends an item finds its heartbeat.
#[derive(Default)]
pub(crate) struct Heartbeats {
    state: Mutex<State>,
}

type Name = (String, i64);

#[derive(Default)]
struct State {
    by_lease: HashMap<Name, Arc<Heartbeat>>,
    closed: bool,
}

/// Extends one lease in the background until it is stopped, and reports the loss of the lease.
#[derive(Debug, Default)]
pub struct Heartbeat {
    wake: Notify,
    over: CancellationToken,
    ending: Mutex<Ending>,
}

#[derive(Debug, Default)]
struct Ending {
    /// How many calls of this client that end the item are under way.
    calls: usize,
    finished: bool,
}

impl Heartbeats {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the heartbeat of a lease, in place of an earlier one.
    pub(crate) fn start(&self, lease: &LeaseRef) -> Arc<Heartbeat> {
        let beat = Arc::new(Heartbeat::default());
        let name = (lease.queue.keys().registry_entry().to_owned(), lease.token);
        let mut state = self.state();
        if state.closed {
            beat.stop();
            return beat;
        }
        if let Some(before) = state.by_lease.insert(name.clone(), beat.clone()) {
            before.stop();
        }
        let (running, lease) = (beat.clone(), Arc::downgrade(lease));
        let pool = lease.upgrade().map(|lease| lease.queue.pool().clone());
        tokio::spawn(async move {
            running.run(lease).await;
            if let Some(pool) = pool {
                pool.beats.forget(&name, &running);
            }
        });
        beat
    }

    fn forget(&self, name: &Name, beat: &Arc<Heartbeat>) {
        let mut state = self.state();
        if state.by_lease.get(name).is_some_and(|each| Arc::ptr_eq(each, beat)) {
            state.by_lease.remove(name);
        }
    }

    /// Stops all heartbeats, and those that are started later: there is no connection to extend on.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.by_lease.values().for_each(|each| each.stop());
    }

    fn of(&self, queue: &str, entries: &[EndedLease]) -> Vec<Arc<Heartbeat>> {
        let state = self.state();
        if state.by_lease.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<Arc<Heartbeat>> = Vec::new();
        for each in entries {
            if let Some(beat) = state.by_lease.get(&(queue.to_owned(), each.token))
                && !found.iter().any(|other| Arc::ptr_eq(other, beat))
            {
                found.push(beat.clone());
            }
        }
        found
    }
}

/// A lease that a call ends.
pub(crate) struct EndedLease {
    pub(crate) token: i64,
    pub(crate) lease: Option<LeaseRef>,
}

/// Makes a call that ends items of a queue. Their leases are extended while it is under way, since it may be refused (LQ-CLIENT-16).
pub(crate) async fn while_ending<T>(
    beats: &Heartbeats,
    queue: &str,
    entries: &[EndedLease],
    call: impl Future<Output = Result<T>>,
) -> Result<T> {
    // a call that is dropped before its reply may have ended them
    let mut under_way = EndingCall { beats: beats.of(queue, entries), finished: true };
    under_way.beats.iter().for_each(|each| each.ending().calls += 1);
    let result = call.await;
    if result.is_ok() {
        for lease in entries.iter().filter_map(|each| each.lease.as_ref()) {
            lease.ended.store(true, std::sync::atomic::Ordering::SeqCst);
        }
    }
    under_way.finished = !result.as_ref().is_err_and(Error::is_definite);
    result
}

struct EndingCall {
    beats: Vec<Arc<Heartbeat>>,
    finished: bool,
}

impl Drop for EndingCall {
    fn drop(&mut self) {
        self.beats.iter().for_each(|each| each.call_ended(self.finished));
    }
}

impl Heartbeat {
    fn ending(&self) -> MutexGuard<'_, Ending> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Extends no more.
    pub fn stop(&self) {
        self.over.cancel();
    }

    /// The caller has extended the lease, or tried to; the next extension counts from then (LQ-CLIENT-13).
    pub(crate) fn reschedule(&self) {
        self.wake.notify_one();
    }

    fn call_ended(&self, finished: bool) {
        let mut ending = self.ending();
        ending.calls -= 1;
        ending.finished |= finished;
        if finished {
            self.stop();
        }
    }

    /// True if a call of this client ended the item, or may have: an extension that finds no lease is then no loss (LQ-CLIENT-4).
    pub(crate) fn is_ending(&self) -> bool {
        let ending = self.ending();
        ending.finished || ending.calls > 0
    }

    async fn run(&self, lease: Weak<Lease>) {
        let mut pause = until_next(&lease);
        loop {
            tokio::select! {
                biased;
                () = self.over.cancelled() => return,
                () = self.wake.notified() => {
                    pause = until_next(&lease);
                    continue;
                }
                () = sleep(pause) => {}
            }
            let Some(lease) = lease.upgrade() else { return };
            match self.beat(&lease).await {
                Some(next) => pause = next,
                None => return,
            }
        }
    }

    /// Extends the lease, and returns the time until the next extension, or `None` at the end. Whether or not an extension that failed has run,
    /// it is safe to repeat (LQ-CLIENT-14).
    async fn beat(&self, lease: &Lease) -> Option<Duration> {
        let (duration, ..) = lease.term();
        let deadline = lease.extend_by(duration, extend(lease, duration)).await;
        if self.over.is_cancelled() {
            return None;
        }
        let ending = self.is_ending();
        let (_, held_until, in_doubt) = lease.term();
        match deadline {
            Ok(None) if !ending => self.lost(lease),
            Ok(_) if in_doubt => Some(Duration::ZERO),
            Ok(_) => Some(duration / 3),
            Err(_) => {
                let left = held_until.saturating_duration_since(Instant::now());
                match left.is_zero() {
                    true if !ending => self.lost(lease),
                    true => Some(duration / 10),
                    false => Some(left.min(duration / 10)),
                }
            }
        }
    }

    fn lost(&self, lease: &Lease) -> Option<Duration> {
        self.stop();
        lease.mark_lost();
        None
    }
}

/// Extends one lease on the connection of heartbeats, with a limit for the reply.
async fn extend(lease: &Lease, duration: Duration) -> Result<Option<std::time::SystemTime>> {
    let call = requests::extend(lease.queue.keys(), &[lease.extension(duration)]);
    let reply = lease.queue.pool().heartbeats.run(&call, MAX_LIMIT.min(duration / 9)).await?;
    first(read_extend_reply(reply)?)
}

/// The time until a third of the lease has passed, counted from when it was sent for (LQ-CLIENT-13).
fn until_next(lease: &Weak<Lease>) -> Duration {
    let Some(lease) = lease.upgrade() else { return Duration::ZERO };
    match lease.term() {
        (.., true) => Duration::ZERO,
        (duration, held_until, _) => held_until.saturating_duration_since(Instant::now() + duration * 2 / 3),
    }
}
