//! A worker whose handler fails, and its dead letters: `cargo run --example mails -- redis://localhost:6379`.

use leaseq::{Client, HandlerError, ListOrder, ListState, NewItem, Task};

async fn send(mail: Task) -> Result<(), HandlerError> {
    let address = std::str::from_utf8(mail.data())?; // any error of the standard library's kind: the mail comes back later
    if !address.contains('@') {
        return Err(HandlerError::DeadLetter(format!("{address} is no address"))); // never again
    }
    if address.starts_with("later") {
        let (reason, delay) = ("greylisted".into(), Some(std::time::Duration::from_secs(300)));
        return Err(HandlerError::GiveBack { reason, delay, uncounted: true });
    }
    deliver(address).await.map_err(HandlerError::failed) // an error of any kind, as of anyhow
}

async fn deliver(address: &str) -> Result<(), Box<dyn std::error::Error>> {
    println!("sending to {address}");
    Ok(())
}

#[tokio::main]
async fn main() -> leaseq::Result<()> {
    let url = std::env::args().nth(1).unwrap_or("redis://localhost:6379".into());
    let client = Client::open(&url)?;
    let mails = client.queue("mails")?;
    let worker = client.worker([mails.clone()]).build(send)?;
    for (id, address) in [("1", "ada"), ("2", "ada@example.org")] {
        mails.add(NewItem::new(id, address)).await?;
    }
    let stopped = worker.clone();
    tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await; // in place of a signal
        stopped.stop();
    });
    println!("completed {}", worker.run().await?);

    let dead = mails.list(ListState::Dead, 0, 100, ListOrder::Backward).await?; // the newest first
    for letter in &dead.items {
        let found = &mails.inspect(&[&letter.id]).await?[0];
        println!("{} failed: {}", letter.id, String::from_utf8_lossy(&found.error));
    }
    println!("revived {:?}", mails.revive(&["1"]).await?); // ready again, with all its attempts
    client.close().await;
    Ok(())
}
