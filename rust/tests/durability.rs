//! Calls that wait until replicas or disks have them.

mod common;

use std::time::Duration;

use common::{Server, add, eventually, queue, tell};
use leaseq::{Client, ConfigureOptions, Durability, Error, ErrorKind, HandlerError, LeasedItem, NewItem, NotDurable, Queue, State, Wait};

const MINUTE: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);

/// A primary and a replica that is in step.
async fn pair() -> (Server, Server) {
    let primary = Server::with(&["--repl-diskless-sync-delay", "0"]);
    let replica = Server::with(&["--replicaof", "127.0.0.1", &primary.port.to_string()]);
    let port = replica.port;
    eventually("the replica follows", || async move { tell(port, "INFO replication").contains("master_link_status:up") }).await;
    (primary, replica)
}

fn durable(queue: &Queue, durability: Durability) -> Queue {
    queue.durable(durability).expect("a durable queue")
}

async fn lease(queue: &Queue) -> LeasedItem {
    queue.lease(MINUTE, Wait::No).await.expect("a lease").expect("an item")
}

async fn state(queue: &Queue, id: &str) -> State {
    queue.inspect(&[id]).await.expect("it is inspected").remove(0).state
}

/// How many items the replica has.
fn held(replica: &Server, queue: &Queue) -> String {
    let name = queue.name();
    tell(replica.port, &format!("HLEN leaseq:{{{name}}}:{name}:items")).trim_end().to_owned()
}

fn not_durable(error: &Error) -> NotDurable {
    assert!(error.is_definite());
    assert_eq!(error.code(), "NOT_DURABLE");
    match error.kind() {
        ErrorKind::NotDurable(found) => *found,
        other => panic!("{other:?}"),
    }
}

fn evals(server: &Server) -> u32 {
    let stats = tell(server.port, "INFO commandstats");
    let calls = |line: &str| line.split_once("calls=")?.1.split(',').next()?.parse::<u32>().ok();
    let of_scripts = |line: &&str| line.starts_with("cmdstat_eval");
    stats.lines().filter(of_scripts).filter_map(calls).sum()
}

#[tokio::test]
async fn replicas_have_it() {
    let (primary, replica) = pair().await;
    let plain = queue(&primary.client());
    let queue = durable(&plain, Durability::replicas(1, MINUTE));
    assert!(queue.add(NewItem::new("a", "")).await.expect("added").is_new());
    assert_eq!(held(&replica, &queue), ":1");
    let item = lease(&queue).await;
    let next = item.completion().then(&plain, NewItem::new("b", ""));
    assert!(item.complete_with(next).await.expect("handed on").completed);
    assert_eq!(held(&replica, &queue), ":1");
    assert!(lease(&queue).await.complete().await.expect("completed"));
    assert_eq!(held(&replica, &queue), ":0");
}

#[tokio::test]
async fn too_few_replicas() {
    let (primary, replica) = pair().await;
    let plain = queue(&primary.client());
    add(&plain, &["a", "b", "x"]).await;
    let queue = durable(&plain, Durability::replicas(1, SHORT));
    let items = queue.lease_all(3, MINUTE, Wait::No).await.expect("leased");
    replica.signal("STOP");
    let error = queue.add(NewItem::new("c", "")).await.expect_err("no replica has it");
    assert_eq!(not_durable(&error), NotDurable { wanted: 1, reached: Some(0), took_effect: Some(true) });
    let before = evals(&primary);
    let both = [NewItem::new("c", ""), NewItem::new("d", "")];
    let error = queue.add_all(&both, Wait::No).await.expect_err("no replica has them");
    assert_eq!(error.answers.iter().map(|each| each.is_new()).collect::<Vec<_>>(), [false, true]);
    assert_eq!((error.in_doubt, not_durable(&error.cause).reached), (0, Some(0)));
    assert_eq!(evals(&primary) - before, 1, "nothing is sent again");
    let error = items[0].complete().await.expect_err("no replica has it");
    assert_eq!(not_durable(&error).took_effect, Some(true));
    assert!(!items[0].is_held());
    let next = items[1].completion().then(&plain, NewItem::new("e", ""));
    let error = items[1].complete_with(next).await.expect_err("no replica has it");
    assert_eq!(not_durable(&error).took_effect, Some(true));
    let error = queue.complete_and_lease(vec![items[2].completion()], 1, MINUTE).await.expect_err("no replica has it");
    assert_eq!(error.answers, [true]);
    let many: Vec<NewItem> = (0..600).map(|number| NewItem::new(format!("many-{number}"), "")).collect();
    let error = queue.add_all(&many, Wait::No).await.expect_err("no replica has them");
    assert_eq!(error.answers.len(), 256, "later calls are not sent");
    assert_eq!(plain.stats().await.expect("counts").get("items").copied(), Some(3 + 256));
    replica.signal("CONT");
}

