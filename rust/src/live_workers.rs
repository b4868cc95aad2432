//! The list of live workers (LQ-WORKER-5).

use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::Cmd;

use crate::client::Client;
use crate::encoding::{bytes_of, strings_of};
use crate::error::Result;
use crate::item_run::HeldItem;
use crate::keys::is_registry_entry;
use crate::presence::{Report, WORKERS, is_worker_id, key_of, server_time};

const PAGE: isize = 1000;

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
        for start in (0..).step_by(PAGE as usize) {
            let mut command = Cmd::new();
            command.arg("ZRANGE").arg(WORKERS).arg(start).arg(start + PAGE - 1);
            let page = strings_of(router.send(WORKERS.as_bytes(), limit, &command).await?)?;
            let count = page.len();
            for id in page.into_iter().filter_map(|each| String::from_utf8(each).ok()) {
                if !is_worker_id(&id) || !seen.insert(id.clone()) {
                    continue;
                }
                let mut command = Cmd::new();
                command.arg("GET").arg(key_of(&id));
                let value = router.send(key_of(&id).as_bytes(), limit, &command).await?;
                found.extend(bytes_of(value).and_then(|text| read_report(&id, &text, now)));
            }
            if count < PAGE as usize {
                break;
            }
        }
        Ok(found)
    }
}

/// A report; `None` if it is invalid or of another version. Unknown members are dropped.
fn read_report(id: &str, text: &[u8], now: u64) -> Option<WorkerInfo> {
    let report: Report = serde_json::from_slice(text).ok()?;
    if report.version != 1 || !report.queues.iter().all(|each| is_registry_entry(each)) {
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
        concurrency: report.concurrency,
        completed: report.completed,
        queues: report.queues,
        held: report.held,
        items,
    })
}
