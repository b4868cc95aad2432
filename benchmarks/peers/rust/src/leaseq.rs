// leaseq in Rust, from this checkout.
//
// Settings:
// - the variant `items` is `client.worker`, `jobs` is a worker of `jobs::App`, whose results are not kept, which is the default
// - `concurrency(100)` and `lease_ahead(100)`, as apalis's, which takes batches of 100
// - bulk: `add_all`, `App::enqueue_all`
//
// Reference: docs/rust.md

use std::sync::Arc;

use leaseq::jobs::{App, Call, Context};
use leaseq::{Client, NewItem, Queue, Wait};

use crate::orders::{Orders, work};
use crate::producer::{Job, Producer, produce};
use crate::traces::Traces;
use anyhow::Result;

pub async fn run(orders: Orders) -> Result<()> {
    let client = Client::open(&orders.url())?;
    if orders.variant == "jobs" { run_jobs(&client, orders).await } else { run_items(&client, orders).await }
}

#[derive(Clone)]
struct Items(Queue);

impl Producer for Items {
    async fn one(&mut self, job: Job) -> Result<()> {
        self.0.add(NewItem::new(job.id, job.data)).await?;
        Ok(())
    }

    async fn bulk(&mut self, jobs: Vec<Job>) -> Result<()> {
        let items: Vec<NewItem> = jobs.into_iter().map(|job| NewItem::new(job.id, job.data)).collect();
        self.0.add_all(&items, Wait::No).await.map_err(leaseq::Error::from)?;
        Ok(())
    }
}

async fn run_items(client: &Client, orders: Orders) -> Result<()> {
    let queue = client.queue("bench")?;
    if orders.produces() {
        return produce(Items(queue)).await;
    }
    let at_a_time = orders.concurrency(100);
    let shared = Arc::new((Traces::new(&orders)?, orders.clone()));
    let worker = client.worker([queue]).concurrency(at_a_time).lease_ahead(at_a_time).build(move |item| {
        let shared = shared.clone();
        async move {
            let (traces, orders) = &*shared;
            work(orders, traces, std::str::from_utf8(item.data())?).await?;
            Ok(())
        }
    })?;
    worker.run().await?;
    Ok(())
}

#[derive(Clone)]
struct Jobs(Arc<App>);

impl Producer for Jobs {
    async fn one(&mut self, job: Job) -> Result<()> {
        self.0.enqueue(Call::new("handle").arg(job.data)).await?;
        Ok(())
    }

    async fn bulk(&mut self, jobs: Vec<Job>) -> Result<()> {
        let calls: Vec<Call> = jobs.into_iter().map(|job| Call::new("handle").arg(job.data)).collect();
        self.0.enqueue_all(&calls).await?;
        Ok(())
    }
}

async fn run_jobs(client: &Client, orders: Orders) -> Result<()> {
    let app = App::new(client, "jobs", "default");
    if orders.produces() {
        return produce(Jobs(Arc::new(app))).await;
    }
    let at_a_time = orders.concurrency(100);
    let shared = Arc::new((Traces::new(&orders)?, orders.clone()));
    let app = app.function("handle", move |_: Context, (data,): (String,)| {
        let shared = shared.clone();
        async move {
            let (traces, orders) = &*shared;
            Ok(work(orders, traces, &data).await?)
        }
    });
    app.worker(client.worker([app.queue()?]).concurrency(at_a_time).lease_ahead(at_a_time))?.run().await?;
    Ok(())
}
