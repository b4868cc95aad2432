//! A server for the tests of a file, and queues of a test alone.
#![allow(dead_code)]

use std::io::{Read, Write};
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
    pub port: u16,
}

/// A port for this test alone, below those that the system gives to connections: a server that restarts finds it free.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(101);
    let ports = std::iter::repeat_with(|| 12_000 + (first.wrapping_add(NEXT.fetch_add(1, SeqCst)) % 18_000) as u16);
    let mut free = ports.take(1000).filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.next().expect("a free port")
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
        // a port that was free may be that of another test's server by now
        Server::with(&[])
    }

    pub fn start_at(port: u16) -> Server {
        Server::start_with(port, &[])
    }

    pub fn start_with(port: u16, words: &[&str]) -> Server {
        Server::try_start(port, words).expect("the port is free")
    }

    /// None if another server has the port.
    fn try_start(port: u16, words: &[&str]) -> Option<Server> {
        let (program, folder) = (program(), std::env::temp_dir());
        let mut process = Command::new(&program)
            .args(words)
            .args(["--port", &port.to_string(), "--save", "", "--dir"])
            .arg(folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}: run make servers-newest", program.display()));
        let begun = Instant::now();
        while !is_server(port, process.id()) {
            if process.try_wait().expect("its state").is_some() {
                return None;
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "the server does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(Server { process, url: format!("redis://127.0.0.1:{port}"), port })
    }

    /// A server with these options.
    pub fn with(words: &[&str]) -> Server {
        (0..5).find_map(|_| Server::try_start(free_port(), words)).expect("a server with a free port")
    }

    /// Sends a signal, such as STOP and CONT.
    pub fn signal(&self, name: &str) {
        let done = Command::new("kill").args([&format!("-{name}"), &self.process.id().to_string()]).status();
        assert!(done.expect("kill").success());
    }

    pub fn client(&self) -> Client {
        Client::open(&self.url).expect("a client")
    }
}

/// Whether the server at a port is this process.
fn is_server(port: u16, process: u32) -> bool {
    ask(port, "INFO server").is_ok_and(|seen| seen.contains(&format!("process_id:{process}\r\n")))
}

/// The start of the reply to a command. A server that is silent for a second gives none.
fn ask(port: u16, command: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    write!(stream, "{command}\r\n")?;
    let mut bytes = [0; 16384];
    let count = stream.read(&mut bytes).unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes[..count]).into_owned())
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

/// The start of the reply to a command.
pub fn tell(port: u16, command: &str) -> String {
    ask(port, command).expect("it listens")
}
