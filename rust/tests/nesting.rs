//! A program nests our futures into its own: rustc refuses what is nested deeper than its limit, 128 unless the program raises it.

#![recursion_limit = "64"]

mod common;

use std::time::Duration;

use common::{Server, queue};
use leaseq::jobs::{App, Call, JobEnd};
use leaseq::{AddOptions, NewItem, Task, Wait};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn our_futures_leave_half_of_the_limit_of_rustc_to_the_program() {
    let server = Server::start();
    let client = server.client();
    let (orders, letters) = (queue(&client), client.queue_in("other", "letters").unwrap());
    let ends = tokio::spawn(async move {
        orders.add(NewItem::new("a", "x")).await?;
        orders.add(NewItem::new("b", "x")).await?;
        let one = orders.lease(MINUTE, Wait::For(MINUTE)).await?.expect("an item");
        assert!(one.complete().await?);
        let other = client.lease_any(&[letters, orders.clone()], 1, MINUTE, Wait::For(MINUTE)).await?.remove(0);
        assert!(other.complete().await?);

        let app = App::new(&client, "shop", "parcels").function("length", |_, (text,): (String,)| async move { Ok(text.len()) });
        let worker = app.worker(client.worker([app.queue()?]))?;
        let plain = client.worker([orders]).build(|_: Task| async { Ok(()) })?;
        let running = tokio::spawn(async move { tokio::join!(worker.run(), plain.run()) });
        let job = app.enqueue(Call::new("length").arg("four").options(AddOptions::new().keep(MINUTE))).await?;
        let end = app.job(job.id)?.end::<usize>(Wait::For(MINUTE)).await?;
        client.close().await;
        running.await.expect("they end").0?;
        leaseq::Result::Ok(end)
    });
    assert_eq!(ends.await.unwrap().unwrap(), JobEnd::Returned(4));
}
