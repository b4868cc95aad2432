//! Rust's part of python/tests/fleets/test_four_languages.py: `fleet-member produce URL COUNT`, or `work URL`. The same program is in
//! python/tests/programs/fleet_member.py, which says more.

use std::io::Write;
use std::time::Duration;

use leaseq::{AddOptions, Client, LeasedItem, NewItem, Queue, Wait, derived_id};
use serde::{Deserialize, Serialize};
use serde_json::json;

const LANGUAGE: &str = "rust";
const LANGUAGES: [&str; 4] = ["python", "typescript", "go", "rust"];
const FACTOR: u8 = 7;
const SHARED: u32 = 3;
const DIRECTED: u32 = 5;
/// Items that a worker is late with, or held when it was killed, are made to expire by the test.
const LEASE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

type Failure = Box<dyn std::error::Error>;

#[derive(Serialize, Deserialize)]
struct Task {
    a: u32,
    b: u32,
    from: String,
}

struct Member {
    client: Client,
    shared: Queue,
    own: Queue,
    directed: Vec<Queue>,
    handed_off: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().collect();
    let client = Client::open(&words[2])?;
    if words[1] == "produce" {
        return produce(&client, words[3].parse()?).await;
    }
    let open = |name: &str| client.queue_in("fleet", name);
    let directed = LANGUAGES.iter().map(|each| open(&format!("to-{each}"))).collect::<leaseq::Result<Vec<Queue>>>()?;
    Member { shared: open("shared")?, own: open(LANGUAGE)?, directed, handed_off: 0, client }.work().await
}

/// Adds items to the queue of each language.
async fn produce(client: &Client, count: usize) -> Result<(), Failure> {
    for language in LANGUAGES {
        let items: Vec<NewItem> =
            (0..count).map(|number| NewItem::new(format!("{language}-{LANGUAGE}-{number}"), [number as u8])).collect();
        let added = client.queue_in("fleet", language)?.add_all(&items, Wait::No).await?;
        if !added.iter().all(|each| each.is_new()) {
            return Err("an item was there already".into());
        }
    }
    client.close().await;
    Ok(())
}

impl Member {
    /// Works until killed.
    async fn work(mut self) -> Result<(), Failure> {
        let mine = LANGUAGES.iter().position(|each| *each == LANGUAGE).unwrap_or_default();
        let mut queues = vec![self.directed[mine].clone(), self.own.clone(), self.shared.clone()];
        let mut late = Vec::new();
        for lease in 1_usize.. {
            queues.rotate_left(1); // each lease starts with another queue
            let mut items = self.client.lease_any(&queues, 1, LEASE, Wait::Forever).await?;
            if lease.is_multiple_of(7) {
                std::mem::swap(&mut items, &mut late); // in its place an older one, which another worker may have by now
            }
            for item in items {
                if item.queue().name() == LANGUAGE {
                    self.hand_off(&item).await?;
                } else {
                    finish(&item).await?;
                }
            }
        }
        Ok(())
    }

    async fn hand_off(&mut self, item: &LeasedItem) -> Result<(), Failure> {
        let byte = item.data()[0];
        let target = &self.directed[usize::from(byte) % LANGUAGES.len()];
        let made = u32::from(byte.wrapping_mul(FACTOR));
        let shared = follow_up(item, "shared", SHARED, made)?;
        let directed = follow_up(item, "directed", DIRECTED, made)?;
        let entry = item.completion().then(&self.shared, shared).then(target, directed);
        if !item.complete_with(entry.clone()).await?.completed {
            return Ok(());
        }
        report(item)?;
        self.handed_off += 1;
        if self.handed_off.is_multiple_of(6) && item.complete_with(entry).await?.completed {
            return Err(format!("{} was completed twice", item.id()).into());
        }
        Ok(())
    }
}

async fn finish(item: &LeasedItem) -> Result<(), Failure> {
    let Task { a, b, .. } = serde_json::from_slice(item.data())?;
    let result = json!({"a": a, "sum": a + b, "prod": a * b, "worker": LANGUAGE}).to_string();
    if item.complete_with(item.completion().result(result)).await?.completed {
        report(item)?;
    }
    Ok(())
}

fn follow_up(item: &LeasedItem, step: &str, a: u32, b: u32) -> Result<NewItem, Failure> {
    let data = serde_json::to_vec(&Task { a, b, from: LANGUAGE.into() })?;
    Ok(NewItem::new(derived_id(item.id(), step), data).with(AddOptions::new().keep(HOUR)))
}

/// Writes a line in one call, so that a kill leaves it whole or absent.
fn report(item: &LeasedItem) -> std::io::Result<()> {
    let line = format!("completed {} {} {}\n", item.queue().name(), item.id(), item.token());
    std::io::stdout().lock().write_all(line.as_bytes())
}
