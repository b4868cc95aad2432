//! Jobs whose ids are made of their arguments, on a real server.
#![cfg(feature = "jobs")]

mod common;

use std::time::{Duration, Instant};

use common::Server;
use leaseq::jobs::{App, Call, Context, Format, JobStatus, Missed};
use leaseq::{AddOptions, Client, ConfigureOptions, ErrorKind, HandlerError, Worker};
use tokio::sync::Semaphore;

const DECADE: Duration = Duration::from_secs(3650 * 86_400);
const WAYS: [Way; 3] = [Way::Alone, Way::WithOthers, Way::InAChain];

/// A job of the number 1 ends when it has a permit.
static GATE: Semaphore = Semaphore::const_new(0);

/// How a job is enqueued.
#[derive(Clone, Copy, Debug)]
enum Way {
    Alone,
    WithOthers,
    InAChain,
}

/// Enqueues a job, and returns its id and whether it was added.
async fn enqueue(app: &App, way: Way, call: Call) -> leaseq::Result<(String, bool)> {
    let other = || Call::new("echo").arg(100);
    let found = match way {
        Way::Alone => app.enqueue(call).await?,
        Way::WithOthers => app.enqueue_all(&[other(), call, other()]).await?.swap_remove(1),
        Way::InAChain => app.enqueue_chain(call, vec![Call::new("echo")]).await?,
    };
    Ok((found.id, found.added))
}

async fn echo(_: Context, (number,): (i64,)) -> Result<i64, HandlerError> {
    match number {
        1 => GATE.acquire().await.expect("it is open").forget(),
        -1 => return Err(HandlerError::DeadLetter("no".into())),
        _ => {}
    }
    Ok(number)
}

fn app_of(client: &Client) -> App {
    App::new(client, "shop", "parcels").function("echo", echo)
}

fn work(app: &App, client: &Client) -> Worker {
    let worker = app.worker(client.worker([app.queue().unwrap()]).concurrency(4)).unwrap();
    let running = worker.clone();
    tokio::spawn(async move { running.run().await });
    worker
}

