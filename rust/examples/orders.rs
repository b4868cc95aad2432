//! The program of docs/rust.md.

use std::time::Duration;

use futures_util::StreamExt;
use leaseq::{AddOptions, Client, NewItem, Wait};

#[tokio::main]
async fn main() -> leaseq::Result<()> {
    let url = std::env::args().nth(1).unwrap_or("redis://localhost:6379".into());
    let client = Client::open(&url)?;
    let orders = client.queue("orders")?;
    let keep = AddOptions::new().keep(Duration::from_secs(3600));
    println!("{}", orders.add(NewItem::new("order-1", "two books").with(keep)).await?.is_new());

    let mut items = std::pin::pin!(orders.items(1, Duration::from_secs(30), Wait::For(Duration::from_secs(1))));
    while let Some(item) = items.next().await {
        let item = item?;
        item.heartbeat(); // extends the lease until the item is completed, released or lost
        let done = item.complete_with(item.completion().result("sent")).await?;
        println!("{} {}", item.id(), done.completed);
    }
    Ok(())
}
