//! Callers that add at once: what waits while calls are under way goes along in the next one.

mod common;

use std::time::Duration;

use common::{Server, add, queue, tell};
use leaseq::{AddOptions, Added, ConfigureOptions, Durability, Error, ErrorKind, NewItem, Queue, State};
use tokio::task::JoinHandle;

/// How many calls are under way at a time.
const AT_ONCE: usize = 4;

/// Callers on a server that stands still: as many as calls can be under way, and then others, which wait for the next.
struct Crowd {
    server: Server,
    queue: Queue,
    callers: Vec<JoinHandle<leaseq::Result<Added>>>,
    before: u32,
}

impl Crowd {
    async fn on(server: Server, queue: Queue) -> Crowd {
        queue.stats().await.expect("it is connected");
        let before = evals(&server);
        server.signal("STOP");
        let mut crowd = Crowd { server, queue, callers: Vec::new(), before };
        for at in 0..AT_ONCE {
            crowd.add(NewItem::new(format!("first-{at}"), "")).await;
        }
        crowd
    }

    /// Lets one more caller add: its item is sent, or waits.
    async fn add(&mut self, item: NewItem) {
        let queue = self.queue.clone();
        self.callers.push(tokio::spawn(async move { queue.add(item).await }));
        tokio::task::yield_now().await; // there is one thread: the caller runs until it waits
    }

    /// Lets the server go on, and returns what became of those behind the first, and how many calls there were.
    async fn ends(&mut self) -> (Vec<leaseq::Result<Added>>, u32) {
        self.server.signal("CONT");
        let mut ends = Vec::new();
        for each in std::mem::take(&mut self.callers) {
            ends.push(tokio::time::timeout(Duration::from_secs(20), each).await.expect("no caller waits on").expect("no panic"));
        }
        let others = ends.split_off(AT_ONCE);
        ends.iter().for_each(assert_added);
        (others, evals(&self.server) - self.before)
    }
}

fn assert_added(end: &leaseq::Result<Added>) {
    assert!(end.as_ref().expect("it is added").is_new());
}

/// How many calls of scripts the server has had.
fn evals(server: &Server) -> u32 {
    let stats = tell(server.port, "INFO commandstats");
    let calls = |line: &str| line.split_once("calls=")?.1.split(',').next()?.parse::<u32>().ok();
    stats.lines().filter(|line| line.starts_with("cmdstat_eval")).filter_map(calls).sum()
}

/// A server and a queue of which it knows the script.
async fn known() -> (Server, Queue) {
    let server = Server::start();
    let queue = queue(&server.client());
    add(&queue, &["known"]).await;
    (server, queue)
}

async fn state(queue: &Queue, id: &str) -> State {
    queue.inspect(&[id]).await.expect("it is inspected").remove(0).state
}

#[tokio::test]
async fn callers_at_once_share_calls() {
    let (server, queue) = known().await;
    let mut crowd = Crowd::on(server, queue.clone()).await;
    for at in 0..300 {
        crowd.add(NewItem::new(at.to_string(), at.to_string())).await;
    }
    let (ends, calls) = crowd.ends().await;
    ends.iter().for_each(assert_added);
    assert_eq!(calls, AT_ONCE as u32 + 2, "300 entries are two calls");
    let found = queue.inspect(&["0", "299"]).await.expect("inspected");
    assert_eq!((found[0].size, found[1].size), (1, 3));
}

#[tokio::test]
async fn long_data_is_shared_by_few() {
    let (server, queue) = known().await;
    let mut crowd = Crowd::on(server, queue).await;
    for at in 0..6 {
        crowd.add(NewItem::new(at.to_string(), vec![b'x'; 1 << 20])).await; // 4 MiB are one call
    }
    let (ends, calls) = crowd.ends().await;
    ends.iter().for_each(assert_added);
    assert_eq!(calls, AT_ONCE as u32 + 2);
}

#[tokio::test]
async fn a_refused_item_of_a_shared_call() {
    let (server, queue) = known().await;
    let mut crowd = Crowd::on(server, queue).await;
    for at in 0..64 {
        crowd.add(NewItem::new(if at == 5 { String::new() } else { at.to_string() }, "")).await;
    }
    let (mut ends, calls) = crowd.ends().await;
    let error = ends.remove(5).expect_err("an id is not empty");
    assert_eq!((error.code(), error.is_definite()), ("LEASEQ_BAD_ID", true));
    ends.iter().for_each(assert_added);
    assert_eq!(calls, AT_ONCE as u32 + 1 + 2 * 6, "64 are halved six times");
}

