//! How a worker works.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::generated::scripts::MAX_LEASE_MS;
use crate::hooks::Hooks;
use crate::item_run::Task;
use crate::presence::{is_worker_id, new_worker_id};
use crate::queue::Queue;
use crate::verdict::{HandlerError, RetryPolicy, exponential_backoff};
use crate::worker::{Handler, Shared, Worker};

pub(crate) struct Settings {
    pub(crate) id: String,
    pub(crate) duration: Duration,
    pub(crate) concurrency: usize,
    pub(crate) ahead: usize,
    pub(crate) fair: bool,
    /// How many of the first queues stay the first ones, also if it is fair.
    pub(crate) urgent: usize,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) grace: Duration,
    pub(crate) policy: RetryPolicy,
    pub(crate) hooks: Option<Arc<dyn Hooks>>,
    pub(crate) announce: bool,
    #[cfg(feature = "otel")]
    pub(crate) traced: bool,
    /// What it means that the server refuses to complete an item.
    pub(crate) refused: Refused,
    /// Called before the first lease, again while the server is away.
    pub(crate) prepare: Option<Prepare>,
}

pub(crate) type Refused = Box<dyn Fn(&Error) -> HandlerError + Send + Sync>;

pub(crate) type Prepare = Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<()>> + Send>> + Send + Sync>;

/// How a worker is made: [`Client::worker`].
pub struct WorkerBuilder {
    client: Client,
    queues: Vec<Queue>,
    pub(crate) settings: Settings,
}

impl std::fmt::Debug for WorkerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WorkerBuilder({})", self.settings.id)
    }
}

impl Client {
    /// A worker on queues of this client, by strict precedence as in [`Client::lease_any`]. It reports itself and the items that it holds to
    /// the server.
    pub fn worker(&self, queues: impl IntoIterator<Item = Queue>) -> WorkerBuilder {
        let backoff = exponential_backoff(Duration::from_secs(1), Duration::from_secs(300));
        let settings = Settings {
            id: new_worker_id(),
            duration: Duration::from_secs(30),
            concurrency: 1,
            ahead: 0,
            fair: false,
            urgent: 0,
            time_limit: None,
            grace: Duration::from_secs(25),
            policy: RetryPolicy { attempts: 25, backoff: Box::new(backoff) },
            hooks: None,
            announce: true,
            #[cfg(feature = "otel")]
            traced: false,
            refused: Box::new(|error| error.clone().into()),
            prepare: None,
        };
        WorkerBuilder { client: self.clone(), queues: queues.into_iter().map(|each| each.with_durability(None)).collect(), settings }
    }
}

impl WorkerBuilder {
    /// How many items it works on at a time, of all queues together. Default: 1.
    pub fn concurrency(mut self, count: usize) -> Self {
        self.settings.concurrency = count;
        self
    }

    /// How many items it leases beside those that it works on, so that the next one starts at once. Default: 0.
    pub fn lease_ahead(mut self, count: usize) -> Self {
        self.settings.ahead = count;
        self
    }

    /// The duration of each lease, which is extended while the handler runs. Default: 30 s.
    pub fn lease_for(mut self, duration: Duration) -> Self {
        self.settings.duration = duration;
        self
    }

    /// Each lease starts with another queue, so that a queue that is never empty does not block the others.
    pub fn fair(mut self) -> Self {
        self.settings.fair = true;
        self
    }

    /// How long a handler may run. Then its future is dropped and the attempt has failed. Default: without limit.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.settings.time_limit = Some(limit);
        self
    }

    #[cfg(feature = "jobs")]
    pub(crate) fn without_time_limit(mut self) -> Self {
        self.settings.time_limit = None;
        self
    }

    /// How long handlers may run on after a stop. Then their futures are dropped and their items given back. Default: 25 s.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.settings.grace = grace;
        self
    }

    /// An item whose handler failed at this attempt becomes a dead letter; 0 is no limit. Default: 25.
    pub fn attempts(mut self, count: u32) -> Self {
        self.settings.policy.attempts = count;
        self
    }

    /// The delay before the next attempt, by the number of the attempt that failed. Default: [`exponential_backoff`] from 1 s to 5 min.
    pub fn backoff(mut self, delay: impl Fn(u32) -> Duration + Send + Sync + 'static) -> Self {
        self.settings.policy.backoff = Box::new(delay);
        self
    }

    /// Functions that it calls as the work goes on.
    pub fn hooks(mut self, hooks: impl Hooks) -> Self {
        self.settings.hooks = Some(Arc::new(hooks));
        self
    }

    /// It does not report itself and the items that it holds to the server: see [`Client::live_workers`].
    pub fn unannounced(mut self) -> Self {
        self.settings.announce = false;
        self
    }

    /// Its name among the live workers: 1 to 200 of A-Z, a-z, 0-9, _ . : and -. Default: a new one of host and process.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.settings.id = id.into();
        self
    }

    #[cfg(feature = "jobs")]
    pub(crate) fn queues(&self) -> &[Queue] {
        &self.queues
    }

    /// Queues that it leases from before those of the caller, also if it is fair.
    #[cfg(feature = "jobs")]
    pub(crate) fn with_queues_first(mut self, first: Vec<Queue>) -> Self {
        self.settings.urgent = first.len();
        self.queues.splice(..0, first);
        self
    }

    #[cfg(feature = "jobs")]
    pub(crate) fn prepare(
        mut self,
        prepare: impl Fn() -> Pin<Box<dyn Future<Output = Result<()>> + Send>> + Send + Sync + 'static,
    ) -> Self {
        self.settings.prepare = Some(Box::new(prepare));
        self
    }

    #[cfg(feature = "jobs")]
    pub(crate) fn refused(mut self, judge: impl Fn(&Error) -> HandlerError + Send + Sync + 'static) -> Self {
        self.settings.refused = Box::new(judge);
        self
    }

    #[cfg(feature = "jobs")]
    pub(crate) fn name(&self) -> &str {
        &self.settings.id
    }

    /// Makes the worker. When the future of the handler returns `Ok`, its item is completed; an error or a panic is a failed attempt. The
    /// future is dropped when the lease is lost, its time limit is over or the worker gives the item back.
    pub fn build<H, F>(self, handler: H) -> Result<Worker>
    where
        H: Fn(Task) -> F + Send + Sync + 'static,
        F: Future<Output = std::result::Result<(), HandlerError>> + Send + 'static,
    {
        let WorkerBuilder { client, queues, settings } = self;
        if queues.is_empty() || queues.iter().any(|each| !Arc::ptr_eq(each.pool(), &client.pool)) {
            return Err(Error::refused("a worker has a queue, and all are of its client"));
        }
        if settings.concurrency == 0 {
            return Err(Error::refused("concurrency is 1 or more"));
        }
        if settings.duration < Duration::from_millis(1) || settings.duration > Duration::from_millis(MAX_LEASE_MS) {
            return Err(Error::refused("the duration of a lease is 1 ms to 30 days"));
        }
        if !is_worker_id(&settings.id) {
            return Err(Error::refused("the id of a worker has 1 to 200 of A-Z, a-z, 0-9, _, ., : and -"));
        }
        let handler: Handler = Box::new(move |task| Box::pin(handler(task)));
        #[cfg(feature = "otel")]
        let handler = if settings.traced { crate::otel::traced(handler) } else { handler };
        Ok(Worker { shared: Arc::new(Shared::new(client, queues, settings, handler)) })
    }
}
