//! A worker reports itself to the server (02.9). That never fails or delays the work (LQ-WORKER-3): it has a separate connection, and its
//! errors are ignored.

use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::Cmd;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::encoding::{bytes_of, strings_of};
use crate::error::{Error, Result};
use crate::item_run::HeldItem;
use crate::router::Router;
use crate::verdict::random_number;
use crate::worker::Shared;

pub(crate) const WORKERS: &str = "leaseq:workers";
pub(crate) const MAX_REPORTED: usize = 100;
const LIFE: Duration = Duration::from_secs(30);
const INTERVAL: Duration = Duration::from_secs(10);
const INDEX_LIFE_MS: u64 = 600_000;
const INDEX_REFRESH: Duration = Duration::from_secs(60);
const MAX_EXPIRED_IDS: usize = 100;
/// The time of each command of a report. A worker that stops waits for the last ones.
const LIMIT: Duration = Duration::from_secs(1);

/// What changes in the reports of a worker.
pub(crate) struct Status {
    pub(crate) stopping: bool,
    pub(crate) quiet: bool,
    pub(crate) completed: usize,
    pub(crate) held: usize,
    pub(crate) items: Vec<HeldItem>,
}

/// What stands on the server.
#[derive(Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) version: u64,
    #[serde(default)]
    pub(crate) reported: serde_json::Value,
    pub(crate) host: String,
    pub(crate) pid: u64,
    pub(crate) client: String,
    pub(crate) started: u64,
    pub(crate) concurrency: u64,
    pub(crate) queues: Vec<String>,
    pub(crate) stopping: bool,
    #[serde(default)]
    pub(crate) quiet: bool,
    pub(crate) completed: u64,
    pub(crate) held: u64,
    pub(crate) items: Vec<HeldItem>,
}

pub(crate) struct Presence {
    ended: CancellationToken,
    task: JoinHandle<()>,
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.ended.cancel();
    }
}

impl Presence {
    pub(crate) fn begin(worker: &Arc<Shared>) -> Presence {
        let ended = CancellationToken::new();
        let router = worker.client.pool.dedicated();
        let reporting = Reporting { worker: Arc::downgrade(worker), id: worker.settings.id.clone(), router, registered: None, started: 0 };
        Presence { task: tokio::spawn(reporting.run(ended.clone(), worker.stopping.clone())), ended }
    }

    /// Removes the worker from the server, if that can be reached (LQ-WORKER-4).
    pub(crate) async fn end(mut self) {
        self.ended.cancel();
        let _ = timeout(LIMIT, &mut self.task).await;
        self.task.abort();
    }
}

struct Reporting {
    worker: Weak<Shared>,
    id: String,
    router: Arc<Router>,
    /// When it last entered the index, and what the server's clock said then.
    registered: Option<(Instant, u64)>,
    started: u64,
}

pub(crate) fn key_of(id: &str) -> String {
    format!("leaseq:worker:{id}")
}

/// The key of what a program wishes a worker to do.
pub(crate) fn wish_key_of(id: &str) -> String {
    format!("{}/wish", key_of(id))
}

fn words(all: &[&str]) -> Cmd {
    let mut command = Cmd::new();
    for each in all {
        command.arg(*each);
    }
    command
}

impl Reporting {
    async fn run(mut self, ended: CancellationToken, stopping: CancellationToken) {
        let mut told_stop = false;
        while !ended.is_cancelled() {
            let sent = tokio::select! {
                sent = self.send() => sent,
                () = ended.cancelled() => break,
            };
            if sent.unwrap_or(false) {
                continue; // a program steered it
            }
            tokio::select! {
                () = sleep(INTERVAL) => {}
                () = ended.cancelled() => {}
                () = stopping.cancelled(), if !told_stop => told_stop = true,
            }
        }
        let key = key_of(&self.id);
        let _ = self.command(&key, words(&["DEL", &key])).await;
        let wish = wish_key_of(&self.id);
        let _ = self.command(&wish, words(&["DEL", &wish])).await;
        let _ = self.command(WORKERS, words(&["ZREM", WORKERS, &self.id])).await;
    }