#[tokio::test]
async fn the_same_id_in_a_shared_call_is_added_once() {
    let (server, queue) = known().await;
    let mut crowd = Crowd::on(server, queue).await;
    for data in ["one", "other"] {
        crowd.add(NewItem::new("same", data)).await;
    }
    let (ends, calls) = crowd.ends().await;
    assert_added(&ends[0]);
    assert!(!ends[1].as_ref().expect("an answer").is_new());
    assert_eq!(calls, AT_ONCE as u32 + 1);
}

#[tokio::test]
async fn a_shared_call_and_a_full_queue() {
    let server = Server::start();
    let queue = queue(&server.client());
    queue.configure(&ConfigureOptions::new().max_items(AT_ONCE as i64 + 1)).await.expect("configured");
    let mut crowd = Crowd::on(server, queue).await;
    for id in ["fits", "does not"] {
        crowd.add(NewItem::new(id, "")).await;
    }
    let (ends, _) = crowd.ends().await;
    assert_added(&ends[0]);
    assert_eq!(*ends[1].as_ref().expect_err("there is no room").kind(), ErrorKind::Full);
}

#[tokio::test]
async fn a_caller_whose_future_is_dropped_takes_back_what_waits() {
    let (server, queue) = known().await;
    let mut crowd = Crowd::on(server, queue.clone()).await;
    crowd.add(NewItem::new("taken back", "")).await;
    crowd.callers.pop().expect("a caller").abort();
    crowd.add(NewItem::new("stays", "")).await;
    let (ends, _) = crowd.ends().await;
    assert_added(&ends[0]);
    assert_eq!(state(&queue, "taken back").await, State::Absent);
}

#[tokio::test]
async fn a_dropped_call_leaves_its_place_to_others() {
    let (server, queue) = known().await;
    let mut crowd = Crowd::on(server, queue).await;
    crowd.add(NewItem::new("waits", "")).await;
    for each in crowd.callers.drain(..AT_ONCE) {
        each.abort();
    }
    crowd.server.signal("CONT");
    let last = crowd.callers.pop().expect("a caller");
    assert_added(&tokio::time::timeout(Duration::from_secs(20), last).await.expect("it is sent").expect("no panic"));
}

#[tokio::test]
async fn a_caller_in_another_runtime_does_not_wait() {
    let (server, queue) = known().await;
    let crowd = Crowd::on(server, queue.clone()).await;
    let other = || tokio::runtime::Runtime::new().expect("a runtime").block_on(queue.add(NewItem::new("elsewhere", "")));
    let error =
        std::thread::scope(|scope| scope.spawn(other).join()).expect("no panic").expect_err("the connection is not of this runtime");
    assert_eq!(*error.kind(), ErrorKind::OtherRuntime);
    drop(crowd);
}

#[tokio::test]
async fn a_server_that_dies_under_shared_calls() {
    let (server, queue) = known().await;
    let mut crowd = Crowd::on(server, queue).await;
    for at in 0..20 {
        crowd.add(NewItem::new(at.to_string(), "")).await;
    }
    crowd.server.signal("KILL");
    for each in crowd.callers {
        let error: Error = each.await.expect("no panic").expect_err("there is no server");
        assert_eq!(*error.kind(), ErrorKind::Connection);
    }
}

#[tokio::test]
async fn shared_calls_that_are_not_durable() {
    let (server, plain) = known().await;
    let queue = plain.durable(Durability::replicas(1, Duration::from_millis(50))).expect("a durable queue");
    queue.add(NewItem::new("connects", "")).await.expect_err("there are no replicas");
    let mut crowd = Crowd::on(server, queue).await;
    for at in 0..2 {
        crowd.add(NewItem::new(at.to_string(), "").with(AddOptions::new())).await;
    }
    crowd.server.signal("CONT");
    for each in crowd.callers {
        let error = each.await.expect("no panic").expect_err("there are no replicas");
        let ErrorKind::NotDurable(found) = error.kind() else { panic!("{error}") };
        assert_eq!(found.took_effect, Some(true));
    }
}
