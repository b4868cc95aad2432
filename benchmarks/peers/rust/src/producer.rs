//! Enqueues as told on standard input, one order a line: one by one, by a crowd, in bulk, or one by one with pauses.

use std::future::Future;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::traces::{cpu_seconds, now};
use anyhow::Result;

pub struct Job {
    pub id: String,
    pub data: String,
}

/// How many callers a crowd has, each with single calls.
const AT_ONCE: usize = 100;

/// A library, as a producer uses it.
pub trait Producer: Clone + Send + 'static {
    fn one(&mut self, job: Job) -> impl Future<Output = Result<()>> + Send;
    fn bulk(&mut self, jobs: Vec<Job>) -> impl Future<Output = Result<()>> + Send;
}

#[derive(Deserialize)]
struct Order {
    how: String,
    count: usize,
    first: usize,
    size: usize,
    gap_ms: (f64, f64),
}

#[derive(Default, Serialize)]
struct Answer {
    seconds: f64,
    cpu: f64,
    sent: Vec<u64>,
}

impl Order {
    fn jobs(&self) -> Vec<Job> {
        let numbers = self.first..self.first + self.count;
        numbers
            .map(|number| Job { id: format!("item-{number:010}"), data: format!("{:x<1$}", format!("{number:010}"), self.size) })
            .collect()
    }
}

async fn crowd(library: &impl Producer, jobs: Vec<Job>) -> Result<()> {
    let mut shares: Vec<Vec<Job>> = (0..AT_ONCE).map(|_| Vec::new()).collect();
    for (at, job) in jobs.into_iter().enumerate() {
        shares[at % AT_ONCE].push(job);
    }
    let mut callers = tokio::task::JoinSet::new();
    for share in shares {
        let mut library = library.clone();
        callers.spawn(async move {
            for job in share {
                library.one(job).await?;
            }
            Ok::<(), anyhow::Error>(())
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended??;
    }
    Ok(())
}

pub async fn produce(mut library: impl Producer) -> Result<()> {
    println!("{}", serde_json::json!({"ready": true, "bulk": true}));
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let order: Order = serde_json::from_str(&line)?;
        let (jobs, mut sent) = (order.jobs(), Vec::new());
        let (began, spent) = (Instant::now(), cpu_seconds());
        match order.how.as_str() {
            "bulk" => library.bulk(jobs).await?,
            "crowd" => crowd(&library, jobs).await?,
            "paced" => {
                let (low, high) = order.gap_ms;
                for job in jobs {
                    tokio::time::sleep(Duration::from_secs_f64((low + fastrand::f64() * (high - low)) / 1000.0)).await;
                    sent.push(now());
                    library.one(job).await?;
                }
            }
            _ => {
                for job in jobs {
                    library.one(job).await?;
                }
            }
        }
        let answer = Answer { seconds: began.elapsed().as_secs_f64(), cpu: cpu_seconds() - spent, sent };
        println!("{}", serde_json::to_string(&answer)?);
    }
    Ok(())
}
