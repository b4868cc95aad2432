//! What a caller can wait for: items, room, an outcome.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use redis::Value;
use tokio::time::Instant;

use crate::encoding::{Added, Words, bytes_of, number_of};
use crate::error::{Error, Result};
use crate::generated::codecs::*;
use crate::keys::QueueKeys;
use crate::lease::Granted;
use crate::leased_item::LeasedItem;
use crate::pool::WAIT_CAP;
use crate::queue::Queue;
use crate::requests;
use crate::router::Router;
use crate::script::Call;
use crate::unclaimed::Unclaimed;
use crate::waiting::{Look, Target};

/// Items of the first queue, of several of one group, that has any.
pub(crate) struct LeaseTarget {
    queues: Vec<Queue>,
    duration: Duration,
    call: Call,
}

impl LeaseTarget {
    pub(crate) fn new(queues: Vec<Queue>, count: usize, duration: Duration) -> LeaseTarget {
        let keys: Vec<&QueueKeys> = queues.iter().map(Queue::keys).collect();
        LeaseTarget { call: requests::lease(&keys, count, duration), queues, duration }
    }
}

impl Target for LeaseTarget {
    type Found = Unclaimed;

    async fn look(&mut self, on: &Router) -> Result<Look<Unclaimed>> {
        let sent = Instant::now();
        let reply = on.run(&self.call, self.queues[0].pool().limit).await?;
        let (queue, fields) = if self.queues.len() == 1 {
            (Some(0), read_lease_reply(reply)?)
        } else {
            let LeaseAnyFields { queue, wait, deadline, items, extras } = read_lease_any_reply(reply)?;
            (usize::try_from(queue - 1).ok(), LeaseFields { wait, deadline, items, extras })
        };
        let due = fields.wait;
        let items = leased_items(&self.queues, queue, fields, self.duration, sent);
        let found = (!items.is_empty()).then_some(Unclaimed(items));
        Ok(Look { found, due, sent })
    }

    fn block(&self) -> Words {
        let mut words = vec![b"BLPOP".to_vec()];
        words.extend(self.queues.iter().map(|each| each.keys().key("wake")));
        words
    }

    fn settles(&self) -> Vec<Call> {
        self.queues.iter().map(|each| requests::settle(each.keys())).collect()
    }

    async fn give_back(found: Unclaimed) -> Option<Unclaimed> {
        found.give_back().await;
        None
    }
}

/// The items of a reply, whose leases last at least from when the call was sent (LQ-CLIENT-3). The outcomes of items that died are read, which
/// writes them: a script cannot write an outcome whose key it was not passed (LQ-CLIENT-8).
pub(crate) fn leased_items(
    queues: &[Queue],
    queue: Option<usize>,
    fields: LeaseFields,
    duration: Duration,
    sent: Instant,
) -> Vec<LeasedItem> {
    let mut granted: Vec<Granted> = fields.items.into_iter().map(Granted::new).collect();
    let mut died = vec![Vec::new(); queues.len()];
    for extra in fields.extras {
        let name = extra.name;
        if let Some(at) = usize::try_from(extra.item).ok().and_then(|item| item.checked_sub(1)) {
            if let Some(item) = granted.get_mut(at) {
                set_extra(item, &name, extra.value);
            }
        } else if name == b"died"
            && let Some(ids) = died.get_mut((extra.item.unsigned_abs() as usize).saturating_sub(1))
        {
            ids.extend(bytes_of(extra.value));
        }
    }
    for (queue, ids) in queues.iter().zip(died) {
        queue.publish_later(ids);
    }
    let Some(queue) = queue.and_then(|at| queues.get(at)).filter(|_| !granted.is_empty()) else { return Vec::new() };
    queue.pool().register(queue.keys());
    granted.into_iter().map(|each| LeasedItem::new(queue, each, fields.deadline, duration, sent)).collect()
}

/// Takes a property of an item. Unknown names are skipped, whatever the type of their value (LQ-READ-7).
fn set_extra(item: &mut Granted, name: &[u8], value: Value) {
    if name == b"keep" {
        item.keep = number_of(&value).map(|ms| Duration::from_millis(ms.max(0).unsigned_abs()));
    } else if name == b"content_type" {
        item.content_type = bytes_of(value);
    } else if let Some(header) = name.strip_prefix(b"header:")
        && let (Ok(header), Some(value)) = (std::str::from_utf8(header), bytes_of(value))
    {
        item.headers.push(crate::encoding::Header { name: header.into(), value });
    }
}

