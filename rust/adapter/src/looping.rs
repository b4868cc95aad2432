//! The client's own loop, and how the suite lets its handlers end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leaseq::{Error, HandlerError, Queue, Worker};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::forms::{self, Failure};
use crate::methods::Call;

/// A running worker, and how to let its handlers return.
pub struct Loop {
    worker: Mutex<Option<Worker>>,
    /// How many items have reached handlers since they were last asked for.
    handed: watch::Sender<usize>,
    /// The number of the last `end_handlers`, and its `how`.
    ends: watch::Sender<(u64, String)>,
    finished: watch::Sender<Option<Result<usize, Error>>>,
}

impl Loop {
    async fn handle(self: Arc<Self>) -> Result<(), HandlerError> {
        let mut ends = self.ends.subscribe();
        ends.mark_unchanged();
        self.handed.send_modify(|count| *count += 1);
        let _ = ends.changed().await;
        let how = ends.borrow().1.clone();
        match how.as_str() {
            "" => Ok(()),
            "panic" => std::panic::panic_any(()),
            _ => Err(HandlerError::failed("handler failed")),
        }
    }

    fn end_handlers(&self, how: &str) {
        self.ends.send_modify(|end| *end = (end.0 + 1, how.to_owned()));
    }

    async fn handed_out(&self, count: usize) {
        let _ = self.handed.subscribe().wait_for(|handed| *handed >= count).await;
        self.handed.send_modify(|handed| *handed = handed.saturating_sub(count));
    }

    async fn finish(&self) -> Result<usize, Error> {
        self.stop();
        self.end_handlers("");
        let mut finished = self.finished.subscribe();
        let found = finished.wait_for(Option::is_some).await.map(|found| found.clone());
        found.ok().flatten().unwrap_or(Ok(0))
    }

    fn stop(&self) {
        if let Some(worker) = &*self.worker.lock().unwrap() {
            worker.stop();
        }
    }
}

pub fn work(call: &Call<'_>) -> Result<Value, Failure> {
    let args = call.args;
    let mut queues = vec![call.queue()?];
    let also = args.texts("also").iter().map(|each| call.session.queue(each)).collect::<Result<Vec<Queue>, Failure>>()?;
    queues.extend(also);
    let concurrency = usize::try_from(args.number("concurrency")?).map_err(|_| Failure::harness("concurrency is below 0"))?;
    let mut builder = call.session.client.worker(queues).concurrency(concurrency);
    if args.has("lease_ms") {
        builder = builder.lease_for(args.duration("lease_ms")?);
    }
    if args.has("grace_ms") {
        builder = builder.grace(args.duration("grace_ms")?);
    }
    let retry = if args.has("retry_ms") { args.duration("retry_ms")? } else { Duration::ZERO };
    let found = Arc::new(Loop {
        worker: Mutex::default(),
        handed: watch::Sender::new(0),
        ends: watch::Sender::new((0, String::new())),
        finished: watch::Sender::new(None),
    });
    let handling = found.clone();
    let worker = builder.backoff(move |_| retry).build(move |_| handling.clone().handle())?;
    *found.worker.lock().unwrap() = Some(worker.clone());
    call.session.loops.lock().unwrap().insert(call.handle.to_owned(), found.clone());
    tokio::spawn(async move {
        let completed = worker.run().await;
        found.finished.send_replace(Some(completed));
    });
    Ok(json!({}))
}

pub async fn control(call: &Call<'_>, method: &str) -> Result<Value, Failure> {
    let found = call.session.loops.lock().unwrap().get(call.handle).cloned();
    let found = found.ok_or_else(|| Failure::harness(format!("there is no loop on {}", call.handle)))?;
    match method {
        "handed_out" => found.handed_out(usize::try_from(call.args.number("count")?).unwrap_or_default()).await,
        "end_handlers" => found.end_handlers(call.args.text("how")),
        "leave_off" => found.stop(),
        _ => return Ok(json!({"completed": found.finish().await?})),
    }
    Ok(json!({}))
}

pub async fn steer(call: &Call<'_>) -> Result<Value, Failure> {
    let (client, worker) = (&call.session.client, call.args.text("worker"));
    let alive = match call.args.text("wish") {
        "quiet" => client.quiet_worker(worker).await?,
        "stop" => client.stop_worker(worker).await?,
        _ => client.resume_worker(worker).await?,
    };
    Ok(json!({"alive": alive}))
}

pub async fn live_workers(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(call.session.client.live_workers().await?.iter().map(forms::live_worker).collect())
}
