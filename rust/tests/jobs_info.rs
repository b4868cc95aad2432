//! What is known of a job: its function, attempts, times and failures.
#![cfg(feature = "jobs")]

mod common;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use common::{Server, eventually, tell};
use leaseq::jobs::{App, Call, Format, Job, JobInfo, JobStatus};
use leaseq::{AddOptions, Client, HandlerError, NewItem, ReleaseOptions, Wait};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

const HOUR: Duration = Duration::from_secs(3600);

fn app(client: &Client) -> App {
    App::new(client, "shop", "parcels")
}

async fn enqueue(app: &App, call: Call) -> Job {
    let options = AddOptions::new().keep(HOUR).max_attempts(2);
    app.job(app.enqueue(call.options(options)).await.unwrap().id).unwrap()
}

/// Runs the jobs of an App, until the test ends.
fn work(client: &Client, app: &App) {
    let worker = app.worker(client.worker([app.queue().unwrap()])).unwrap();
    tokio::spawn(async move { worker.run().await });
}

async fn until_status(job: &Job, status: JobStatus) -> JobInfo {
    eventually(status.as_str(), async || job.info().await.unwrap().status == status).await;
    job.info().await.unwrap()
}

fn at(ms: u64) -> Option<SystemTime> {
    Some(UNIX_EPOCH + Duration::from_millis(ms))
}

/// A time as a worker writes it.
fn in_ms(time: SystemTime) -> Option<SystemTime> {
    at(time.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64)
}

#[tokio::test]
async fn a_job_that_succeeds() {
    for format in [Format::Json, Format::MessagePack] {
        let server = Server::start();
        let client = server.client();
        let app = app(&client).written_in(format).function("length", |_, (text,): (String,)| async move { Ok(text.len()) });
        let before = in_ms(SystemTime::now());
        let job = enqueue(&app, Call::new("length").arg("four")).await;
        let ready = job.info().await.unwrap();
        assert_eq!((ready.status, ready.function.as_str(), ready.attempt), (JobStatus::Ready, "length", 0));
        assert!(ready.enqueued >= before, "{ready:?}");
        assert_eq!((ready.started, ready.ended, ready.worker.as_str()), (None, None, ""));

        work(&client, &app);
        let info = until_status(&job, JobStatus::Succeeded).await;
        assert_eq!((info.function.as_str(), info.attempt, &info.result), ("length", 1, &json!(4)));
        assert_eq!(info.enqueued, ready.enqueued);
        // all programs have the same clock here; a start is in whole milliseconds
        assert!(before <= info.started && info.started <= info.ended && info.enqueued <= info.ended, "{info:?}");
        assert!(!info.worker.is_empty() && info.error.is_empty() && info.traceback.is_empty(), "{info:?}");
    }
}

#[tokio::test]
async fn a_job_that_is_retried() {
    let server = Server::start();
    let client = server.client();
    let fails = Arc::new(Semaphore::new(0));
    let next = fails.clone();
    let app = app(&client).function("f", move |context: leaseq::jobs::Context, (): ()| {
        let next = next.clone();
        async move {
            if context.attempt() == 1 {
                return Err::<(), _>(HandlerError::GiveBack { reason: "later".into(), delay: Some(HOUR), uncounted: false });
            }
            context.progress(1.0, None);
            next.acquire().await?.forget();
            Err(HandlerError::failed("again"))
        }
    });
    let job = enqueue(&app, Call::new("f").id("a")).await;
    work(&client, &app);
    let first = until_status(&job, JobStatus::Retrying).await;
    assert_eq!((first.function.as_str(), first.attempt, first.error.as_str()), ("f", 1, "GiveBack: later"));
    assert!(first.started.is_some() && first.ended.is_none() && !first.worker.is_empty(), "{first:?}");

    tokio::time::sleep(Duration::from_millis(2)).await; // the next start is another millisecond
    assert_eq!(app.queue().unwrap().promote(&["a"]).await.unwrap(), [true]);
    eventually("it runs", async || job.info().await.unwrap().progress.is_some()).await;
    let second = job.info().await.unwrap();
    assert_eq!((second.status, second.attempt, second.error.as_str()), (JobStatus::Running, 2, "GiveBack: later"));
    assert!(second.started > first.started && second.ended.is_none(), "{first:?} {second:?}");

    fails.add_permits(1);
    let last = until_status(&job, JobStatus::Failed).await;
    assert_eq!((last.function.as_str(), last.attempt, last.enqueued), ("f", 2, first.enqueued));
    assert!(last.error.ends_with(": again"), "{last:?}");
    assert!(last.started == second.started && last.ended >= last.started, "{second:?} {last:?}");
}

