//! Replies that are slow or do not come, and rights that are taken away.

mod common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use common::{Server, add, eventually, queue, tell};
use leaseq::{Client, Wait};
use tokio::io::{AsyncWriteExt, copy_bidirectional};

const LIMIT: Duration = Duration::from_millis(300);
const SECOND: Duration = Duration::from_secs(1);

fn client(url: &str) -> Client {
    Client::builder().node(url).unwrap().reply_timeout(LIMIT).build().unwrap()
}

#[tokio::test]
async fn a_reply_that_trickles_is_not_waited_for_without_bound() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("redis://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"$100000\r\n");
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let begun = Instant::now();
    let queue = client(&url).queue("any").unwrap();
    let error = tokio::time::timeout(10 * SECOND, queue.stats()).await.expect("it ends").unwrap_err();
    assert_eq!((error.code(), error.is_definite()), ("CONNECTION", false));
    assert!(begun.elapsed() > LIMIT);
}

#[tokio::test]
async fn a_late_reply_closes_the_idle_connections_to_the_server_too() {
    let server = Server::start();
    let client = client(&server.url);
    let queue = queue(&client);
    let connections = || tell(server.port, "CLIENT LIST").matches("age=").count() - 1;
    assert!(queue.lease(SECOND, Wait::For(Duration::from_millis(50))).await.unwrap().is_none());
    // one for calls, one that the wait blocked on
    tokio::time::sleep(LIMIT).await; // it settles
    assert_eq!(connections(), 2);
    tell(server.port, "CLIENT PAUSE 600 ALL");
    let error = queue.stats().await.unwrap_err();
    assert_eq!((error.code(), error.is_definite()), ("CONNECTION", false));
    eventually("both are closed", || async { connections() == 0 }).await;
}

#[tokio::test]
async fn a_worker_that_has_worked_outlives_the_loss_of_its_rights() {
    let server = Server::start();
    let client = server.client();
    let queue = queue(&client);
    let worker = client.worker([queue.clone()]).build(|_| async { Ok(()) }).unwrap();
    let running = tokio::spawn({
        let worker = worker.clone();
        async move { worker.run().await }
    });
    add(&queue, &["a"]).await;
    eventually("it is completed", || async { queue.stats().await.unwrap()["items"] == 0 }).await;
    tell(server.port, "ACL SETUSER default -evalsha -eval");
    tell(server.port, &format!("LPUSH leaseq:{{{0}}}:{0}:wake 1", queue.name()));
    tokio::time::sleep(SECOND / 2).await;
    tell(server.port, "ACL SETUSER default +evalsha +eval");
    add(&queue, &["b"]).await;
    eventually("the next one is completed", || async { queue.stats().await.unwrap()["items"] == 0 }).await;
    worker.stop();
    assert_eq!(running.await.unwrap().unwrap(), 2);
}

#[tokio::test]
async fn an_idle_worker_outlives_the_loss_of_its_rights() {
    let server = Server::start();
    let client = server.client();
    let queue = queue(&client);
    let worker = client.worker([queue.clone()]).build(|_| async { Ok(()) }).unwrap();
    let running = tokio::spawn({
        let worker = worker.clone();
        async move { worker.run().await }
    });
    // its waits that are over: the first one is short
    let waits = || -> u32 {
        let counts = tell(server.port, "INFO commandstats");
        let blocks = counts.lines().filter_map(|line| line.strip_prefix("cmdstat_bl")?.split_once("calls="));
        blocks.filter_map(|(_, rest)| rest.split(',').next()?.parse::<u32>().ok()).sum()
    };
    eventually("it waits for the second time", || async { waits() >= 2 }).await;
    tell(server.port, "ACL SETUSER default -evalsha -eval");
    tell(server.port, &format!("LPUSH leaseq:{{{0}}}:{0}:wake 1", queue.name()));
    tokio::time::sleep(SECOND / 2).await;
    tell(server.port, "ACL SETUSER default +evalsha +eval");
    add(&queue, &["a"]).await;
    eventually("it is completed", || async { queue.stats().await.unwrap()["items"] == 0 }).await;
    worker.stop();
    assert_eq!(running.await.unwrap().unwrap(), 1);
}

