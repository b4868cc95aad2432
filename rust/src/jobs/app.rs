//! The functions of a program, and where its jobs go.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::Client;
use crate::error::Result;
use crate::jobs::context::Context;
use crate::jobs::format::Format;
use crate::jobs::function::Function;
use crate::jobs::handle::Job;
use crate::jobs::runner::Runner;
use crate::jobs::schedule::{Schedule, start};
use crate::queue::Queue;
use crate::verdict::HandlerError;
use crate::worker::Worker;
use crate::worker_settings::WorkerBuilder;

/// The functions of a program, and the queue of its jobs.
///
/// ```no_run
/// # async fn shop(client: leaseq::Client) -> leaseq::Result<()> {
/// use leaseq::jobs::{App, Call, Context};
///
/// #[derive(serde::Deserialize)]
/// struct Parcel {
///     number: u64,
/// }
///
/// let app = App::new(&client, "shop", "parcels")
///     .function("shop.send", |_: Context, parcel: Parcel| async move { Ok(format!("sent {}", parcel.number)) });
/// app.enqueue(Call::new("shop.send").named("number", 7)).await?;
/// let worker = app.worker(client.worker([app.queue()?]).concurrency(20))?;
/// worker.run().await?;
/// # Ok(()) }
/// ```
pub struct App {
    pub(crate) client: Client,
    pub(crate) group: String,
    pub(crate) queue: String,
    /// The queue of its jobs; none if it cannot be named so.
    own: Option<Queue>,
    pub(crate) format: Format,
    functions: Arc<BTreeMap<String, Function>>,
    pub(crate) schedules: Vec<Arc<Schedule>>,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "App({}:{})", self.group, self.queue)
    }
}

impl App {
    /// An App without functions, whose jobs go to a queue of a group.
    pub fn new(client: &Client, group: impl Into<String>, queue: impl Into<String>) -> App {
        let (group, queue) = (group.into(), queue.into());
        App {
            client: client.clone(),
            own: client.queue_in(&group, &queue).ok(),
            group,
            queue,
            format: Format::Json,
            functions: Arc::default(),
            schedules: Vec::new(),
        }
    }

    /// How its jobs are written. Default: JSON.
    pub fn written_in(mut self, format: Format) -> App {
        self.format = format;
        self
    }

    /// Adds a function. The fields of a struct are its arguments, by position or by name; a tuple has them by position.
    pub fn function<In, Out, F, R>(self, name: impl Into<String>, function: F) -> App
    where
        In: DeserializeOwned + Send + 'static,
        Out: Serialize + Send + 'static,
        F: Fn(Context, In) -> R + Send + Sync + 'static,
        R: Future<Output = std::result::Result<Out, HandlerError>> + Send + 'static,
    {
        self.with(name.into(), Function::new(None, function))
    }

    /// Adds a function whose attempts have a time limit, if their jobs have none.
    pub fn limited<In, Out, F, R>(self, name: impl Into<String>, limit: Duration, function: F) -> App
    where
        In: DeserializeOwned + Send + 'static,
        Out: Serialize + Send + 'static,
        F: Fn(Context, In) -> R + Send + Sync + 'static,
        R: Future<Output = std::result::Result<Out, HandlerError>> + Send + 'static,
    {
        self.with(name.into(), Function::new(Some(limit), function))
    }

    fn with(mut self, name: String, function: Function) -> App {
        // a worker that was made before keeps the functions that it has
        Arc::make_mut(&mut self.functions).insert(name, function);
        self
    }

    /// The queue of its jobs.
    pub fn queue(&self) -> Result<Queue> {
        self.queue_named(&self.queue)
    }

    pub(crate) fn queue_named(&self, name: &str) -> Result<Queue> {
        match &self.own {
            Some(own) if own.name() == name => Ok(own.clone()),
            _ => self.client.queue_in(&self.group, name),
        }
    }

    /// Makes a worker that runs jobs: how, and of which queues, is for the builder to say. Each job has its own attempts, which the queue counts,
    /// its own time limit and delays between attempts: those of the builder do not apply. Turns of schedules are items too: hooks and the
    /// count of [`Worker::run`](crate::Worker::run) have them.
    pub fn worker(&self, builder: WorkerBuilder) -> Result<Worker> {
        let (schedules, queues) = self.schedules_of(builder.queues())?;
        let (starting, cron) = (schedules.clone(), queues.clone());
        // schedules first: their turns are short, and a queue of jobs may never be empty (LQ-JOB-62)
        let builder = builder.attempts(0).without_time_limit().with_queues_first(queues).prepare(move || {
            let (schedules, queues) = (starting.clone(), cron.clone());
            Box::pin(async move {
                for schedule in &schedules {
                    for queue in &queues {
                        if queue.name() == schedule.queue_name() {
                            start(queue, schedule).await?;
                        }
                    }
                }
                Ok(())
            })
        });
        let runner = Arc::new(Runner {
            client: self.client.clone(),
            group: self.group.clone(),
            worker: builder.name().to_owned(),
            functions: self.functions.clone(),
            schedules,
            format: self.format,
        });
        let judging = runner.clone();
        builder.refused(move |error| judging.refused(error)).build(move |task| {
            let runner = runner.clone();
            async move { runner.run(task).await }
        })
    }

    /// The schedules whose jobs go to these queues, and the queues of their items.
    fn schedules_of(&self, queues: &[Queue]) -> Result<(Vec<Arc<Schedule>>, Vec<Queue>)> {
        let is_worked = |each: &&Arc<Schedule>| queues.iter().any(|queue| queue.name() == each.queue() && queue.group() == self.group);
        let found: Vec<Arc<Schedule>> = self.schedules.iter().filter(is_worked).cloned().collect();
        let names: BTreeSet<String> = found.iter().map(|each| each.queue_name()).collect();
        let queues = names.iter().map(|name| self.queue_named(name)).collect::<Result<Vec<Queue>>>()?;
        Ok((found, queues))
    }

    /// A job of its queue, by its id.
    pub fn job(&self, id: impl Into<String>) -> Result<Job> {
        Ok(Job { queue: self.queue()?, id: id.into() })
    }
}
