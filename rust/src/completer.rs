//! Completes the items of a worker. An item whose handler ends while a call of its queue is under way is completed by the next call, so that
//! many handlers cost few calls, and a single one does not wait.

use std::collections::HashMap;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::task::yield_now;

use crate::error::{Error, Result};
use crate::generated::scripts::MAX_ENTRIES;
use crate::health::is_server_away;
use crate::item::Completion;
use crate::queue::Queue;

/// How many bytes of results one call has at most, unless one result alone is longer.
const MAX_RESULT_BYTES: usize = 4 << 20;

/// The lines of the queues that have a call under way, by their entries in the registry.
#[derive(Default)]
pub(crate) struct Completer(Mutex<HashMap<String, Vec<Waiting>>>);

/// An item that waits for its call.
struct Waiting {
    entry: Completion,
    answer: oneshot::Sender<Result<bool>>,
}

impl Completer {
    /// Completes an item without follow-ups, and returns as [`LeasedItem::complete`](crate::LeasedItem::complete) does.
    pub(crate) async fn complete(self: &Arc<Self>, queue: &Queue, entry: Completion) -> Result<bool> {
        let (answer, answered) = oneshot::channel();
        let key = queue.keys().registry_entry().to_owned();
        let waiting = Waiting { entry, answer };
        let is_busy = {
            let mut lines = self.lines();
            match lines.get_mut(&key) {
                Some(line) => {
                    line.push(waiting);
                    true
                }
                None => {
                    lines.insert(key.clone(), vec![waiting]);
                    false
                }
            }
        };
        if !is_busy {
            let (completer, queue) = (self.clone(), queue.clone());
            tokio::spawn(async move { completer.serve(&queue, &key).await });
        }
        answered.await.unwrap_or_else(|_| Err(Error::closed()))
    }

    /// Makes calls until nothing waits.
    async fn serve(&self, queue: &Queue, key: &str) {
        yield_now().await; // handlers that end at this moment go along
        loop {
            let mut group = {
                let mut lines = self.lines();
                let waiting = lines.get_mut(key).map(take).unwrap_or_default();
                if waiting.is_empty() {
                    lines.remove(key);
                    return;
                }
                waiting
            };
            while !group.is_empty() {
                let rest = group.split_off(count_of_call(&group));
                complete_group(queue, group).await;
                group = rest;
            }
        }
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<String, Vec<Waiting>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many of them one call takes.
fn count_of_call(waiting: &[Waiting]) -> usize {
    let mut total = 0;
    let fits = waiting.iter().take(MAX_ENTRIES).take_while(|each| {
        total += each.entry.options.result.as_ref().map_or(0, Vec::len);
        total <= MAX_RESULT_BYTES
    });
    fits.count().max(1)
}

/// Completes a group. If the call fails, each is completed alone, so that the error reaches the item that caused it. If the server is away,
/// all get the error.
async fn complete_group(queue: &Queue, group: Vec<Waiting>) {
    let entries = group.iter().map(|each| each.entry.clone()).collect();
    let answers = queue.complete_all(entries).await.map_err(Error::from);
    let is_one = group.len() == 1;
    for (index, each) in group.into_iter().enumerate() {
        let answer = match &answers {
            Ok(completed) => Ok(completed.get(index) == Some(&true)),
            Err(error) if is_one || is_server_away(error) => Err(error.clone()),
            Err(_) => queue.complete_all(vec![each.entry]).await.map(|completed| completed == [true]).map_err(Error::from),
        };
        let _ = each.answer.send(answer); // a worker whose future was dropped does not wait
    }
}