    async fn command(&self, key: &str, command: Cmd) -> Result<redis::Value> {
        self.router.send(key.as_bytes(), LIMIT, &command).await
    }

    /// Sends a report, and returns whether the worker is to do something else from now on.
    async fn send(&mut self) -> Result<bool> {
        let (registered, now) = match self.registered {
            Some(found) if found.0.elapsed() < INDEX_REFRESH => found,
            _ => self.register().await?,
        };
        let Some(worker) = self.worker.upgrade() else { return Ok(false) };
        let status = worker.status();
        let report = Report {
            version: 1,
            reported: (now + registered.elapsed().as_millis() as u64).into(),
            host: host(),
            pid: std::process::id().into(),
            client: format!("leaseq (Rust) {}", crate::VERSION),
            started: self.started,
            concurrency: worker.settings.concurrency as u64,
            queues: worker.queues.iter().map(|each| each.keys().registry_entry().to_owned()).collect(),
            stopping: status.stopping,
            quiet: status.quiet,
            completed: status.completed as u64,
            held: status.held as u64,
            items: status.items,
        };
        let text = serde_json::to_string(&report).map_err(|_| Error::refused("the report cannot be written"))?;
        let key = key_of(&self.id);
        self.command(&key, words(&["SET", &key, &text, "PX", &LIFE.as_millis().to_string()])).await?;
        let key = wish_key_of(&self.id);
        let wish = bytes_of(self.command(&key, words(&["GET", &key])).await?).unwrap_or_default();
        Ok(worker.steer(&String::from_utf8_lossy(&wish)))
    }

    /// Enters the worker in the index, by the server's clock, and removes expired ids from it (LQ-WORKER-2).
    async fn register(&mut self) -> Result<(Instant, u64)> {
        let begun = Instant::now();
        let now = server_time(&self.router, LIMIT).await?;
        self.command(WORKERS, words(&["ZADD", WORKERS, &(now + INDEX_LIFE_MS).to_string(), &self.id])).await?;
        if self.started == 0 {
            self.started = now;
        }
        self.registered = Some((begun, now));
        let limit = MAX_EXPIRED_IDS.to_string();
        let expired = words(&["ZRANGEBYSCORE", WORKERS, "-inf", &now.to_string(), "LIMIT", "0", &limit]);
        if let Ok(ids) = self.command(WORKERS, expired).await.and_then(strings_of)
            && !ids.is_empty()
        {
            let mut command = words(&["ZREM", WORKERS]);
            for id in &ids {
                command.arg(id.as_slice());
            }
            let _ = self.command(WORKERS, command).await;
        }
        Ok((begun, now))
    }
}

/// The server's time in milliseconds since 1970.
pub(crate) async fn server_time(router: &Router, limit: Duration) -> Result<u64> {
    let reply = strings_of(router.send_once(WORKERS.as_bytes(), limit, &words(&["TIME"])).await?)?;
    let number = |at: usize| reply.get(at).and_then(|each| std::str::from_utf8(each).ok()?.parse::<u64>().ok());
    match (number(0), number(1)) {
        (Some(seconds), Some(micros)) => Ok(seconds * 1000 + micros / 1000),
        _ => Err(Error::bad_reply("no time")),
    }
}

fn host() -> String {
    gethostname::gethostname().to_string_lossy().into_owned()
}

pub(crate) fn is_worker_id(id: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    (1..=200).contains(&id.len()) && id.bytes().all(allowed)
}

/// A new id of a worker: `<host>:<pid>:<random>`.
pub(crate) fn new_worker_id() -> String {
    let usable = |each: char| if each.is_ascii_alphanumeric() || "_.-".contains(each) { each } else { '_' };
    let host: String = host().chars().take(100).map(usable).collect();
    format!("{host}:{}:{:012x}", std::process::id(), random_number() >> 16)
}
