//! A watch of a job, which is cancelled: `cargo run --example watch -- redis://localhost:6379`.

use futures_util::StreamExt;
use leaseq::Client;
use leaseq::jobs::{App, Call, JobStatus};

#[tokio::main]
async fn main() -> leaseq::Result<()> {
    let url = std::env::args().nth(1).unwrap_or("redis://localhost:6379".into());
    let client = Client::open(&url)?;
    let app = App::new(&client, "shop", "labels");
    let job = app.job(app.enqueue(Call::new("shop.print").arg("a label")).await?.id)?;

    let mut watch = std::pin::pin!(job.watch());
    while let Some(info) = watch.next().await {
        let status = info?.status;
        println!("{}", status.as_str());
        if status == JobStatus::Ready {
            job.cancel().await?; // no worker runs here
        }
    }
    Ok(())
}
