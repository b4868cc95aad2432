//! One leased item of a worker, from its lease to its end.

use std::future::Future;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error, info, info_span, warn};

use crate::error::{Error, Result};
use crate::generated::codecs::Released;
use crate::health::{is_server_away, pause_after};
use crate::heartbeat::Heartbeat;
use crate::item::Completion;
use crate::leased_item::LeasedItem;
use crate::verdict::{HandlerError, Verdict};
use crate::worker::Shared;

/// How long a handler whose future is dropped may take to end, before its slot takes the next item.
const UNWIND_LIMIT: Duration = Duration::from_secs(1);

/// What a handler gets: the leased item, and how the worker is to complete it.
#[derive(Clone, Debug)]
pub struct Task(Arc<Work>);

#[derive(Debug)]
struct Work {
    item: LeasedItem,
    completion: Mutex<Option<Completion>>,
    stopping: CancellationToken,
}

impl Deref for Task {
    type Target = LeasedItem;

    fn deref(&self) -> &LeasedItem {
        &self.0.item
    }
}

impl Task {
    /// How the worker is to complete the item when its handler has returned: with a result or follow-ups, from [`LeasedItem::completion`].
    pub fn complete_as(&self, completion: Completion) {
        *self.0.completion.lock().unwrap_or_else(PoisonError::into_inner) = Some(completion);
    }

    /// Waits until the worker is stopped: a long handler can save what it has, and return [`HandlerError::GiveBack`].
    pub async fn stopping(&self) {
        self.0.stopping.cancelled().await;
    }
}

/// An item that a live worker holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HeldItem {
    /// `<group>:<name>`.
    pub queue: String,
    /// Its id.
    pub id: String,
    /// Its attempt.
    pub attempt: u64,
    /// The time since it was leased in milliseconds: up to now, if it is still held.
    pub ms: u64,
}

/// How the wait for a handler ended.
enum End {
    Handler(std::result::Result<(), HandlerError>),
    Lost,
    GraceOver,
}

pub(crate) struct ItemRun {
    task: Task,
    worker: Weak<Shared>,
    /// Ends when the worker is to start no handler.
    leasing: CancellationToken,
    since: Instant,
    beat: Arc<Heartbeat>,
    /// A call that was to end the item has no reply.
    may_have_ended: AtomicBool,
}

impl ItemRun {
    pub(crate) fn new(worker: &Arc<Shared>, item: LeasedItem) -> ItemRun {
        let beat = item.heartbeat();
        let work = Work { item, completion: Mutex::default(), stopping: worker.stopping.clone() };
        ItemRun {
            task: Task(Arc::new(work)),
            worker: Arc::downgrade(worker),
            leasing: worker.leasing(),
            since: Instant::now(),
            beat,
            may_have_ended: AtomicBool::new(false),
        }
    }

    pub(crate) fn report(&self) -> HeldItem {
        HeldItem {
            queue: self.task.queue().keys().registry_entry().to_owned(),
            id: self.task.id().into(),
            attempt: self.task.attempt().unsigned_abs(),
            ms: self.since.elapsed().as_millis() as u64,
        }
    }

    /// Waits for a place, runs the handler and ends the item as the handler ended. True if it was completed.
    pub(crate) async fn run(&self) -> bool {
        let Some(worker) = self.worker.upgrade() else { return false };
        let place = tokio::select! {
            biased;
            () = self.leasing.cancelled() => None,
            () = self.task.lost() => None,
            place = worker.places.acquire() => place.ok(),
        };
        if place.is_none() || self.leasing.is_cancelled() {
            self.end_unstarted(&worker).await;
            return false;
        }
        if let Some(verdict) = worker.settings.policy.exhausted(self.task.attempt()) {
            error!(
                queue = self.queue(),
                item = self.task.id(),
                attempt = self.task.attempt(),
                reason = verdict.reason,
                "leaseq worker: an item is dead"
            );
            self.beat.stop();
            self.release(&worker, &verdict).await;
            return false;
        }
        let end = self.run_handler(&worker).await;
        self.beat.stop(); // LQ-WORK-5
        match end {
            End::Handler(Ok(())) => self.complete(&worker).await,
            End::Handler(Err(error)) => {
                self.fail(&worker, error).await;
                false
            }
            End::Lost => {
                self.report_loss(&worker);
                false
            }
            End::GraceOver => {
                info!(queue = self.queue(), item = self.task.id(), "leaseq worker: an item is given back, since the grace is over");
                self.release(&worker, &Verdict::uncounted()).await;
                false
            }
        }
    }

    async fn end_unstarted(&self, worker: &Shared) {
        self.beat.stop();
        if self.task.lost_token().is_cancelled() {
            self.report_loss(worker);
        } else {
            self.release(worker, &Verdict::uncounted()).await;
        }
    }

    /// Runs the handler within its time limit: an attempt past it has failed, whatever the handler would return.
    async fn run_handler(&self, worker: &Shared) -> End {
        worker.reporter.tell(|hooks| hooks.started(&self.task));
        let begun = Instant::now();
        let span = info_span!("leaseq.handler", queue = self.queue(), item = self.task.id(), attempt = self.task.attempt());
        let mut handler = tokio::spawn((worker.handler)(self.task.clone()).instrument(span));
        let end = tokio::select! {
            biased;
            ended = &mut handler => End::Handler(ended.unwrap_or_else(|error| Err(panic_error(error)))),
            () = self.task.lost() => End::Lost,
            () = worker.over.cancelled() => End::GraceOver,
            limit = time_limit(worker.settings.time_limit) => {
                End::Handler(Err(HandlerError::failed(format!("the handler ran longer than {limit:?}"))))
            }
        };
        abort(handler).await;
        let failure = match &end {
            End::Handler(Ok(())) => None,
            End::Handler(Err(error)) => Some(error.text().to_owned()),
            End::Lost => Some("the lease is lost".into()),
            End::GraceOver => Some("the worker stopped".into()),
        };
        worker.reporter.tell(|hooks| hooks.ended(&self.task, begun.elapsed(), failure.as_deref()));
        end
    }