async fn until_status(app: &App, id: &str, status: JobStatus) {
    let end = Instant::now() + Duration::from_secs(20);
    while app.job(id).unwrap().info().await.unwrap().status != status {
        assert!(Instant::now() < end, "it never was {status:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_unique_job_is_added_once_while_it_is_there_or_its_result_is_kept() {
    for way in WAYS {
        let server = Server::start();
        let client = server.client();
        let app = app_of(&client);
        let call = |number| Call::new("echo").arg(number).options(AddOptions::new().keep(Duration::from_millis(2500))).unique();
        let (id, added) = enqueue(&app, way, call(1)).await.unwrap();
        assert!(added && id.starts_with("unique-"), "{way:?}");
        assert_eq!(enqueue(&app, way, call(1)).await.unwrap(), (id.clone(), false));
        assert!(enqueue(&app, way, call(2)).await.unwrap().1);
        let worker = work(&app, &client);
        until_status(&app, &id, JobStatus::Running).await;
        assert!(!enqueue(&app, way, call(1)).await.unwrap().1);
        GATE.add_permits(1);
        until_status(&app, &id, JobStatus::Succeeded).await;
        assert!(!enqueue(&app, way, call(1)).await.unwrap().1);
        worker.stop();
        let end = Instant::now() + Duration::from_secs(20);
        while !enqueue(&app, way, call(1)).await.unwrap().1 {
            assert!(Instant::now() < end, "it was never free again");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test]
async fn a_unique_job_that_is_dead_keeps_its_id_until_it_is_purged() {
    for way in WAYS {
        let server = Server::start();
        let client = server.client();
        let app = app_of(&client);
        let call = || Call::new("echo").arg(-1).unique();
        let (id, _) = enqueue(&app, way, call()).await.unwrap();
        work(&app, &client);
        until_status(&app, &id, JobStatus::Failed).await;
        assert!(!enqueue(&app, way, call()).await.unwrap().1);
        assert!(app.queue().unwrap().purge(&[&id], Duration::ZERO).await.unwrap()[0]);
        assert!(enqueue(&app, way, call()).await.unwrap().1);
    }
}

#[tokio::test]
async fn one_throttled_job_is_added_in_each_slot() {
    for way in WAYS {
        let server = Server::start();
        let client = server.client();
        let app = app_of(&client);
        let call = |number| Call::new("echo").arg(number).throttle(DECADE);
        let (id, added) = enqueue(&app, way, call(3)).await.unwrap();
        assert!(added && id.starts_with("throttle-"), "{way:?}");
        assert_eq!(enqueue(&app, way, call(3)).await.unwrap(), (id.clone(), false));
        assert!(enqueue(&app, way, call(4)).await.unwrap().1);
        assert!(enqueue(&app, way, call(3).throttle(DECADE + Duration::from_secs(1))).await.unwrap().1);
        work(&app, &client);
        until_status(&app, &id, JobStatus::Unknown).await;
        assert!(!enqueue(&app, way, call(3)).await.unwrap().1);
    }
}

#[tokio::test]
async fn of_many_at_a_time_one_is_added() {
    let server = Server::start();
    let client = server.client();
    let app = app_of(&client);
    for way in WAYS {
        for call in [Call::new("echo").arg(way as u8).unique(), Call::new("echo").arg(way as u8).throttle(DECADE)] {
            let all = (0..20).map(|_| enqueue(&app, way, call.clone()));
            let found = futures_util::future::join_all(all).await;
            assert_eq!(found.into_iter().filter(|each| each.as_ref().unwrap().1).count(), 1, "{way:?}");
        }
    }
}

#[tokio::test]
async fn a_slot_is_free_again_if_its_job_was_not_added() {
    let server = Server::start();
    let client = server.client();
    let app = app_of(&client);
    let calls = |numbers: &[i64]| -> Vec<Call> { numbers.iter().map(|number| Call::new("echo").arg(*number).throttle(DECADE)).collect() };
    let queue = app.queue().unwrap();
    queue.configure(&ConfigureOptions::new().max_items(2)).await.unwrap();
    assert!(app.enqueue_all(&calls(&[0])).await.unwrap()[0].added);
    let error = app.enqueue_all(&calls(&[0, 1, 2, 0, 3, 1])).await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Full);
    assert_eq!(*app.enqueue(calls(&[4]).remove(0)).await.unwrap_err().kind(), ErrorKind::Full);
    queue.configure(&ConfigureOptions::new().max_items(0)).await.unwrap();
    let added: Vec<bool> = app.enqueue_all(&calls(&[0, 1, 2, 3, 4])).await.unwrap().iter().map(|job| job.added).collect();
    assert_eq!(added, [false, false, true, true, true]);
}

#[tokio::test]
async fn what_no_job_can_have_is_refused_and_says_what_to_do() {
    let server = Server::start();
    let client = server.client();
    let app = app_of(&client).written_in(Format::MessagePack);
    let call = || Call::new("echo").arg(1);
    for (call, why) in [
        (call().id("a").unique(), "leave out id, or unique and throttle"),
        (call().id("a").throttle(DECADE), "leave out id, or unique and throttle"),
        (call().unique().throttle(DECADE), "leave out unique or throttle"),
        (call().throttle(Duration::ZERO), "throttle is 1 ms or longer"),
        (call().arg(f64::NAN).unique(), "choose an id yourself"),
        (call().arg(f64::INFINITY).throttle(DECADE), "choose an id yourself"),
    ] {
        for error in [app.enqueue_all(&[Call::new("echo"), call.clone()]).await.unwrap_err(), app.enqueue(call).await.unwrap_err()] {
            assert!(error.is_invalid() && error.to_string().contains(why), "{error}");
        }
    }
    assert_eq!(app.queue().unwrap().stats().await.unwrap()["items"], 0);
    let mut app = app;
    for call in [call().unique(), call().throttle(DECADE)] {
        let error = app.enqueue_chain(Call::new("echo"), vec![call.clone()]).await.unwrap_err();
        assert!(error.to_string().contains("neither unique nor throttled"), "{error}");
        let error = app.every("s", Duration::from_secs(60), Missed::Last, call).unwrap_err();
        assert!(error.to_string().contains("neither unique nor throttled"), "{error}");
        app = app_of(&client);
    }
}
