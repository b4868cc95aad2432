//! Watching a job: what is known of it, now and whenever that changes.
#![cfg(feature = "jobs")]

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Server, eventually, tell};
use futures_util::StreamExt;
use leaseq::jobs::{App, Call, Context, Job, JobInfo, JobStatus};
use leaseq::{AddOptions, Client, ErrorKind, HandlerError, LeasedItem, ReleaseOptions, Wait};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

const HOUR: Duration = Duration::from_secs(3600);
/// Less than the 4 s after which a watch looks again that nothing has woken.
const BEFORE_THE_CAP: Duration = Duration::from_millis(3500);
const LIMIT: Duration = Duration::from_secs(20);

/// Watches a job in a task.
struct Watcher {
    seen: mpsc::UnboundedReceiver<leaseq::Result<JobInfo>>,
    task: JoinHandle<()>,
    all: Vec<JobStatus>,
    latest: Instant,
}

impl Watcher {
    fn of(job: &Job) -> Watcher {
        let (sender, seen) = mpsc::unbounded_channel();
        let watch = job.watch();
        let task = tokio::spawn(async move {
            let mut watch = std::pin::pin!(watch);
            while let Some(info) = watch.next().await {
                sender.send(info).unwrap();
            }
        });
        Watcher { seen, task, all: Vec::new(), latest: Instant::now() }
    }

    async fn next(&mut self) -> Option<leaseq::Result<JobInfo>> {
        tokio::time::timeout(LIMIT, self.seen.recv()).await.unwrap_or_else(|_| panic!("nothing more is seen: {:?}", self.all))
    }

    /// Waits until something is seen for which a condition holds.
    async fn until(&mut self, holds: impl Fn(&JobInfo) -> bool) -> JobInfo {
        loop {
            let info = self.next().await.expect("the watch goes on").unwrap();
            self.all.push(info.status);
            if holds(&info) {
                self.latest = Instant::now();
                return info;
            }
        }
    }

    async fn until_status(&mut self, status: JobStatus) -> JobInfo {
        self.until(|info| info.status == status).await
    }

    /// Waits for a status that a wake-up shows: it comes before the watch looks again anyway.
    async fn woken(&mut self, status: JobStatus) -> JobInfo {
        let before = self.latest;
        let info = self.until_status(status).await;
        let took = self.latest - before;
        assert!(took < BEFORE_THE_CAP, "{} was seen after {took:?}", status.as_str());
        info
    }

    async fn ended(&mut self) {
        assert!(self.next().await.is_none());
    }
}

fn app(client: &Client) -> App {
    App::new(client, "shop", "parcels")
}

/// A job of an App with two attempts.
async fn enqueue(app: &App, id: &str) -> Job {
    let call = Call::new("f").id(id).options(AddOptions::new().keep(HOUR).max_attempts(2));
    app.enqueue(call).await.unwrap();
    app.job(id).unwrap()
}

/// Runs the jobs of an App, until the test ends.
fn work(client: &Client, app: &App) {
    let worker = app.worker(client.worker([app.queue().unwrap()])).unwrap();
    tokio::spawn(async move { worker.run().await });
}

/// Waits until `want` connections block.
async fn blocked(server: &Server, want: usize) {
    let line = format!("\r\nblocked_clients:{want}\r\n");
    eventually(&line, async || tell(server.port, "INFO clients").contains(&line)).await;
}

#[tokio::test]
async fn a_watch_yields_each_change_until_the_end() {
    let server = Server::start();
    let client = server.client();
    let steps = Arc::new(Semaphore::new(0));
    let next = steps.clone();
    let app = app(&client).function("f", move |context: Context, (): ()| {
        let next = next.clone();
        async move {
            next.acquire().await?.forget();
            context.progress(1.0, Some(3.0));
            next.acquire().await?.forget();
            context.report(json!({"part": "second"}))?;
            next.acquire().await?.forget();
            Ok("done")
        }
    });
    let mut watcher = Watcher::of(&enqueue(&app, "a").await);
    watcher.until_status(JobStatus::Ready).await;
    work(&client, &app);
    watcher.woken(JobStatus::Running).await;
    steps.add_permits(1);
    watcher.until(|info| info.progress == Some((1.0, Some(3.0)))).await;
    steps.add_permits(1);
    watcher.until(|info| info.report == json!({"part": "second"}) && info.progress.is_none()).await;
    steps.add_permits(1);
    assert_eq!(watcher.woken(JobStatus::Succeeded).await.result, "done");
    watcher.ended().await;
}

