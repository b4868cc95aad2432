// apalis, with apalis-redis.
//
// Settings:
// - `batch_size(100)` and `concurrency(100)`; the batch is 10 by default
// - `poll_with_interval` of 10 ms: how often an idle worker polls
// - `persist_results(false)` and `emit_events(false)`: no results are kept, and nothing is published to subscribers that there are not;
//   leases (`lock_tasks`) stay on, as by default
// - replies may take a minute: with half a second, the default of redis-rs, drains ended with "timed out"
// - bulk: `push_bulk`, 500 at a time
// - finished tasks stay on the server until the application calls `vacuum`. Each task goes through the set of scheduled ones, and a
//   worker moves all that are due at once, as arguments of one command: Lua allows some 8,000, as its source reads (not tried), so that
//   fewer wait in these measures
//
// Reference: https://docs.rs/apalis/1.0.0, https://docs.rs/apalis-redis/1.0.0

use std::sync::Arc;
use std::time::Duration;

use apalis::prelude::*;
use apalis_redis::{Config, ConnectionManager, RedisStorage};
use redis::aio::ConnectionManagerConfig;
use serde::{Deserialize, Serialize};

use crate::orders::{Orders, work};
use crate::producer::{Job, Producer, produce};
use crate::traces::Traces;
use anyhow::Result;

const WIDTH: usize = 500;

#[derive(Debug, Deserialize, Serialize)]
struct Handle {
    data: String,
}

impl Producer for RedisStorage<Handle> {
    async fn one(&mut self, job: Job) -> Result<()> {
        Ok(self.push(Handle { data: job.data }).await?)
    }

    async fn bulk(&mut self, jobs: Vec<Job>) -> Result<()> {
        let mut jobs = jobs.into_iter().peekable();
        while jobs.peek().is_some() {
            self.push_bulk(jobs.by_ref().take(WIDTH).map(|job| Handle { data: job.data }).collect()).await?;
        }
        Ok(())
    }
}

/// As `apalis_redis::connect`, but patient.
async fn connect(orders: &Orders) -> Result<ConnectionManager> {
    let patient = ConnectionManagerConfig::new().set_response_timeout(Some(Duration::from_secs(60)));
    Ok(redis::Client::open(orders.url())?.get_connection_manager_with_config(patient).await?)
}

pub async fn run(orders: Orders) -> Result<()> {
    let at_a_time = orders.concurrency(100);
    let config = Config::default().queue("bench").batch_size(at_a_time).persist_results(false).emit_events(false);
    let storage = RedisStorage::<Handle>::new(connect(&orders).await?).with_config(config);
    if orders.produces() {
        return produce(storage).await;
    }
    let shared = Arc::new((Traces::new(&orders)?, orders.clone()));
    let worker = WorkerBuilder::new(format!("worker-{}", std::process::id()))
        .backend(storage.poll_with_interval(Duration::from_millis(10)))
        .concurrency(at_a_time)
        .build(move |job: Handle| {
            let shared = shared.clone();
            async move {
                let (traces, orders) = &*shared;
                Ok::<(), BoxDynError>(work(orders, traces, &job.data).await?)
            }
        });
    tokio::spawn(worker.run()).await??;
    Ok(())
}