/// Room for items to add. Items without room are sent again, and no others: an item that was added may be completed by now.
pub(crate) struct RoomTarget {
    queue: Queue,
    entries: Vec<Words>,
    /// Filled in as replies come.
    answers: Arc<Mutex<Vec<Added>>>,
}

impl RoomTarget {
    pub(crate) fn new(queue: &Queue, entries: Vec<Words>, answers: &Arc<Mutex<Vec<Added>>>) -> RoomTarget {
        RoomTarget { queue: queue.clone(), entries, answers: answers.clone() }
    }
}

/// The places of entries that were not added yet.
pub(crate) fn missing_of(count: usize, answers: &[Added]) -> Vec<usize> {
    (0..count).filter(|at| answers.get(*at).is_none_or(|each| each.had_no_room())).collect()
}

impl Target for RoomTarget {
    type Found = ();
    // There may be more room than this producer took, and the wake-up was for one producer (LQ-ROOM-3).
    const ALWAYS_SETTLES: bool = true;

    async fn look(&mut self, on: &Router) -> Result<Look<()>> {
        let sent = Instant::now();
        let missing = missing_of(self.entries.len(), &self.answers.lock().unwrap_or_else(PoisonError::into_inner));
        let call = requests::add(self.queue.keys(), missing.iter().map(|at| self.entries[*at].clone()).collect());
        let (reply, shortfall) = match self.queue.durability() {
            None => (on.run(&call, self.queue.pool().limit).await?, None),
            durability => self.queue.pool().call_durably(&call, durability).await?,
        };
        let latest = read_add_reply(reply)?;
        if latest.len() != missing.len() {
            return Err(Error::bad_reply("it has another number of answers"));
        }
        let full = latest.iter().any(|each| each.had_no_room());
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.resize(self.entries.len(), Added(-1));
        for (at, answer) in missing.into_iter().zip(latest) {
            answers[at] = answer;
        }
        if let Some(error) = shortfall.filter(|_| !full) {
            return Err(error);
        }
        Ok(Look { found: (!full).then_some(()), due: Some(WAIT_CAP), sent })
    }

    fn block(&self) -> Words {
        vec![b"BLPOP".to_vec(), self.queue.keys().key("room")]
    }

    fn settles(&self) -> Vec<Call> {
        vec![requests::settle(self.queue.keys())]
    }

    async fn give_back(found: ()) -> Option<()> {
        Some(found)
    }
}

/// Moves an element from a list to the list itself: it stays, and wakes every waiter (LQ-BLOCK-12).
pub(crate) fn block_on(list: Vec<u8>) -> Words {
    vec![b"BLMOVE".to_vec(), list.clone(), list, b"LEFT".to_vec(), b"LEFT".to_vec()]
}

/// An outcome; what the last look found is noted.
pub(crate) struct OutcomeTarget {
    queue: Queue,
    id: Vec<u8>,
    created: Option<SystemTime>,
    latest: Arc<Mutex<Option<Outcome>>>,
}

impl OutcomeTarget {
    pub(crate) fn new(queue: &Queue, id: &[u8], latest: &Arc<Mutex<Option<Outcome>>>) -> OutcomeTarget {
        OutcomeTarget { queue: queue.clone(), id: id.into(), created: None, latest: latest.clone() }
    }
}

impl Target for OutcomeTarget {
    type Found = ();

    async fn look(&mut self, on: &Router) -> Result<Look<()>> {
        let sent = Instant::now();
        let reply = on.run(&requests::outcome(self.queue.keys(), std::slice::from_ref(&self.id)), self.queue.pool().limit).await?;
        let mut found = read_outcome_reply(reply)?.into_iter().next().ok_or_else(|| Error::bad_reply("it is empty"))?;
        self.created = self.created.or(found.created);
        // A later item has this id by now: nothing more is known of the one that was waited for (LQ-BLOCK-13).
        if found.created.is_some() && found.created != self.created {
            found =
                Outcome { state: OutcomeState::Absent, created: None, ended: None, attempt: 0, keep: Duration::ZERO, content: Vec::new() };
        }
        let ended = matches!(found.state, OutcomeState::Result | OutcomeState::Failure | OutcomeState::Absent);
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        Ok(Look { found: ended.then_some(()), due: Some(WAIT_CAP), sent })
    }

    fn block(&self) -> Words {
        block_on(self.queue.keys().result_key(&self.id))
    }

    fn settles(&self) -> Vec<Call> {
        Vec::new()
    }

    async fn give_back(found: ()) -> Option<()> {
        Some(found)
    }
}
