//! A worker leases items and calls a handler for each (page 13).

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::generated::codecs::ReleaseOptions;
use crate::generated::scripts::MAX_ENTRIES;
use crate::health::{ServerHealth, is_damaged, is_misconfigured, is_server_away, pause_after};
use crate::hooks::Reporter;
use crate::item_run::{HeldItem, ItemRun, Task};
use crate::leased_item::LeasedItem;
use crate::presence::{Presence, Status};
use crate::queue::{Queue, Wait};
use crate::verdict::HandlerError;
use crate::worker_settings::Settings;

/// How long to wait for an item while the outage may last, and at first: what is refused later is not for its first calls (LQ-WORK-14). A server
/// that refuses writes refuses the block, not the lease of an empty queue.
const PROBE_LIMIT: Duration = Duration::from_secs(1);
/// How long the calls that give items back may take at the end: a server that is silent replies to none.
const LAST_CALLS_LIMIT: Duration = Duration::from_secs(2);

/// A handler of a worker.
pub(crate) type Handler = Box<dyn Fn(Task) -> Handled + Send + Sync>;
/// The future of a handler.
pub(crate) type Handled = Pin<Box<dyn Future<Output = std::result::Result<(), HandlerError>> + Send>>;

/// A worker on queues of a client: [`Client::worker`](crate::Client::worker) makes one, and it runs once. Clones are the same worker.
#[derive(Clone)]
pub struct Worker {
    pub(crate) shared: Arc<Shared>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Worker({})", self.shared.settings.id)
    }
}

pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) queues: Vec<Queue>,
    pub(crate) handler: Handler,
    pub(crate) settings: Settings,
    pub(crate) reporter: Reporter,
    pub(crate) health: ServerHealth,
    /// Ends at the stop.
    pub(crate) stopping: CancellationToken,
    /// Ends at the stop, and whenever the worker is to be quiet; another one when it resumes.
    leasing: Mutex<CancellationToken>,
    resumed: Notify,
    /// Ends at the end of the grace.
    pub(crate) over: CancellationToken,
    pub(crate) places: Arc<Semaphore>,
    begun: AtomicBool,
    completed: AtomicUsize,
    runs: Mutex<Vec<Arc<ItemRun>>>,
    freed: Notify,
    grace: Mutex<Duration>,
}

impl Shared {
    pub(crate) fn new(client: Client, queues: Vec<Queue>, settings: Settings, handler: Handler) -> Shared {
        let reporter = Reporter(settings.hooks.clone());
        let stopping = CancellationToken::new();
        Shared {
            leasing: Mutex::new(stopping.child_token()),
            resumed: Notify::new(),
            health: ServerHealth::new(reporter.clone()),
            places: Arc::new(Semaphore::new(settings.concurrency)),
            grace: Mutex::new(settings.grace),
            client,
            queues,
            handler,
            settings,
            reporter,
            stopping,
            over: CancellationToken::new(),
            begun: AtomicBool::new(false),
            completed: AtomicUsize::new(0),
            runs: Mutex::default(),
            freed: Notify::new(),
        }
    }

    fn runs(&self) -> MutexGuard<'_, Vec<Arc<ItemRun>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What changes in the reports of the worker.
    pub(crate) fn status(&self) -> Status {
        let runs = self.runs();
        let items: Vec<HeldItem> = runs.iter().take(crate::presence::MAX_REPORTED).map(|each| each.report()).collect();
        let stopping = self.stopping.is_cancelled();
        let quiet = !stopping && self.leasing().is_cancelled();
        Status { stopping, quiet, completed: self.completed.load(SeqCst), held: runs.len(), items }
    }

    /// What ends when the worker is to lease nothing.
    pub(crate) fn leasing(&self) -> CancellationToken {
        self.leasing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Does what a program wishes that steers this worker from elsewhere, and returns whether that is new (LQ-WORKER-6).
    pub(crate) fn steer(&self, wish: &str) -> bool {
        if self.stopping.is_cancelled() {
            return false;
        }
        let mut leasing = self.leasing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_quiet = leasing.is_cancelled();
        match wish {
            "stop" => {
                drop(leasing);
                self.stop(self.settings.grace);
            }
            "quiet" if !is_quiet => leasing.cancel(),
            "quiet" => return false,
            _ if is_quiet => {
                *leasing = self.stopping.child_token();
                self.resumed.notify_one();
            }
            _ => return false,
        }
        true
    }

    fn stop(&self, grace: Duration) {
        *self.grace.lock().unwrap_or_else(PoisonError::into_inner) = grace;
        self.stopping.cancel();
        if grace.is_zero() {
            self.over.cancel();
        }
    }
}

type Leasing<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

impl Worker {
    /// The name of the worker among the live ones.
    pub fn id(&self) -> &str {
        &self.shared.settings.id
    }

    /// Leases no more and starts no handler. `run` returns when the running handlers have ended, or after the grace.
    pub fn stop(&self) {
        self.shared.stop(self.shared.settings.grace);
    }

    /// Stops, and lets handlers run for that long.
    pub fn stop_within(&self, grace: Duration) {
        self.shared.stop(grace);
    }

