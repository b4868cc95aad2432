//! The connections of a client: one shared by all calls, one for heartbeats, and one for each waiter.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::Value;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::durability::Durability;
use crate::error::{Error, Result};
use crate::generated::scripts::WAIT_CAP_MS;
use crate::heartbeat::Heartbeats;
use crate::keys::{QueueKeys, REGISTRY};
use crate::router::{Router, SlotTable};
use crate::script::Call;
use crate::server::Node;

/// No client blocks longer without calling again.
pub(crate) const WAIT_CAP: Duration = Duration::from_millis(WAIT_CAP_MS);
/// How many connections to block on are kept for later waiters.
const MAX_IDLE: usize = 16;
/// How many watches of jobs block at a time.
#[cfg(feature = "jobs")]
const MAX_WATCHES: usize = 16;
/// A queue is registered again after this time, in case the server lost its registry.
const REFRESH_REGISTRATION: Duration = Duration::from_secs(300);
/// How long a close waits for replies. A server that is silent gives none.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

pub(crate) struct Pool {
    slots: Arc<SlotTable>,
    pub(crate) limit: Duration,
    /// For all calls that do not block.
    pub(crate) shared: Router,
    /// For extensions in the background. Their time is short, and a late reply closes the connection.
    pub(crate) heartbeats: Router,
    pub(crate) beats: Heartbeats,
    /// For those that watch jobs, which block on two connections each.
    #[cfg(feature = "jobs")]
    pub(crate) watches: Arc<tokio::sync::Semaphore>,
    /// Ends with the client.
    pub(crate) closing: CancellationToken,
    tasks: TaskTracker,
    own: std::sync::Weak<Pool>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Connections to block on that no waiter uses.
    idle: Vec<Arc<Router>>,
    /// Connections that waiters released, with the calls whose replies are pending on them.
    settling: Vec<(Arc<Router>, Vec<Call>)>,
    registered: HashMap<String, Instant>,
}