/// A job of another program, leased by hand.
async fn lease(app: &App, job: Value) -> (Job, leaseq::LeasedItem) {
    let queue = app.queue().unwrap();
    queue.add(NewItem::new("a", job.to_string()).with(AddOptions::new().keep(HOUR))).await.unwrap();
    let job = app.job("a").unwrap();
    assert_eq!(job.info().await.unwrap().attempt, 0);
    (job, queue.lease(HOUR, Wait::No).await.unwrap().expect("the job"))
}

#[tokio::test]
async fn a_failure_of_another_language() {
    let server = Server::start();
    let app = app(&server.client());
    let (job, item) = lease(&app, json!({"v": 1, "function": "f", "attempt": 3})).await;
    assert_eq!(job.info().await.unwrap().attempt, 3);
    let error = "ValueError: no\nworker: w\nstarted: 2026-03-01T12:00:00.250+00:00\n\nTraceback:\n\n  line 1";
    item.release(ReleaseOptions::new().error(error)).await.unwrap();
    let info = job.info().await.unwrap();
    assert_eq!((info.status, info.attempt, info.error.as_str()), (JobStatus::Retrying, 3, "ValueError: no"));
    assert_eq!((info.worker.as_str(), info.started, info.traceback.as_str()), ("w", at(1_772_366_400_250), "Traceback:\n\n  line 1"));

    let again = app.queue().unwrap().lease(HOUR, Wait::No).await.unwrap().expect("the job");
    let of_lease = |token: i64| json!({"v": 1, "token": token, "worker": "of the note", "started": 7});
    for (token, worker, started) in [(item.token(), "w", info.started), (again.token(), "of the note", at(7))] {
        tell(server.port, &format!("SET leaseq:{{shop}}:parcels:job:a '{}'", of_lease(token)));
        let info = job.info().await.unwrap();
        assert_eq!((info.status, info.attempt), (JobStatus::Running, 4));
        assert_eq!((info.worker.as_str(), info.started), (worker, started));
    }
}

#[tokio::test]
async fn a_result_repeats_its_job_unless_it_is_too_long() {
    for (copy, function, attempt) in [(json!({"v": 1, "function": "f", "attempt": 3}), "f", 3), (Value::Null, "", 1)] {
        let server = Server::start();
        let app = app(&server.client());
        let (job, item) = lease(&app, json!({"v": 1, "function": "f", "attempt": 3})).await;
        let result = json!({"v": 1, "result": 1, "started": 5, "worker": "w", "job": copy});
        item.complete_with(item.completion().result(result.to_string())).await.unwrap();
        let info = job.info().await.unwrap();
        assert_eq!((info.status, info.function.as_str(), info.attempt), (JobStatus::Succeeded, function, attempt));
        assert_eq!((info.started, info.worker.as_str()), (at(5), "w"));
    }
}

#[tokio::test]
async fn a_job_that_is_cancelled_and_one_that_cannot_be_read() {
    let server = Server::start();
    let app = app(&server.client());
    let job = enqueue(&app, Call::new("f")).await;
    let before = in_ms(SystemTime::now());
    assert!(job.cancel().await.unwrap());
    let info = job.info().await.unwrap();
    assert_eq!((info.status, info.function.as_str(), info.attempt), (JobStatus::Cancelled, "f", 0));
    assert!(info.ended >= before && info.enqueued.is_none(), "{info:?}");

    let (job, _item) = lease(&app, json!({"v": 1})).await;
    let info = job.info().await.unwrap();
    assert_eq!((info.status, info.function.as_str(), info.attempt), (JobStatus::Running, "", 1));
    let none = app.job("none").unwrap().info().await.unwrap();
    assert_eq!((none.status, none.function.as_str(), none.attempt, none.enqueued), (JobStatus::Unknown, "", 0, None));
}