    /// Works until it is stopped, and returns how many items it completed. While the server is away or refuses, or a record of a queue is
    /// damaged, it tries again, with growing pauses. It ends with an error if the server refuses its first calls because of user, password or
    /// settings, or by another error of leasing. When the future is dropped, the worker stops as by `stop_within(0)`.
    pub async fn run(&self) -> Result<usize> {
        let shared = &self.shared;
        if shared.begun.swap(true, SeqCst) {
            return Err(Error::refused("a worker runs once"));
        }
        let pool = shared.client.pool.clone();
        let _held_open = pool.hold_open();
        let _ends_with_the_future = shared.over.clone().drop_guard();
        let _stops_with_the_future = shared.stopping.clone().drop_guard();
        let presence = shared.settings.announce.then(|| Presence::begin(shared));
        let tasks = TaskTracker::new();
        // boxed: rustc limits how deep the futures of a program are nested
        let leasing: Leasing<'_> = Box::pin(self.lease_until_stopped(&tasks));
        let result = tokio::select! {
            biased;
            () = pool.closing.cancelled() => {
                shared.stop(Duration::ZERO);
                Ok(())
            }
            result = leasing => result,
        };
        shared.stopping.cancel();
        tasks.close();
        self.wait_for_handlers(&tasks, &pool.closing).await;
        shared.over.cancel();
        let _ = timeout(LAST_CALLS_LIMIT, tasks.wait()).await;
        if let Some(presence) = presence {
            presence.end().await;
        }
        result.map(|()| shared.completed.load(SeqCst))
    }

    async fn wait_for_handlers(&self, tasks: &TaskTracker, closing: &CancellationToken) {
        let grace = *self.shared.grace.lock().unwrap_or_else(PoisonError::into_inner);
        tokio::select! {
            _ = timeout(grace, tasks.wait()) => {}
            () = self.shared.over.cancelled() => {}
            () = closing.cancelled() => {}
        }
    }

    async fn lease_until_stopped(&self, tasks: &TaskTracker) -> Result<()> {
        let shared = &self.shared;
        let (mut failures, mut has_leased, mut turn, mut prepared) = (0, false, 0, false);
        while !shared.stopping.is_cancelled() {
            let leasing = shared.leasing();
            if leasing.is_cancelled() {
                tokio::select! {
                    () = shared.resumed.notified() => {}
                    () = shared.stopping.cancelled() => {}
                }
                continue;
            }
            let free = (shared.settings.concurrency + shared.settings.ahead).saturating_sub(shared.runs().len());
            if free == 0 {
                tokio::select! {
                    () = shared.freed.notified() => {}
                    () = shared.stopping.cancelled() => {}
                }
                continue;
            }
            let leased = tokio::select! {
                leased = async {
                    if let Some(prepare) = shared.settings.prepare.as_ref().filter(|_| !prepared) {
                        prepare().await?;
                    }
                    prepared = true;
                    let wait = if !has_leased || shared.health.is_away() { Wait::For(PROBE_LIMIT) } else { Wait::Forever };
                    self.lease_once(free.min(MAX_ENTRIES), wait, &mut turn, tasks).await
                } => leased,
                () = leasing.cancelled() => continue,
            };
            match leased {
                Ok(()) => {
                    (failures, has_leased) = (0, true);
                    shared.health.worked();
                }
                Err(_) if leasing.is_cancelled() => {}
                Err(error) if !has_leased && is_misconfigured(&error) => return Err(error),
                Err(error) if !is_server_away(&error) && !is_damaged(&error) => return Err(error),
                Err(error) => {
                    shared.health.failed(&error);
                    failures += 1;
                    pause_after(&shared.stopping, failures).await;
                }
            }
        }
        Ok(())
    }

    /// Leases up to `count` items and starts their handlers.
    async fn lease_once(&self, count: usize, wait: Wait, turn: &mut usize, tasks: &TaskTracker) -> Result<()> {
        let shared = &self.shared;
        let mut queues = shared.queues.clone();
        if shared.settings.fair {
            rotate(&mut queues[shared.settings.urgent..], *turn);
            *turn += 1;
        }
        let items = shared.client.lease_any(&queues, count, shared.settings.duration, wait).await?;
        if items.is_empty() {
            return Ok(());
        }
        if !items[0].is_held() {
            // this process stood still, and others may have the items by now (LQ-WORK-15)
            give_back(items).await;
            return Ok(());
        }
        shared.reporter.tell(|hooks| hooks.leased(items.len()));
        for item in items {
            let run = Arc::new(ItemRun::new(shared, item));
            shared.runs().push(run.clone());
            let shared = shared.clone();
            tasks.spawn(async move {
                let completed = run.run().await;
                shared.runs().retain(|each| !Arc::ptr_eq(each, &run));
                shared.completed.fetch_add(usize::from(completed), SeqCst);
                shared.freed.notify_one();
            });
        }
        Ok(())
    }
}

/// Lets another queue be the first one in each turn.
fn rotate<T>(queues: &mut [T], turn: usize) {
    if !queues.is_empty() {
        queues.rotate_left(turn % queues.len());
    }
}

/// Releases items of one lease uncounted. If that fails they come back at their deadline.
async fn give_back(items: Vec<LeasedItem>) {
    let entries = items.iter().map(|item| item.releasing().with(ReleaseOptions::new().uncounted())).collect();
    drop(items[0].queue().release_all(entries).await);
}
