//! The list of live workers, and wishes for them (LQ-WORKER-5, LQ-WORKER-7).

use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::Cmd;

use crate::client::Client;
use crate::encoding::{bytes_of, strings_of};
use crate::error::{Error, Result};
use crate::item_run::HeldItem;
use crate::keys::is_registry_entry;
use crate::presence::{Report, WORKERS, is_worker_id, key_of, server_time, wish_key_of};

const PAGE: usize = 1000;
const WISH_LIFE_MS: u64 = 86_400_000;

/// A live worker, as of its last report.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WorkerInfo {
    /// Its name.
    pub id: String,
    /// Where it runs.
    pub host: String,
    /// The process that it is in.
    pub pid: u64,
    /// The name and version of its client.
    pub client: String,
    /// When it sent its first report, by the server's clock.
    pub started: SystemTime,
    /// True once it leases no more.
    pub stopping: bool,
    /// True while it leases nothing because a program wishes so: see [`Client::quiet_worker`].
    pub quiet: bool,
    /// How many items it works on at a time at most.
    pub concurrency: u64,
    /// How many items it has completed.
    pub completed: u64,
    /// Those that it leases from, each `<group>:<name>`.
    pub queues: Vec<String>,
    /// How many items it holds.
    pub held: u64,
    /// Up to 100 of them.
    pub items: Vec<HeldItem>,
}

impl Client {
    /// Lists the live workers of all clients.
    pub async fn live_workers(&self) -> Result<Vec<WorkerInfo>> {
        let (router, limit) = (&self.pool.shared, self.pool.limit);
        let now = server_time(router, limit).await?;
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        // by score: ranks shift when an id is renewed or removed, and the score of an id only grows
        let (mut start, mut offset) = (b"-inf".to_vec(), 0);
        loop {
            let mut command = Cmd::new();
            command.arg("ZRANGE").arg(WORKERS).arg(&start).arg("+inf").arg("BYSCORE");
            command.arg("LIMIT").arg(offset).arg(PAGE).arg("WITHSCORES");
            let page = strings_of(router.send(WORKERS.as_bytes(), limit, &command).await?)?;
            for id in page.iter().step_by(2).filter_map(|each| String::from_utf8(each.clone()).ok()) {
                if !is_worker_id(&id) || !seen.insert(id.clone()) {
                    continue;
                }
                let mut command = Cmd::new();
                command.arg("GET").arg(key_of(&id));
                let value = router.send(key_of(&id).as_bytes(), limit, &command).await?;
                found.extend(bytes_of(value).and_then(|text| read_report(&id, &text, now)));
            }
            let Some(last) = page.last().filter(|_| page.len() >= 2 * PAGE) else { break };
            // a page of one score: the ids behind it may have that score too
            let same = if start == *last { offset + PAGE } else { PAGE };
            offset = if page[1] == *last { same } else { 0 };
            start.clone_from(last);
        }
        Ok(found)
    }

    /// Lets a worker lease nothing more for a day, or until [`Client::resume_worker`]: it gives back what it has not started, and handlers that
    /// run go on. It does so with its next report, within 15 seconds. Returns false if no such worker is alive.
    pub async fn quiet_worker(&self, id: &str) -> Result<bool> {
        self.steer(id, Some("quiet")).await
    }

    /// Lets a worker lease again: see [`Client::quiet_worker`].
    pub async fn resume_worker(&self, id: &str) -> Result<bool> {
        self.steer(id, None).await
    }

    /// Stops a worker as [`Worker::stop`](crate::Worker::stop) does: see [`Client::quiet_worker`].
    pub async fn stop_worker(&self, id: &str) -> Result<bool> {
        self.steer(id, Some("stop")).await
    }

    async fn steer(&self, id: &str, wish: Option<&str>) -> Result<bool> {
        if !is_worker_id(id) {
            return Err(Error::refused("the id of a worker has 1 to 200 of A-Z, a-z, 0-9, _, ., : and -"));
        }
        let (key, wish_key) = (key_of(id), wish_key_of(id));
        if wish.is_none() {
            self.wish_command(&wish_key, Cmd::new().arg("DEL").arg(&wish_key)).await?;
        }
        let is_alive = self.wish_command(&key, Cmd::new().arg("GET").arg(&key)).await? != redis::Value::Nil;
        if let (true, Some(wish)) = (is_alive, wish) {
            let mut command = Cmd::new();
            command.arg("SET").arg(&wish_key).arg(wish).arg("PX").arg(WISH_LIFE_MS);
            self.wish_command(&wish_key, &command).await?;
        }
        Ok(is_alive)
    }

    async fn wish_command(&self, key: &str, command: &Cmd) -> Result<redis::Value> {
        self.pool.shared.send(key.as_bytes(), self.pool.limit, command).await
    }
}

/// The largest number of a report: the integers up to here are the same in every language.
const MAX_NUMBER: u64 = (1 << 53) - 1;

/// A report; `None` if it is invalid or of another version. Unknown members are dropped.
fn read_report(id: &str, text: &[u8], now: u64) -> Option<WorkerInfo> {
    let report: Report = serde_json::from_slice(text).ok()?;
    if report.version != 1 || !report.queues.iter().all(|each| is_registry_entry(each)) {
        return None;
    }
    let counts = [report.pid, report.started, report.concurrency, report.completed, report.held];
    let of_items = report.items.iter().flat_map(|each| [each.attempt, each.ms]);
    if counts.into_iter().chain(of_items).any(|number| number > MAX_NUMBER) {
        return None;
    }
    // Workers of earlier clients do not say when they reported.
    let age = report.reported.as_u64().map_or(0, |reported| now.saturating_sub(reported));
    let mut items = report.items;
    items.iter_mut().for_each(|each| each.ms += age);
    Some(WorkerInfo {
        id: id.into(),
        host: report.host,
        pid: report.pid,
        client: report.client,
        started: UNIX_EPOCH + Duration::from_millis(report.started),
        stopping: report.stopping,
        quiet: report.quiet,
        concurrency: report.concurrency,
        completed: report.completed,
        queues: report.queues,
        held: report.held,
        items,
    })
}
