//! Servers behind Sentinels: a real one, and some that only answer where the primary is.

mod common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use common::{Server, add, eventually, queue, tell};
use leaseq::{Client, Queue};

const SECOND: Duration = Duration::from_secs(1);

/// A Sentinel that names a port as that of the primary, or is silent.
fn sentinel(primary: Option<u16>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("redis://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut bytes = [0; 1024];
                while stream.read(&mut bytes).is_ok_and(|count| count > 0) {
                    if let Some(port) = primary.map(|port| port.to_string()) {
                        let _ = write!(stream, "*2\r\n$9\r\n127.0.0.1\r\n${}\r\n{port}\r\n", port.len());
                    }
                }
            });
        }
    });
    url
}

fn client(sentinels: &[String], limit: Duration) -> Client {
    let mut builder = Client::builder().reply_timeout(limit).sentinel_master("main");
    for each in sentinels {
        builder = builder.node(each).unwrap();
    }
    builder.build().unwrap()
}

async fn ready(queue: &Queue) -> i64 {
    queue.stats().await.unwrap()["ready"]
}

#[tokio::test]
async fn a_silent_sentinel_leaves_time_to_ask_another() {
    let server = Server::start();
    let client = client(&[sentinel(None), sentinel(None), sentinel(Some(server.port))], SECOND);
    add(&queue(&client), &["a"]).await;
}

#[tokio::test]
async fn a_replica_that_a_sentinel_names_is_not_taken_for_the_primary() {
    let server = Server::start();
    let replica = Server::with(&["--replicaof", "127.0.0.1", &server.port.to_string()]);
    let both = client(&[sentinel(Some(replica.port)), sentinel(Some(server.port))], 5 * SECOND);
    let queue = queue(&both);
    add(&queue, &["a"]).await;
    let error = client(&[sentinel(Some(replica.port))], SECOND).queue(queue.name()).unwrap().stats().await.unwrap_err();
    assert_eq!((error.code(), error.is_definite()), ("CONNECTION", true));
}

#[tokio::test]
async fn a_client_finds_the_new_primary_after_a_failover() {
    let server = Server::start();
    let replica = Server::with(&["--replicaof", "127.0.0.1", &server.port.to_string()]);
    let config = std::env::temp_dir().join(format!("leaseq-sentinel-{}.conf", std::process::id()));
    let lines = [
        format!("sentinel monitor main 127.0.0.1 {} 1", server.port),
        "sentinel down-after-milliseconds main 1000".into(),
        "sentinel failover-timeout main 3000".into(),
    ];
    std::fs::write(&config, lines.join("\n")).unwrap();
    let watching = Server::with(&[config.to_str().unwrap(), "--sentinel"]);
    let client = client(std::slice::from_ref(&watching.url), SECOND);
    let queue = queue(&client);
    add(&queue, &["a"]).await;
    eventually("the Sentinel knows the replica", || async { tell(watching.port, "SENTINEL FAILOVER main").starts_with("+OK") }).await;
    eventually("the replica is the primary", || async { tell(replica.port, "ROLE").contains("master") }).await;
    eventually("the client has found it", || async { queue.add(leaseq::NewItem::new("b", "")).await.is_ok() }).await;
    assert_eq!(ready(&queue).await, 2);
    let _ = std::fs::remove_file(config);
}
