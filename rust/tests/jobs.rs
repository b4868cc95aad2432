//! Jobs on a real server.
#![cfg(feature = "jobs")]

mod common;

use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use common::{Server, eventually};
use leaseq::jobs::{App, Call, Context, Format, JobEnd, JobStatus, Missed};
use leaseq::{AddOptions, HandlerError, Hooks, LeasedItem, NewItem, ReleaseOptions, Wait};
use serde::Deserialize;
use serde_json::json;

const MINUTE: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
struct Parcel {
    number: u64,
    #[serde(default)]
    note: String,
}

async fn send(_: Context, parcel: Parcel) -> Result<String, HandlerError> {
    match parcel.number {
        0 => Err(HandlerError::DeadLetter("no such parcel".into())),
        number => Ok(format!("sent {number}{}", parcel.note)),
    }
}

fn kept() -> AddOptions {
    AddOptions::new().keep(MINUTE)
}

#[tokio::test]
async fn jobs_run_and_tell_their_results_in_both_formats() {
    let server = Server::start();
    let client = server.client();
    let app = App::new(&client, "shop", "parcels")
        .function("send", send)
        .function("length", |_, (text,): (String,)| async move { Ok(text.len()) });
    let worker = app.worker(client.worker([app.queue().unwrap()]).concurrency(4)).unwrap();
    let running = tokio::spawn({
        let worker = worker.clone();
        async move { worker.run().await }
    });
    let by_position = app.enqueue(Call::new("send").arg(7).arg("!").options(kept())).await.unwrap();
    let end: JobEnd<String> = app.job(&by_position.id).unwrap().end(Wait::For(MINUTE)).await.unwrap();
    assert_eq!(end, JobEnd::Returned("sent 7!".into()));

    let packed = App::new(&client, "shop", "parcels").written_in(Format::MessagePack);
    let first = Call::new("send").named("number", 8).options(kept());
    let chain = packed.enqueue_chain(first.id("chain"), vec![Call::new("length").options(kept())]).await.unwrap();
    let stage = app.job(leaseq::derived_id(&chain.id, "1")).unwrap();
    let mut end: JobEnd<u64> = JobEnd::NotKept;
    while end == JobEnd::NotKept {
        end = stage.end(Wait::For(MINUTE)).await.unwrap(); // it is there when the first job has ended
    }
    assert_eq!(end, JobEnd::Returned(6));

    let dead = app.enqueue(Call::new("send").arg(0).options(kept())).await.unwrap();
    let end: JobEnd<String> = app.job(&dead.id).unwrap().end(Wait::For(MINUTE)).await.unwrap();
    assert!(matches!(end, JobEnd::Failed { message, attempt: 1, .. } if message == "no such parcel"));
    let unfit = app.enqueue(Call::new("send").named("weight", 1).options(kept())).await.unwrap();
    let end: JobEnd<String> = app.job(&unfit.id).unwrap().end(Wait::For(MINUTE)).await.unwrap();
    assert!(matches!(end, JobEnd::Failed { message, .. } if message == "the function has no argument \"weight\""));
    worker.stop();
    assert_eq!(running.await.unwrap().unwrap(), 3);
}

#[tokio::test]
async fn many_jobs_take_one_call_for_each_queue_and_256() {
    let server = Server::start();
    let client = server.client();
    let app = App::new(&client, "shop", "parcels").function("send", send);
    let calls = |count: u64| -> Vec<Call> { (1..=count).map(|number| Call::new("send").arg(number)).collect() };
    let first = app.enqueue_all(&[Call::new("send").arg(1).id("once"), Call::new("send").arg(2).on("letters")]).await.unwrap();
    assert_eq!((first[0].id.as_str(), first[0].added, first[1].added), ("once", true, true));
    let again = app.enqueue_all(&[Call::new("send").arg(2).on("letters"), Call::new("send").arg(1).id("once")]).await.unwrap();
    assert_eq!((again[0].added, again[1].id.as_str(), again[1].added), (true, "once", false));
    assert_eq!(client.queue_in("shop", "letters").unwrap().stats().await.unwrap()["ready"], 2);

    let scripts = || -> u64 {
        let told = common::tell(server.port, "INFO commandstats");
        let counted = told.split("cmdstat_evalsha:calls=").nth(1).and_then(|rest| rest.split(',').next());
        counted.expect("calls of scripts").parse().expect("a number")
    };
    let before = scripts();
    let jobs = app.enqueue_all(&calls(300)).await.unwrap();
    assert_eq!(scripts() - before, 2);
    assert!(jobs.iter().all(|job| job.added));
    assert_eq!(app.queue().unwrap().stats().await.unwrap()["ready"], 301);

    let unfit = app.enqueue_all(&[Call::new("send").arg(1), Call::new("send").arg(f64::NAN)]).await.unwrap_err();
    assert!(unfit.is_definite());
    assert_eq!(app.queue().unwrap().stats().await.unwrap()["ready"], 301);
}