impl Pool {
    pub(crate) fn new(nodes: Vec<Node>, limit: Duration) -> Arc<Pool> {
        let slots = Arc::new(SlotTable::new(nodes));
        Arc::new_cyclic(|own| Pool {
            shared: Router::new(slots.clone(), limit, own.clone()),
            heartbeats: Router::new(slots.clone(), limit, own.clone()),
            slots,
            limit,
            beats: Heartbeats::default(),
            #[cfg(feature = "jobs")]
            watches: Arc::new(tokio::sync::Semaphore::new(MAX_WATCHES)),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
            own: own.clone(),
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A separate connection.
    pub(crate) fn dedicated(&self) -> Arc<Router> {
        Arc::new(Router::new(self.slots.clone(), self.limit, self.own.clone()))
    }

    /// A connection to block on. Give it back with `release`.
    pub(crate) fn acquire(&self) -> Arc<Router> {
        let idle = self.state().idle.pop();
        idle.unwrap_or_else(|| self.dedicated())
    }

    /// Takes a connection back and settles on it, behind a block that may still be under way, so that the block cannot take a wake-up
    /// afterwards (06.3).
    pub(crate) fn release(&self, router: Arc<Router>, settle: Vec<Call>, failed: bool) {
        // Without a call to settle nothing shows when the block is over, and the next waiter's block would wait for that.
        if failed && settle.is_empty() {
            router.close();
            return;
        }
        if self.closing.is_cancelled() {
            router.close();
            self.settle_elsewhere(settle);
            return;
        }
        self.state().settling.push((router.clone(), settle.clone()));
        let Some(pool) = self.own.upgrade() else { return };
        self.spawn(async move {
            let _ = router.run_all(&settle, 2 * WAIT_CAP).await;
            pool.keep(router);
        });
    }

    /// Keeps a settled connection for the next waiter.
    fn keep(&self, router: Arc<Router>) {
        let mut state = self.state();
        let Some(at) = state.settling.iter().position(|(each, _)| Arc::ptr_eq(each, &router)) else { return };
        state.settling.swap_remove(at);
        if state.idle.len() < MAX_IDLE && !self.closing.is_cancelled() {
            state.idle.push(router);
        } else {
            router.close();
        }
    }

    fn settle_elsewhere(&self, settle: Vec<Call>) {
        let Some(pool) = self.own.upgrade() else { return };
        if !settle.is_empty() {
            self.spawn(async move { drop(pool.shared.run_all(&settle, pool.limit).await) });
        }
    }

    /// Closes what is idle of the connections to a node: one of them broke, or its reply was late (LQ-CLIENT-21).
    pub(crate) fn close_idle(&self, node: &str) {
        let idle = self.state().idle.clone();
        self.shared.close_idle(node);
        self.heartbeats.close_idle(node);
        idle.iter().for_each(|each| each.close_idle(node));
    }

    /// Makes a call on the shared connection.
    pub(crate) async fn call(&self, call: &Call) -> Result<Value> {
        self.shared.run(call, self.limit).await
    }

    /// Makes a call, and waits behind it if it is to be durable: on a connection that no other call uses meanwhile, since a wait holds up what
    /// comes behind. Returns the reply, and the error of the wait.
    pub(crate) async fn call_durably(&self, call: &Call, durability: Option<&Durability>) -> Result<(Value, Option<Error>)> {
        let Some(durability) = durability else { return Ok((self.call(call).await?, None)) };
        if self.closing.is_cancelled() {
            return Err(Error::closed());
        }
        let router = self.acquire();
        let found = {
            let calling = router.run_durably(call, self.limit, durability);
            tokio::pin!(calling);
            tokio::select! {
                found = &mut calling => found,
                () = self.closing.cancelled() => {
                    router.close();
                    calling.await
                }
            }
        };
        self.release(router, Vec::new(), !matches!(found, Ok((_, None))));
        found
    }

    /// Runs something in the background, which a close waits for.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if tokio::runtime::Handle::try_current().is_ok() {
            self.tasks.spawn(task);
        }
    }

    /// Lets a close wait until the returned token is dropped.
    pub(crate) fn hold_open(&self) -> TaskTrackerToken {
        self.tasks.token()
    }

    /// Enters a queue in the registry, in the background. No call waits for it or fails by it (LQ-REGISTRY-3).
    pub(crate) fn register(&self, keys: &QueueKeys) {
        let entry = keys.registry_entry();
        {
            let mut state = self.state();
            if state.registered.get(entry).is_some_and(|last| last.elapsed() < REFRESH_REGISTRATION) {
                return;
            }
            state.registered.insert(entry.to_owned(), Instant::now());
        }
        let entry = entry.to_owned();
        let Some(pool) = self.own.upgrade() else { return };
        self.spawn(async move {
            let mut command = redis::Cmd::new();
            command.arg("SADD").arg(REGISTRY).arg(entry);
            let _ = pool.shared.send(REGISTRY.as_bytes(), pool.limit, &command).await;
        });
    }

    /// Takes a queue out of the registry (LQ-DELETE-3). The next call that adds or leases enters it again. An error does not concern the caller.
    pub(crate) async fn unregister(&self, keys: &QueueKeys) {
        let entry = keys.registry_entry();
        let mut command = redis::Cmd::new();
        command.arg("SREM").arg(REGISTRY).arg(entry);
        let _ = self.shared.send(REGISTRY.as_bytes(), self.limit, &command).await;
        self.state().registered.remove(entry);
    }

    /// Ends every wait and heartbeat, waits for the tasks in the background, and closes all connections.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        let settling = std::mem::take(&mut self.state().settling);
        self.beats.close();
        // The blocks of released connections may take 4 s to end. Instead of waiting, settle on the shared connection.
        for (router, settle) in settling {
            router.close();
            self.settle_elsewhere(settle);
        }
        self.tasks.close();
        let _ = timeout(CLOSE_LIMIT, self.tasks.wait()).await;
        self.close_connections();
    }

    pub(crate) fn close_connections(&self) {
        let idle = std::mem::take(&mut self.state().idle);
        idle.iter().for_each(|each| each.close());
        self.shared.close();
        self.heartbeats.close();
    }
}
