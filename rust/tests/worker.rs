//! The worker on a real server.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use common::{Server, add, eventually, queue, tell};
use leaseq::{AddOptions, Client, ConfigureOptions, HandlerError, NewItem, OutcomeState, Queue, State, Task, Wait, Worker};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Barrier;

const MINUTE: Duration = Duration::from_secs(60);

fn start(worker: &Worker) -> tokio::task::JoinHandle<usize> {
    let worker = worker.clone();
    tokio::spawn(async move { worker.run().await.expect("it ends well") })
}

async fn state_of(queue: &Queue, id: &str) -> State {
    queue.inspect(&[id]).await.unwrap()[0].state
}

#[tokio::test]
async fn a_worker_completes_what_its_handler_returned_from() {
    let server = Server::start();
    let client = server.client();
    let queue = queue(&client);
    let worker = client
        .worker([queue.clone()])
        .concurrency(4)
        .lease_ahead(2)
        .build(|task: Task| async move {
            task.complete_as(task.completion().result(format!("done with {}", task.id())));
            Ok(())
        })
        .unwrap();
    let running = start(&worker);
    let items: Vec<NewItem> = (0..50).map(|n| NewItem::new(format!("{n}"), "").with(AddOptions::new().keep(MINUTE))).collect();
    queue.add_all(&items, Wait::No).await.unwrap();
    let outcome = queue.wait_outcome("49", Wait::For(MINUTE)).await.unwrap();
    assert_eq!((outcome.state, outcome.content), (OutcomeState::Result, b"done with 49".to_vec()));
    eventually("all are done", || async { queue.stats().await.unwrap()["items"] == 0 }).await;
    worker.stop();
    assert_eq!(running.await.unwrap(), 50);
    assert!(client.live_workers().await.unwrap().is_empty());
}

/// LQ-WORKER-5: ranks shift when another worker renews its place while the pages are read.
#[tokio::test]
async fn live_workers_of_several_pages() {
    let server = Server::start();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let client = Client::open(&format!("redis://{}", listener.local_addr().unwrap())).unwrap();
    let renews = Arc::new(AtomicBool::new(false));
    tokio::spawn({
        let (renews, port) = (renews.clone(), server.port);
        async move {
            let (outer, _) = listener.accept().await.unwrap();
            let (mut calls, mut answers) = outer.into_split();
            let (mut replies, mut inner) = TcpStream::connect(("127.0.0.1", port)).await.unwrap().into_split();
            tokio::spawn(async move { tokio::io::copy(&mut replies, &mut answers).await });
            let mut data = vec![0; 65536];
            while let Ok(count @ 1..) = calls.read(&mut data).await {
                // the first page was read
                if String::from_utf8_lossy(&data[..count]).contains("leaseq:worker:") && renews.swap(false, SeqCst) {
                    tell(port, "ZADD leaseq:workers 3000000000000 w:0000");
                }
                inner.write_all(&data[..count]).await.unwrap();
            }
        }
    });
    let report = r#"{"version":1,"reported":1,"host":"h","pid":1,"client":"c","started":1,"stopping":false,"concurrency":1,"completed":0,"queues":["g:n"],"held":0,"items":[]}"#;
    tell(server.port, &format!("SET leaseq:worker:w:1000 '{report}'"));
    for step in [1, 0] {
        // w:1000 is the first of the second page; with the step 0 all have the same score
        let places: String = (0..=1000).map(|number| format!(" {} w:{number:04}", 2_000_000_000_000u64 + step * number)).collect();
        tell(server.port, &format!("ZADD leaseq:workers{places}"));
        renews.store(step > 0, SeqCst);
        let found = client.live_workers().await.unwrap();
        assert_eq!(found.iter().map(|each| each.id.as_str()).collect::<Vec<_>>(), ["w:1000"], "{step}");
        assert!(!renews.load(SeqCst));
    }
}

