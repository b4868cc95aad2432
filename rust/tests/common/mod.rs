//! A server for the tests of a file, and queues of a test alone.
#![allow(dead_code)]

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use leaseq::{AddOptions, Client, NewItem, Queue};

/// A server that ends with the test.
pub struct Server {
    process: Child,
    pub url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A server of the cache that `make servers-newest` fills.
fn program() -> PathBuf {
    let own = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.servers");
    let cache = std::env::var_os("LEASEQ_SERVERS_DIR").map_or_else(own, PathBuf::from);
    cache.join("bin").join(std::env::var("LEASEQ_TEST_SERVER").unwrap_or_else(|_| "valkey-9.1.2".into()))
}

impl Server {
    pub fn start() -> Server {
        Server::start_at(TcpListener::bind("127.0.0.1:0").and_then(|found| found.local_addr()).expect("a free port").port())
    }

    pub fn start_at(port: u16) -> Server {
        let (program, folder) = (program(), std::env::temp_dir());
        let process = Command::new(&program)
            .args(["--port", &port.to_string(), "--save", "", "--dir"])
            .arg(folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}: run make servers-newest", program.display()));
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(10), "the server does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        Server { process, url: format!("redis://127.0.0.1:{port}") }
    }

    pub fn client(&self) -> Client {
        Client::open(&self.url).expect("a client")
    }
}

/// A queue of the test alone.
pub fn queue(client: &Client) -> Queue {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    client.queue(&format!("q{}", NEXT.fetch_add(1, SeqCst))).expect("a queue")
}

pub async fn add(queue: &Queue, ids: &[&str]) {
    for id in ids {
        let item = NewItem::new(*id, format!("data of {id}")).with(AddOptions::new());
        assert!(queue.add(item).await.expect("added").is_new());
    }
}

/// Waits until a condition holds.
pub async fn eventually<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    for _ in 0..500 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it never came: {what}");
}