#[tokio::test]
async fn a_watch_sees_a_failed_attempt_and_the_next_one() {
    for reports in [false, true] {
        watch_attempts(reports).await;
    }
}

async fn watch_attempts(reports: bool) {
    let server = Server::start();
    let client = server.client();
    let fails = Arc::new(Semaphore::new(0));
    let next = fails.clone();
    let app = app(&client).function("f", move |context: Context, (): ()| {
        let next = next.clone();
        async move {
            if reports {
                context.progress(context.attempt() as f64, None);
                next.acquire().await?.forget();
            }
            match context.attempt() {
                1 => Err::<(), _>(HandlerError::GiveBack { reason: "later".into(), delay: Some(HOUR), uncounted: false }),
                _ => Err(HandlerError::failed("again")),
            }
        }
    });
    let mut watcher = Watcher::of(&enqueue(&app, "a").await);
    watcher.until_status(JobStatus::Ready).await;
    work(&client, &app);
    for (attempt, status) in [(1.0, JobStatus::Retrying), (2.0, JobStatus::Failed)] {
        if reports {
            watcher.until(|info| info.progress == Some((attempt, None))).await;
            fails.add_permits(1);
        }
        let info = watcher.woken(status).await;
        assert_eq!(f64::from(info.attempt), attempt);
        assert_eq!(info.error.contains("again"), status == JobStatus::Failed, "{info:?}");
        let promoted = app.queue().unwrap().promote(&["a"]).await;
        assert_eq!(promoted.unwrap(), [status == JobStatus::Retrying]);
    }
    watcher.ended().await;
}

#[tokio::test]
async fn a_watch_ends_with_the_cancel_of_the_job() {
    let server = Server::start();
    let client = server.client();
    let job = enqueue(&app(&client), "a").await;
    let mut watcher = Watcher::of(&job);
    watcher.until_status(JobStatus::Ready).await;
    assert!(job.cancel().await.unwrap());
    watcher.woken(JobStatus::Cancelled).await;
    watcher.ended().await;
    assert_eq!(watcher.all, [JobStatus::Ready, JobStatus::Cancelled]);
    let mut of_none = Watcher::of(&app(&client).job("none").unwrap());
    of_none.until_status(JobStatus::Unknown).await;
    of_none.ended().await;
}

#[tokio::test]
async fn a_watch_that_is_dropped_frees_its_connections() {
    let server = Server::start();
    let client = server.client();
    let job = enqueue(&app(&client), "a").await;
    let mut watcher = Watcher::of(&job);
    watcher.until_status(JobStatus::Ready).await;
    blocked(&server, 2).await;
    watcher.task.abort();
    blocked(&server, 0).await;
    assert!(watcher.latest.elapsed() < BEFORE_THE_CAP);
    client.close().await;
    let metrics = tokio::runtime::Handle::current().metrics();
    eventually("no task is left", async || metrics.num_alive_tasks() == 0).await;
}

#[tokio::test]
async fn a_watch_ends_with_the_client() {
    let server = Server::start();
    let client = server.client();
    let mut watcher = Watcher::of(&enqueue(&app(&client), "a").await);
    watcher.until_status(JobStatus::Ready).await;
    blocked(&server, 2).await;
    client.close().await;
    assert_eq!(*watcher.next().await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    watcher.ended().await;
    blocked(&server, 0).await;
}

#[tokio::test]
async fn more_watches_than_may_block_at_a_time() {
    let server = Server::start();
    let client = server.client();
    let app = app(&client).function("f", |_, (): ()| async { Ok(7) });
    let mut watchers = Vec::new();
    for number in 0..20 {
        let mut watcher = Watcher::of(&enqueue(&app, &number.to_string()).await);
        watcher.until_status(JobStatus::Ready).await;
        watchers.push(watcher);
    }
    blocked(&server, 32).await;
    work(&client, &app);
    for watcher in &mut watchers {
        assert_eq!(watcher.until_status(JobStatus::Succeeded).await.result, 7);
        watcher.ended().await;
    }
}

/// A worker by hand of one job.
struct Hand<'a> {
    server: &'a Server,
    item: LeasedItem,
}