#[tokio::test]
async fn a_worker_whose_client_is_closed_ends_well() {
    let server = Server::start();
    for _ in 0..20 {
        let client = server.client();
        let queue = queue(&client);
        add(&queue, &["a"]).await;
        let worker = client.worker([queue.clone()]).build(|_: Task| async { Ok(()) }).unwrap();
        let running = start(&worker);
        eventually("it is done", || async { queue.stats().await.unwrap()["items"] == 0 }).await;
        client.close().await;
        assert_eq!(running.await.unwrap(), 1);
    }
}

#[tokio::test]
async fn failures_and_panics_bring_an_item_back_until_its_last_attempt() {
    let server = Server::start();
    let client = server.client();
    let queue = queue(&client);
    add(&queue, &["fails", "panics", "never"]).await;
    let worker = client
        .worker([queue.clone()])
        .attempts(2)
        .backoff(|_| Duration::ZERO)
        .build(|task: Task| async move {
            match task.id() {
                "fails" => Err(std::io::Error::other("no such order"))?,
                "panics" => panic!("out of luck"),
                _ => Err(HandlerError::DeadLetter("never again".into())),
            }
        })
        .unwrap();
    let running = start(&worker);
    eventually("all are dead", || async { queue.stats().await.unwrap()["dead"] == 3 }).await;
    worker.stop();
    assert_eq!(running.await.unwrap(), 0);
    let found = queue.inspect(&["fails", "panics", "never"]).await.unwrap();
    let told: Vec<_> = found.iter().map(|each| (each.attempt, String::from_utf8_lossy(&each.error).into_owned())).collect();
    assert_eq!(told, [(2, "no such order".into()), (2, "panic: out of luck".into()), (1, "never again".into())]);
}

/// Counts how many of it were dropped: the future of a handler that holds one was.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[tokio::test]
async fn the_future_of_a_handler_is_dropped_when_the_lease_is_lost_or_the_grace_is_over() {
    let server = Server::start();
    let client = server.client();
    let queue = queue(&client);
    let dropped = Arc::new(AtomicUsize::new(0));
    let held = dropped.clone();
    let worker = client
        .worker([queue.clone()])
        .concurrency(2)
        .lease_for(Duration::from_millis(600))
        .build(move |_| {
            let guard = Dropped(held.clone());
            async move {
                let _guard = guard;
                std::future::pending().await
            }
        })
        .unwrap();
    let running = start(&worker);
    add(&queue, &["lost", "slow"]).await;
    eventually("both are leased", || async { queue.stats().await.unwrap()["leased"] == 2 }).await;
    queue.remove(&["lost"]).await.unwrap();
    eventually("one was dropped", || async { dropped.load(SeqCst) == 1 }).await;
    worker.stop_within(Duration::from_millis(50));
    assert_eq!(running.await.unwrap(), 0);
    assert_eq!((dropped.load(SeqCst), state_of(&queue, "slow").await), (2, State::Ready));
    assert_eq!(queue.inspect(&["slow"]).await.unwrap()[0].attempt, 0);
}

#[tokio::test]
async fn a_worker_outlives_its_server() {
    let server = Server::start();
    let client = server.client();
    let queue = queue(&client);
    let worker = client.worker([queue.clone()]).build(|_| async { Ok(()) }).unwrap();
    let running = start(&worker);
    let port = server.port;
    drop(server);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let _again = Server::start_at(port);
    add(&queue, &["a"]).await;
    eventually("it is completed", || async { queue.stats().await.is_ok_and(|found| found["items"] == 0) }).await;
    worker.stop();
    assert_eq!(running.await.unwrap(), 1);
}

/// How many scripts the server has run.
fn calls(port: u16) -> usize {
    let text = tell(port, "INFO commandstats");
    let lines = text.lines().filter(|line| line.starts_with("cmdstat_eval:") || line.starts_with("cmdstat_evalsha:"));
    lines.filter_map(|line| line.split_once("calls=")?.1.split(',').next()?.parse::<usize>().ok()).sum()
}