#[tokio::test]
async fn a_full_queue_is_full_first() {
    let (primary, replica) = pair().await;
    let plain = queue(&primary.client());
    plain.configure(&ConfigureOptions::new().max_items(1)).await.expect("a limit");
    let queue = durable(&plain, Durability::replicas(1, SHORT));
    replica.signal("STOP");
    not_durable(&queue.add(NewItem::new("a", "")).await.expect_err("no replica has it"));
    assert_eq!(*queue.add(NewItem::new("b", "")).await.expect_err("no room").kind(), ErrorKind::Full);
    replica.signal("CONT");
}

#[tokio::test]
async fn a_client_that_is_closed_during_the_wait() {
    let (primary, replica) = pair().await;
    let client = primary.client();
    let queue = durable(&queue(&client), Durability::replicas(1, MINUTE));
    replica.signal("STOP");
    let adding = tokio::spawn({
        let queue = queue.clone();
        async move { queue.add(NewItem::new("a", "")).await }
    });
    let port = primary.port;
    eventually("the wait is under way", || async move { tell(port, "INFO clients").contains("blocked_clients:1") }).await;
    client.close().await;
    let error = adding.await.expect("it ends").expect_err("the connection broke");
    assert_eq!(not_durable(&error), NotDurable { wanted: 1, reached: None, took_effect: Some(true) });
    assert_eq!(*queue.add(NewItem::new("b", "")).await.expect_err("closed").kind(), ErrorKind::Closed);
    replica.signal("CONT");
}

#[tokio::test]
async fn the_disk_has_it() {
    let name = format!("leaseq-disk-{}", std::process::id());
    let server = Server::with(&["--appendonly", "yes", "--appendfsync", "always", "--appenddirname", &name]);
    let plain = queue(&server.client());
    assert!(durable(&plain, Durability::disk(MINUTE, 0)).add(NewItem::new("a", "")).await.expect("added").is_new());
    let error = durable(&plain, Durability::disk(SHORT, 1)).add(NewItem::new("b", "")).await.expect_err("there is no replica");
    assert_eq!(not_durable(&error), NotDurable { wanted: 2, reached: Some(1), took_effect: Some(true) });
    drop(server);
    std::fs::remove_dir_all(std::env::temp_dir().join(name)).expect("it is removed");
}

#[tokio::test]
async fn a_server_without_a_file() {
    let server = Server::start();
    let plain = queue(&server.client());
    let error = durable(&plain, Durability::disk(MINUTE, 0)).add(NewItem::new("a", "")).await.expect_err("no file");
    assert_eq!((error.kind(), error.code(), error.is_definite()), (&ErrorKind::NoDurability, "NO_DURABILITY", true));
    assert!(error.to_string().contains("set appendonly yes"), "{error}");
    assert_eq!(state(&plain, "a").await, State::Absent);
}

#[tokio::test]
async fn a_user_without_the_right_to_wait() {
    let server = Server::start();
    assert_eq!(tell(server.port, "ACL SETUSER producer on >p ~* +@all -wait").trim_end(), "+OK");
    let plain = queue(&Client::open(&format!("redis://producer:p@127.0.0.1:{}", server.port)).expect("a client"));
    let error = durable(&plain, Durability::replicas(1, MINUTE)).add(NewItem::new("a", "")).await.expect_err("no right");
    assert_eq!((error.code(), error.is_definite()), ("NOPERM", true));
    assert_eq!(state(&plain, "a").await, State::Absent);
}

#[tokio::test]
async fn a_worker_does_not_wait() {
    let (primary, replica) = pair().await;
    let client = primary.client();
    let plain = queue(&client);
    add(&plain, &["a"]).await;
    replica.signal("STOP");
    let worker = client
        .worker([durable(&plain, Durability::replicas(1, 60 * MINUTE))])
        .build(|_| async { Ok::<(), HandlerError>(()) })
        .expect("a worker");
    let running = tokio::spawn({
        let worker = worker.clone();
        async move { worker.run().await }
    });
    let seen = plain.clone();
    eventually("the item is completed", || {
        let seen = seen.clone();
        async move { state(&seen, "a").await == State::Absent }
    })
    .await;
    worker.stop();
    running.await.expect("it ends").expect("well");
    replica.signal("CONT");
}

#[tokio::test]
async fn what_is_no_durability() {
    let server = Server::start();
    let queue = queue(&server.client());
    let second = Duration::from_secs(1);
    for each in [
        Durability::replicas(0, second),
        Durability::replicas(1001, second),
        Durability::replicas(1, Duration::from_micros(999)),
        Durability::disk(Duration::ZERO, 0),
        Durability::disk(second, 1001),
    ] {
        let error = queue.durable(each).expect_err("it is refused");
        assert!(error.is_invalid(), "{each:?}");
    }
}