#[tokio::test]
async fn a_job_is_cancelled_once_and_wakes_those_that_wait_for_it() {
    let server = Server::start();
    let client = server.client();
    let app = App::new(&client, "shop", "parcels");
    let enqueued = app.enqueue(Call::new("send").arg(1).options(kept())).await.unwrap();
    let job = app.job(enqueued.id).unwrap();
    let waiting = tokio::spawn({
        let job = job.clone();
        async move { job.end::<String>(Wait::For(MINUTE)).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(job.cancel().await.unwrap());
    assert!(!job.cancel().await.unwrap());
    assert_eq!(job.info().await.unwrap().status, JobStatus::Cancelled);
    assert_eq!(waiting.await.unwrap().unwrap(), JobEnd::Cancelled);
}

#[tokio::test]
async fn a_job_reports_any_value_in_place_of_numbers() {
    let server = Server::start();
    let client = server.client();
    let (end, ended) = tokio::sync::watch::channel(false);
    let app = App::new(&client, "shop", "parcels").function("wait", move |context: Context, (): ()| {
        let mut ended = ended.clone();
        async move {
            context.progress(1.0, Some(2.0));
            context.report(json!({"step": "upload", "files": [1]})).unwrap();
            assert!(context.report("x".repeat(4095)).is_err());
            ended.wait_for(|over| *over).await.unwrap();
            Ok(1)
        }
    });
    let worker = app.worker(client.worker([app.queue().unwrap()])).unwrap();
    let running = tokio::spawn({
        let worker = worker.clone();
        async move { worker.run().await }
    });
    let enqueued = app.enqueue(Call::new("wait").options(kept())).await.unwrap();
    let job = app.job(enqueued.id).unwrap();
    eventually("it is reported", async || !job.info().await.unwrap().report.is_null()).await;
    let info = job.info().await.unwrap();
    assert_eq!((info.progress, info.report), (None, json!({"step": "upload", "files": [1]})));
    end.send(true).unwrap();
    assert_eq!(job.end::<u64>(Wait::For(MINUTE)).await.unwrap(), JobEnd::Returned(1));
    worker.stop();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn what_the_format_cannot_hold_is_refused() {
    let server = Server::start();
    let app = App::new(&server.client(), "shop", "parcels");
    let error = app.enqueue(Call::new("send").arg(f64::NAN)).await.unwrap_err();
    assert!(error.is_definite() && error.is_invalid());
    let app = app.written_in(Format::MessagePack);
    assert!(app.enqueue(Call::new("send").arg(f64::NAN)).await.unwrap().added);
}

/// Sends the queue of each item whose handler starts.
struct Starts(Sender<String>);

impl Hooks for Starts {
    fn started(&self, item: &LeasedItem) {
        let _ = self.0.send(item.queue().name().to_owned());
    }
}

#[tokio::test]
async fn schedules_come_before_jobs_of_a_fair_worker() {
    let server = Server::start();
    let client = server.client();
    let report = || Call::new("length").arg("x");
    let mut app = App::new(&client, "shop", "parcels").function("length", |_, (text,): (String,)| async move { Ok(text.len()) });
    for name in ["a", "b"] {
        app = app.cron(name, "0 0 1 1 *", "UTC", Missed::Last, report()).unwrap();
        // as an earlier worker left it, due now
        let until = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let schedules = client.queue_in("shop", "parcels.cron").unwrap();
        let item = NewItem::new(name, format!(r#"{{"v":1,"until":{until}}}"#));
        schedules.add(item.with(AddOptions::new().max_attempts(0))).await.unwrap();
    }
    for queue in ["parcels", "other", "parcels", "other"] {
        App::new(&client, "shop", queue).enqueue(report()).await.unwrap();
    }
    let (starts, started) = channel();
    let queues = ["parcels", "other"].map(|name| client.queue_in("shop", name).unwrap());
    let worker = app.worker(client.worker(queues).fair().hooks(Starts(starts))).unwrap();
    let running = tokio::spawn({
        let worker = worker.clone();
        async move { worker.run().await }
    });
    let names =
        tokio::task::spawn_blocking(move || -> Vec<String> { (0..6).map(|_| started.recv_timeout(MINUTE).expect("it starts")).collect() });
    let names = names.await.unwrap();
    worker.stop();
    running.await.unwrap().unwrap();
    assert_eq!(names[..2], ["parcels.cron", "parcels.cron"]);
    assert!(names[2] != names[3] && names[3] != names[4] && names[4] != names[5], "{names:?}");
}

#[tokio::test]
async fn a_failure_with_a_time_that_is_none() {
    let server = Server::start();
    let app = App::new(&server.client(), "shop", "parcels");
    let job = app.job(app.enqueue(Call::new("send").arg(1)).await.unwrap().id).unwrap();
    let item = app.queue().unwrap().lease(MINUTE, Wait::No).await.unwrap().expect("the job");
    let error = "Error: no such parcel\nstarted: 2026-03-01T12:00:00.9e300+00:00";
    item.release(ReleaseOptions::new().error(error)).await.unwrap();
    assert_eq!(job.info().await.unwrap().error, "Error: no such parcel");
}