#[tokio::test]
async fn items_that_end_together_are_completed_in_few_calls() {
    const COUNT: usize = 50;
    let server = Server::start();
    let client = server.client();
    let queues = [queue(&client), queue(&client)];
    let together = Arc::new(Barrier::new(2 * COUNT));
    let worker = client
        .worker(queues.clone())
        .concurrency(2 * COUNT)
        .build(move |_| {
            let together = together.clone();
            async move {
                together.wait().await;
                Ok(())
            }
        })
        .unwrap();
    let running = start(&worker);
    let items: Vec<NewItem> = (0..COUNT).map(|n| NewItem::new(format!("{n}"), "")).collect();
    for _round in 0..2 {
        let before = calls(server.port);
        for each in &queues {
            each.add_all(&items, Wait::No).await.unwrap();
        }
        for each in &queues {
            eventually("all are done", || async { each.stats().await.unwrap()["items"] == 0 }).await;
        }
        let made = calls(server.port) - before;
        assert!((1..=COUNT).contains(&made), "{made} calls of scripts for {} items", 2 * COUNT);
    }
    worker.stop();
    assert_eq!(running.await.unwrap(), 4 * COUNT);
}

#[tokio::test]
async fn a_result_that_is_refused_fails_its_item_alone() {
    let server = Server::start();
    let client = server.client();
    let queue = queue(&client);
    queue.configure(&ConfigureOptions::new().max_data(10)).await.unwrap();
    let together = Arc::new(Barrier::new(3));
    let worker = client
        .worker([queue.clone()])
        .concurrency(3)
        .attempts(1)
        .build(move |task: Task| {
            let together = together.clone();
            async move {
                together.wait().await;
                let result = if task.id() == "b" { "more than ten bytes" } else { "short" };
                task.complete_as(task.completion().result(result));
                Ok(())
            }
        })
        .unwrap();
    let running = start(&worker);
    let items: Vec<NewItem> = ["a", "b", "c"].iter().map(|id| NewItem::new(*id, "").with(AddOptions::new().keep(MINUTE))).collect();
    queue.add_all(&items, Wait::No).await.unwrap();
    for (id, state) in [("a", OutcomeState::Result), ("b", OutcomeState::Failure), ("c", OutcomeState::Result)] {
        assert_eq!(queue.wait_outcome(id, Wait::For(MINUTE)).await.unwrap().state, state, "{id}");
    }
    worker.stop();
    assert_eq!(running.await.unwrap(), 2);
}

#[tokio::test]
async fn a_worker_ends_if_user_or_password_are_refused() {
    let server = Server::start();
    assert!(tell(server.port, "CONFIG SET requirepass secret").starts_with("+OK"));
    let place = format!("127.0.0.1:{}", server.port);
    for (user, code) in [("", "NOAUTH"), (":wrong@", "WRONGPASS"), ("other:secret@", "WRONGPASS")] {
        let client = Client::open(&format!("redis://{user}{place}")).unwrap();
        let queue = queue(&client);
        let error = queue.add(NewItem::new("a", "")).await.unwrap_err();
        assert!(error.is_definite(), "{error}");
        let worker = client.worker([queue]).build(|_| async { Ok(()) }).unwrap();
        let ended = tokio::time::timeout(MINUTE, worker.run()).await.expect("it ends");
        let error = ended.unwrap_err();
        let told =
            std::iter::successors(Some(&error as &dyn std::error::Error), |each| each.source()).any(|each| each.to_string().contains(code));
        assert!(told || error.code() == code, "{user} {error:?}");
        assert!(!format!("{error:?}").contains("secret"));
    }
}

#[tokio::test]
async fn a_failure_has_the_text_of_its_sources() {
    #[derive(Debug, thiserror::Error)]
    #[error("the order was not sent")]
    struct NotSent(#[source] std::io::Error);
    let failed: HandlerError = NotSent(std::io::Error::other("no route")).into();
    assert!(matches!(failed, HandlerError::Failed(text) if text == "the order was not sent: no route"));
    let boxed: Box<dyn std::error::Error> = "plain".into();
    assert!(matches!(HandlerError::failed(boxed), HandlerError::Failed(text) if text == "plain"));
}
