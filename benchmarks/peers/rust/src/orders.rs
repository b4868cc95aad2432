//! What an adapter is to do: see Orders in adapters/common.py.

use std::io;
use std::time::Duration;

use serde::Deserialize;

use crate::traces::Traces;

#[derive(Clone, Deserialize)]
pub struct Orders {
    pub role: String,
    pub port: u16,
    pub folder: String,
    pub handler: String,
    pub wait_ms: f64,
    pub variant: String,
    pub database: u32,
    concurrency: usize,
}

impl Orders {
    pub fn produces(&self) -> bool {
        self.role == "produce"
    }

    pub fn concurrency(&self, best: usize) -> usize {
        if self.concurrency > 0 { self.concurrency } else { best }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/{}", self.port, self.database)
    }
}

/// Handles one item: takes the time that it is ordered to take, and leaves traces.
pub async fn work(orders: &Orders, traces: &Traces, data: &str) -> io::Result<()> {
    if orders.handler == "wait" {
        tokio::time::sleep(Duration::from_secs_f64(orders.wait_ms / 1000.0)).await;
    }
    traces.leave(&orders.handler, data)
}