/// LQ-CLIENT-20: a little longer than the limit, first while it connects, then with a reply to come.
#[tokio::test]
async fn an_event_loop_that_stands_still_is_not_the_network() {
    let limit = 2 * SECOND;
    let server = Server::start();
    for (database, stalls) in [(0, 1), (1, 3)] {
        let url = format!("{}/{database}", server.url);
        let client = Client::builder().node(&url).unwrap().reply_timeout(limit).build().unwrap();
        let queue = client.queue("any").unwrap();
        for _ in 0..stalls {
            let calling = tokio::spawn({
                let queue = queue.clone();
                async move { queue.stats().await }
            });
            tokio::task::yield_now().await; // it is under way
            std::thread::sleep(limit + limit / 10);
            calling.await.expect("it ends").expect("an answer");
        }
    }
}

/// The same with a server that replies later than that: the rest of the limit is there for it.
#[tokio::test]
async fn a_reply_that_comes_after_the_event_loop_stood_still() {
    let limit = 2 * SECOND;
    let server = Server::start();
    let client = Client::builder().node(&server.url).unwrap().reply_timeout(limit).build().unwrap();
    let queue = client.queue("any").unwrap();
    queue.stats().await.expect("it is connected");
    tell(server.port, "CLIENT PAUSE 3000 ALL");
    let calling = tokio::spawn(async move { queue.stats().await });
    tokio::task::yield_now().await;
    std::thread::sleep(limit + limit / 10);
    calling.await.expect("it ends").expect("an answer");
}

/// A front of a server. It refuses what comes first on a connection until `passes` is set, and then passes all on.
#[derive(Default)]
struct Front {
    passes: AtomicBool,
    refused: AtomicUsize,
}

impl Front {
    async fn open(self: Arc<Front>, to: u16, refusal: &'static str) -> u16 {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((outer, _)) = listener.accept().await {
                let front = self.clone();
                tokio::spawn(async move { front.serve(outer, to, refusal).await });
            }
        });
        port
    }

    async fn serve(&self, mut outer: tokio::net::TcpStream, to: u16, refusal: &str) -> std::io::Result<()> {
        if self.passes.load(SeqCst) {
            let mut inner = tokio::net::TcpStream::connect(("127.0.0.1", to)).await?;
            copy_bidirectional(&mut outer, &mut inner).await?;
        } else {
            outer.readable().await?;
            self.refused.fetch_add(1, SeqCst);
            outer.write_all(format!("-{refusal}\r\n").as_bytes()).await?;
            tokio::io::copy(&mut outer, &mut tokio::io::sink()).await?; // until the client closes it
        }
        Ok(())
    }
}

/// LQ-WORK-7: they were taken for a wrong database, and for a wrong password.
#[tokio::test]
async fn a_worker_outlives_refusals_of_its_greeting_that_pass() {
    let server = Server::start();
    let busy = ("", 3, "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.");
    let full = ("default:any@", 0, "ERR max number of clients reached");
    for (user, database, refusal) in [busy, full] {
        let front = Arc::new(Front::default());
        let port = front.clone().open(server.port, refusal).await;
        let client = Client::open(&format!("redis://{user}127.0.0.1:{port}/{database}")).unwrap();
        let queue = queue(&client);
        let error = queue.stats().await.unwrap_err();
        assert_eq!((error.code(), error.is_definite()), ("CONNECTION", true), "{error}");
        let worker = client.worker([queue.clone()]).build(|_| async { Ok(()) }).unwrap();
        let running = tokio::spawn({
            let worker = worker.clone();
            async move { worker.run().await }
        });
        // the call above, the report of the worker and its first call
        eventually("they are refused", || async { front.refused.load(SeqCst) >= 3 }).await;
        front.passes.store(true, SeqCst);
        let direct = Client::open(&format!("{}/{database}", server.url)).unwrap().queue(queue.name()).unwrap();
        add(&direct, &["a"]).await;
        eventually("it is completed", || async { direct.stats().await.unwrap()["items"] == 0 }).await;
        worker.stop();
        assert_eq!(running.await.unwrap().unwrap(), 1);
    }
}
