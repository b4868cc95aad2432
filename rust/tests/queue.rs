//! The queue on a real server: what the conformance suite cannot see of the API.

mod common;

use std::time::Duration;

use common::{Server, add, eventually, queue};
use futures_util::StreamExt;
use leaseq::{AddOptions, Client, ConfigureOptions, ErrorKind, NewItem, OutcomeState, ReleaseOptions, Released, ScriptError, State, Wait};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn an_item_is_added_leased_and_completed_once() {
    let server = Server::start();
    let client = server.client();
    let orders = queue(&client);
    let item = NewItem::new("order-1", "two books").with(AddOptions::new().keep(MINUTE).header("trace", "7f"));
    assert!(orders.add(item.clone()).await.unwrap().is_new());
    assert!(orders.add(item).await.unwrap().existed());
    let leased = orders.lease(MINUTE, Wait::No).await.unwrap().unwrap();
    assert_eq!((leased.id(), leased.data(), leased.attempt()), ("order-1", &b"two books"[..], 1));
    assert_eq!(leased.header("trace"), Some(&b"7f"[..]));
    assert!(leased.is_held());
    assert!(leased.complete_with(leased.completion().result("sent")).await.unwrap().completed);
    assert!(!leased.is_held());
    let outcome = orders.wait_outcome("order-1", Wait::For(MINUTE)).await.unwrap();
    assert_eq!((outcome.state, outcome.content), (OutcomeState::Result, b"sent".to_vec()));
    client.close().await;
}

#[tokio::test]
async fn a_lease_that_is_dropped_is_released_and_a_forgotten_one_is_not() {
    let server = Server::start();
    let client = server.client();
    let queue = queue(&client);
    add(&queue, &["a"]).await;
    drop(queue.lease(MINUTE, Wait::No).await.unwrap().unwrap());
    let again = queue.lease(MINUTE, Wait::For(MINUTE)).await.unwrap().unwrap();
    assert_eq!(again.attempt(), 2);
    again.forget();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(queue.inspect(&["a"]).await.unwrap()[0].state, State::Leased);
}

#[tokio::test]
async fn a_wait_that_is_dropped_gives_back_what_came() {
    let server = Server::start();
    let client = server.client();
    let queue = queue(&client);
    for round in 0..20 {
        let waiting = tokio::spawn({
            let queue = queue.clone();
            async move { queue.lease(MINUTE, Wait::Forever).await.map(|found| found.map(|item| item.id().to_owned())) }
        });
        tokio::time::sleep(Duration::from_millis(5)).await;
        let id = format!("{round}");
        add(&queue, &[&id]).await;
        waiting.abort();
        let _ = waiting.await;
        let item = queue.lease(MINUTE, Wait::For(MINUTE)).await.unwrap().unwrap();
        assert!(item.complete().await.unwrap());
    }
}

#[tokio::test]
async fn a_stream_ends_when_nothing_comes_and_gives_back_what_was_not_taken() {
    let server = Server::start();
    let client = server.client();
    let queue = queue(&client);
    add(&queue, &["a", "b", "c"]).await;
    {
        let mut items = std::pin::pin!(queue.items(3, MINUTE, Wait::No));
        let first = items.next().await.unwrap().unwrap();
        assert!(first.complete().await.unwrap());
    }
    let ready = || async { queue.stats().await.unwrap()["ready"] == 2 };
    eventually("b and c are ready", ready).await;
    let mut items = std::pin::pin!(queue.items(1, MINUTE, Wait::No));
    let mut ids = Vec::new();
    while let Some(item) = items.next().await {
        let item = item.unwrap();
        ids.push(item.id().to_owned());
        assert_eq!(item.attempt(), 1);
        item.complete().await.unwrap();
    }
    assert_eq!(ids, ["b", "c"]);
}

#[tokio::test]
async fn errors_say_what_they_are() {
    let server = Server::start();
    let client = server.client();
    let queue = queue(&client);
    let error = queue.add(NewItem::new("", "")).await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Script(ScriptError::BadId));
    assert!(error.is_definite() && error.is_invalid());
    let mut limits = ConfigureOptions::new();
    limits.max_items = Some(1);
    queue.configure(&limits).await.unwrap();
    let error = queue.add_all(&[NewItem::new("a", ""), NewItem::new("b", "")], Wait::No).await.unwrap_err();
    assert_eq!((error.cause.kind(), error.answers.len(), error.without_room()), (&ErrorKind::Full, 2, 1));
    assert!(client.queue("no spaces").is_err());
    client.close().await;
    assert_eq!(*queue.lease(MINUTE, Wait::No).await.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn a_url_that_is_not_understood_is_refused_without_its_password() {
    for url in ["http://h", "redis://:secret@h?unknown=1", "redis://:secret@h/x", "redis://h#part"] {
        let error = Client::open(url).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn an_unreachable_server_is_a_definite_error() {
    let client = Client::open("redis://127.0.0.1:1").unwrap();
    let error = queue(&client).stats().await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Connection);
    assert!(error.is_definite());
}

#[tokio::test]
async fn a_heartbeat_holds_a_lease_until_another_takes_the_item() {
    let server = Server::start();
    let client = server.client();
    let queue = queue(&client);
    add(&queue, &["a"]).await;
    let item = queue.lease(Duration::from_millis(600), Wait::No).await.unwrap().unwrap();
    item.heartbeat();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(item.is_held());
    assert_eq!(queue.remove(&["a"]).await.unwrap(), [State::Leased]);
    tokio::time::timeout(MINUTE, item.lost()).await.unwrap();
    assert_eq!(item.release(ReleaseOptions::new()).await.unwrap(), Released::Lost);
}
