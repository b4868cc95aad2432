//! The state of an actor: its queues and leased items.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::future::select_all;
use leaseq::{Client, LeasedItem, Queue};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::arguments::Arguments;
use crate::forms::{self, Failure};
use crate::looping::Loop;

/// Handle of the queue, token and id.
type LeaseKey = (String, String, Vec<u8>);

pub struct Session {
    pub client: Client,
    queues: Mutex<HashMap<String, (Queue, CancellationToken)>>,
    leases: Mutex<HashMap<LeaseKey, Arc<LeasedItem>>>,
    /// Leases of the same token, which a server that plays a part can give: an item that is dropped is released.
    replaced: Mutex<Vec<Arc<LeasedItem>>>,
    pub loops: Mutex<HashMap<String, Arc<Loop>>>,
}

impl Session {
    pub fn new(client: Client) -> Session {
        Session { client, queues: Mutex::default(), leases: Mutex::default(), replaced: Mutex::default(), loops: Mutex::default() }
    }

    pub fn open(&self, handle: &str, name: &str, group: Option<&str>) -> Result<(), Failure> {
        let queue = match group {
            Some(group) => self.client.queue_in(group, name)?,
            None => self.client.queue(name)?,
        };
        self.queues.lock().unwrap().insert(handle.into(), (queue, CancellationToken::new()));
        Ok(())
    }

    pub fn close(&self, handle: &str) -> Result<(), Failure> {
        let found = self.queues.lock().unwrap().remove(handle);
        found.map(|(_, closing)| closing.cancel()).ok_or_else(|| Failure::harness(format!("queue {handle} is not open")))
    }

    pub fn queue(&self, handle: &str) -> Result<Queue, Failure> {
        let queues = self.queues.lock().unwrap();
        let found = queues.get(handle).map(|(queue, _)| queue.clone());
        found.ok_or_else(|| Failure::harness(format!("queue {handle} is not open")))
    }

    /// Ends when one of the queues is closed.
    pub fn closing(&self, handles: &[&str]) -> impl Future<Output = ()> + use<> {
        let queues = self.queues.lock().unwrap();
        let tokens: Vec<CancellationToken> = handles.iter().filter_map(|each| Some(queues.get(*each)?.1.clone())).collect();
        async move {
            if tokens.is_empty() {
                return std::future::pending().await;
            }
            select_all(tokens.iter().map(|each| Box::pin(each.cancelled()))).await;
        }
    }

    /// Notes leases and returns their form in messages.
    pub fn leased(&self, handles: &[&str], items: Vec<LeasedItem>) -> Value {
        let Some(first) = items.first() else { return json!({"queue": null, "leases": []}) };
        let is_of = |handle: &&&str| {
            self.queue(handle).is_ok_and(|queue| (queue.group(), queue.name()) == (first.queue().group(), first.queue().name()))
        };
        let handle = handles.iter().find(is_of).copied().unwrap_or_default().to_owned();
        let forms: Vec<Value> = items.iter().map(forms::lease).collect();
        let mut leases = self.leases.lock().unwrap();
        for item in items {
            let before = leases.insert((handle.clone(), item.token().to_string(), item.id().into()), Arc::new(item));
            self.replaced.lock().unwrap().extend(before);
        }
        json!({"queue": handle, "leases": forms})
    }

    /// The item of a lease that this actor was given.
    pub fn held(&self, handle: &str, entry: Arguments) -> Result<Arc<LeasedItem>, Failure> {
        let key = (handle.to_owned(), entry.text("token").to_owned(), entry.bytes("id")?);
        let found = self.leases.lock().unwrap().get(&key).cloned();
        found.ok_or_else(|| Failure::harness(format!("this actor was not given the lease {}", key.1)))
    }
}