    async fn complete(&self, worker: &Shared) -> bool {
        let given = self.task.0.completion.lock().unwrap_or_else(PoisonError::into_inner).take();
        let entry = given.unwrap_or_else(|| self.task.completion());
        match self.while_held(worker, || self.complete_once(entry.clone())).await {
            Ok(true) => {
                worker.reporter.tell(|hooks| hooks.completed(&self.task));
                true
            }
            Ok(false) => {
                self.report_loss(worker);
                false
            }
            Err(error) if is_server_away(&error) => {
                self.held_until_over(&error);
                false
            }
            // the item cannot be completed, for example because its result is too large
            Err(error) => {
                self.fail(worker, (worker.settings.refused)(&error)).await;
                false
            }
        }
    }

    /// Completes it, in one call with those that end meanwhile. An entry with follow-ups is rare, and goes in a separate call.
    async fn complete_once(&self, entry: Completion) -> Result<bool> {
        if entry.follow_ups.is_empty() {
            return self.task.queue().complete_one(entry).await;
        }
        Ok(self.task.complete_with(entry).await?.completed)
    }

    /// Releases an item whose handler failed, by the verdict of the handler, or of the policy.
    async fn fail(&self, worker: &Shared, error: HandlerError) {
        let attempt = self.task.attempt();
        let asked = matches!(error, HandlerError::GiveBack { .. });
        let verdict = worker.settings.policy.judge(attempt, error);
        let released = self.release(worker, &verdict).await;
        let (queue, item, reason, delay) = (self.queue(), self.task.id(), &verdict.reason, verdict.delay);
        match released {
            Some(Released::Dead) => error!(queue, item, attempt, reason, "leaseq worker: an item failed and is dead"),
            Some(Released::Lost) => warn!(queue, item, attempt, reason, "leaseq worker: a handler failed, and its item is left to another"),
            _ if asked => info!(queue, item, attempt, reason, ?delay, "leaseq worker: an item is given back by its handler"),
            _ => warn!(queue, item, attempt, reason, ?delay, "leaseq worker: an item failed and goes back"),
        }
    }

    fn queue(&self) -> &str {
        self.task.queue().name()
    }

    /// Releases the item. Returns what became of it, `None` if the server did not say.
    async fn release(&self, worker: &Shared, verdict: &Verdict) -> Option<Released> {
        let found = self.while_held(worker, || self.task.release(verdict.options())).await;
        match &found {
            Ok(Released::Lost) => self.report_loss(worker),
            Ok(Released::Dead) => worker.reporter.tell(|hooks| hooks.dead_lettered(&self.task, &verdict.reason)),
            Ok(_) => worker.reporter.tell(|hooks| hooks.released(&self.task, verdict.delay, &verdict.reason)),
            Err(error) => self.held_until_over(error),
        }
        found.ok()
    }

    fn held_until_over(&self, error: &Error) {
        self.task.leave();
        error!(queue = self.queue(), item = self.task.id(), %error, "leaseq worker: an item is held until its lease is over");
    }

    /// Makes the call that ends an item: in an outage again and again, but only while the lease is held (LQ-WORK-6).
    async fn while_held<T, F: Future<Output = Result<T>>>(&self, worker: &Shared, call: impl Fn() -> F) -> Result<T> {
        let mut failures = 0;
        loop {
            let error = match call().await {
                Ok(found) => return Ok(found),
                Err(error) => error,
            };
            if !is_server_away(&error) || worker.over.is_cancelled() {
                return Err(error);
            }
            self.may_have_ended.fetch_or(!error.is_definite(), SeqCst);
            worker.health.failed(&error);
            failures += 1;
            pause_after(&worker.over, failures).await;
            if !self.task.is_held() {
                return Err(error);
            }
        }
    }

    /// The lease is lost: found by the heartbeat, or by the call that was to end the item.
    fn report_loss(&self, worker: &Shared) {
        self.task.leave();
        if !self.may_have_ended.load(SeqCst) {
            warn!(
                queue = self.queue(),
                item = self.task.id(),
                attempt = self.task.attempt(),
                "leaseq worker: an item is no longer this worker's"
            );
            worker.reporter.tell(|hooks| hooks.lost(&self.task));
        }
    }
}

async fn time_limit(limit: Option<Duration>) -> Duration {
    match limit {
        Some(limit) => {
            sleep(limit).await;
            limit
        }
        None => std::future::pending().await,
    }
}

/// Drops the future of a handler that still runs, and waits for a moment until that is done.
async fn abort(handler: JoinHandle<std::result::Result<(), HandlerError>>) {
    if !handler.is_finished() {
        handler.abort();
        let _ = timeout(UNWIND_LIMIT, handler).await;
    }
}

fn panic_error(error: tokio::task::JoinError) -> HandlerError {
    if error.is_cancelled() {
        return HandlerError::failed("the handler was cancelled");
    }
    let payload = error.into_panic();
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned()).or_else(|| payload.downcast_ref::<String>().cloned());
    HandlerError::Failed(format!("panic: {}", text.as_deref().unwrap_or("without a text")))
}
