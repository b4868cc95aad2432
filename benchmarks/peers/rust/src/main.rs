//! The adapters in Rust: one program, whose first argument says which. The same as adapters/common.py, which explains the protocol.

mod apalis;
mod leaseq;
mod orders;
mod producer;
mod traces;

use anyhow::Result;
use orders::Orders;

#[tokio::main]
async fn main() -> Result<()> {
    let orders: Orders = serde_json::from_str(&std::env::var("LEASEQ_BENCH")?)?;
    let program = std::env::args().nth(1).unwrap_or_default();
    // on a thread of the runtime, as the handlers of a server run
    let ran = tokio::spawn(async move { if program == "apalis.rs" { apalis::run(orders).await } else { leaseq::run(orders).await } });
    ran.await?
}