impl Hand<'_> {
    async fn lease<'a>(server: &'a Server, app: &App) -> Hand<'a> {
        Hand { server, item: app.queue().unwrap().lease(HOUR, Wait::No).await.unwrap().expect("the job") }
    }

    fn key(&self, part: &str) -> String {
        format!("leaseq:{{shop}}:parcels:{part}:{}", self.item.id())
    }

    /// Writes the note, and wakes those that wait for change n.
    fn write(&self, n: u32) {
        let note = json!({"v": 1, "token": self.item.token(), "worker": "w", "started": 1, "n": n, "done": n});
        tell(self.server.port, &format!("SET {} '{note}'", self.key("job")));
        self.publish(n);
    }

    /// Deletes it.
    fn delete(&self, n: u32) {
        tell(self.server.port, &format!("DEL {}", self.key("job")));
        self.publish(n);
    }

    fn changed(&self, n: u32) -> String {
        format!("{}:{}.{n}", self.key("changed"), self.item.attempt())
    }

    fn publish(&self, n: u32) {
        tell(self.server.port, &format!("RPUSH {} 1", self.changed(n)));
    }

    /// What was published is gone, as if its time were over.
    fn forget(&self, n: u32) {
        tell(self.server.port, &format!("DEL {}", self.changed(n)));
    }
}

/// A worker publishes the end of an attempt before it releases the item, which wakes nothing.
#[tokio::test]
async fn a_watch_looks_until_an_attempt_is_over() {
    let server = Server::start();
    let client = server.client();
    let app = app(&client);
    let job = enqueue(&app, "a").await;
    let mut watcher = Watcher::of(&job);
    watcher.until_status(JobStatus::Ready).await;
    let worker = Hand::lease(&server, &app).await;
    worker.write(0);
    worker.write(1);
    watcher.until(|info| info.progress == Some((1.0, None))).await;
    worker.forget(0);
    worker.delete(2);
    watcher.until(|info| info.progress.is_none()).await;
    worker.item.release(ReleaseOptions::new().delay(HOUR)).await.unwrap();
    watcher.woken(JobStatus::Retrying).await;
    assert!(job.cancel().await.unwrap());
    watcher.woken(JobStatus::Cancelled).await;
}

/// What the job published meanwhile is gone.
#[tokio::test]
async fn a_watch_looks_again_after_a_slow_loop() {
    let server = Server::start();
    let client = server.client();
    let app = app(&client);
    let mut watch = std::pin::pin!(enqueue(&app, "a").await.watch());
    assert_eq!(watch.next().await.unwrap().unwrap().status, JobStatus::Ready);
    let worker = Hand::lease(&server, &app).await;
    worker.write(0);
    worker.forget(0);
    tokio::time::sleep(Duration::from_millis(2100)).await; // this is the slow loop
    let resumed = Instant::now();
    assert_eq!(watch.next().await.unwrap().unwrap().status, JobStatus::Running);
    assert!(resumed.elapsed() < BEFORE_THE_CAP);
}

/// The next attempt runs before the watch looks, and reports what the one before did.
#[tokio::test]
async fn a_watch_yields_an_attempt_that_differs_only_in_its_number() {
    let server = Server::start();
    let client = server.client();
    let app = app(&client);
    let mut watch = std::pin::pin!(enqueue(&app, "a").await.watch());
    assert_eq!(watch.next().await.unwrap().unwrap().attempt, 0);
    for attempt in [1, 2] {
        let worker = Hand::lease(&server, &app).await;
        worker.write(0);
        let info = tokio::time::timeout(LIMIT, watch.next()).await.expect("it is seen").unwrap().unwrap();
        assert_eq!((info.status, info.attempt, info.progress), (JobStatus::Running, attempt, Some((0.0, None))));
        worker.item.release(ReleaseOptions::new()).await.unwrap();
    }
}
