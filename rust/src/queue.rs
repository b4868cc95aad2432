//! One queue: adding and leasing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::durability::Durability;
use crate::encoding::{Added, Words};
use crate::error::{Error, ListResult, PartialError, Result};
use crate::gatherer::{Entry, Gatherer};
use crate::generated::codecs::read_add_reply;
use crate::generated::scripts::MAX_ENTRIES;
use crate::item::{Completion, NewItem};
use crate::keys::QueueKeys;
use crate::lease::first;
use crate::leased_item::LeasedItem;
use crate::pool::Pool;
use crate::requests;
use crate::targets::{LeaseTarget, RoomTarget, missing_of};
use crate::unclaimed::Unclaimed;
use crate::waiting::{Target, wait_for};

/// One queue: [`Client::queue`](crate::Client::queue) opens it. It is created on the server when the first item is added. The methods on
/// several entries take lists of any length, which are sent in calls of 256 (LQ-CALL-8); when one of several calls fails, the error has the
/// answers of those before.
#[derive(Clone)]
pub struct Queue {
    pool: Arc<Pool>,
    keys: Arc<QueueKeys>,
    durability: Option<Durability>,
    /// Items that are added one by one.
    adds: Arc<Gatherer<Adding>>,
    /// Items whose handlers end one by one.
    completions: Arc<Gatherer<Completion>>,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Queue({})", self.keys.registry_entry())
    }
}

/// An item that is added, as the arguments of its entry.
#[derive(Clone)]
struct Adding(Words);

impl Entry for Adding {
    /// What became of it, and the error of the wait behind the call.
    type Answer = (Added, Option<Error>);
    /// That many callers never wait for each other.
    const AT_ONCE: usize = 4;

    fn limit(queue: &Queue) -> Option<Duration> {
        Some(queue.pool.limit)
    }

    fn size(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    async fn call(queue: &Queue, entries: Vec<Adding>) -> Result<Vec<Self::Answer>> {
        let count = entries.len();
        let call = requests::add(&queue.keys, entries.into_iter().map(|each| each.0).collect());
        let (reply, shortfall) = queue.pool.call_durably(&call, queue.durability()).await?;
        let answers = read_add_reply(reply)?;
        if answers.len() != count {
            return Err(Error::bad_reply("it has another number of answers"));
        }
        queue.pool.register(&queue.keys);
        Ok(answers.into_iter().map(|each| (each, shortfall.clone())).collect())
    }
}

impl Entry for Completion {
    type Answer = bool;
    const AT_ONCE: usize = 1;

    fn size(&self) -> usize {
        self.options.result.as_ref().map_or(0, Vec::len)
    }

    async fn call(queue: &Queue, entries: Vec<Completion>) -> Result<Vec<bool>> {
        queue.complete_all(entries).await.map_err(Error::from)
    }
}

/// How long a call waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    No,
    /// For this time.
    For(Duration),
    /// Until the future is dropped.
    Forever,
}

impl Wait {
    pub(crate) fn timeout(self) -> Option<Duration> {
        match self {
            Wait::No => Some(Duration::ZERO),
            Wait::For(time) => Some(time),
            Wait::Forever => None,
        }
    }
}

impl Queue {
    pub(crate) fn new(pool: &Arc<Pool>, keys: QueueKeys) -> Queue {
        Queue { pool: pool.clone(), keys: Arc::new(keys), durability: None, adds: Arc::default(), completions: Arc::default() }
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    pub(crate) fn keys(&self) -> &QueueKeys {
        &self.keys
    }

    pub(crate) fn durability(&self) -> Option<&Durability> {
        self.durability.as_ref()
    }

    /// The same queue with another wait behind calls, or none.
    pub(crate) fn with_durability(&self, durability: Option<Durability>) -> Queue {
        Queue { pool: self.pool.clone(), keys: self.keys.clone(), durability, adds: Arc::default(), completions: Arc::default() }
    }

    /// The name of the queue.
    pub fn name(&self) -> &str {
        &self.keys.name
    }

    /// The group of the queue. Queues of one group share a hash slot, so that one call can use several.
    pub fn group(&self) -> &str {
        &self.keys.group
    }

    /// Adds an item: see [`Added`].
    pub async fn add(&self, item: NewItem) -> Result<Added> {
        match self.add_all(&[item], Wait::No).await {
            Ok(answers) => first(answers),
            Err(PartialError { answers, cause, .. }) => Err(cause.with_answer(answers.first().map(|added| added.is_new()))),
        }
    }

    /// Adds an item without a wait for room, in one call with those that others add meanwhile.
    async fn add_one(&self, item: &NewItem) -> ListResult<Added> {
        match self.adds.run(self, Adding(requests::item_args(item)?)).await {
            Ok((added, _)) if added.had_no_room() => Err(PartialError::new(vec![added], 0, Error::full())),
            Ok((added, Some(error))) => Err(PartialError::new(vec![added], 0, error)),
            Ok((added, None)) => Ok(vec![added]),
            Err(cause) => Err(PartialError::new(Vec::new(), 1, cause)),
        }
    }

    /// Completes an item whose handler has ended, without follow-ups, in one call with those that end meanwhile.
    pub(crate) async fn complete_one(&self, entry: Completion) -> Result<bool> {
        self.completions.run(self, entry).await
    }

    /// Adds items, and returns what became of each. Waits for room if it is told to; without room for all the error is
    /// [`ErrorKind::Full`](crate::ErrorKind::Full). Dropping the future takes nothing back.
    pub async fn add_all(&self, items: &[NewItem], wait: Wait) -> ListResult<Added> {
        if let ([item], Wait::No) = (items, wait) {
            return self.add_one(item).await;
        }
        let timeout_at = wait.timeout().map(|timeout| Instant::now() + timeout.min(Duration::from_secs(1 << 32)));
        let mut entries = items.iter().map(requests::item_args).collect::<Result<Vec<Words>>>()?;
        let mut before = Vec::new();
        while !entries.is_empty() {
            let rest = entries.split_off(entries.len().min(MAX_ENTRIES));
            let part = std::mem::replace(&mut entries, rest);
            let count = part.len();
            let left = timeout_at.map(|at| at.saturating_duration_since(Instant::now()));
            let answers = Arc::new(Mutex::new(Vec::new()));
            let target = RoomTarget::new(self, part, &answers);
            let result = if wait == Wait::No { self.look_once(target).await } else { wait_for(&self.pool, target, left).await.map(drop) };
            let answers = std::mem::take(&mut *answers.lock().unwrap_or_else(PoisonError::into_inner));
            if !answers.is_empty() {
                self.pool.register(&self.keys);
            }
            if let Err(cause) = result {
                return Err(add_error(before, answers, count, cause));
            }
            before.extend(answers);
            if !missing_of(before.len(), &before).is_empty() {
                return Err(PartialError { answers: before, in_doubt: 0, cause: Error::full() });
            }
        }
        Ok(before)
    }

    async fn look_once(&self, mut target: impl Target) -> Result<()> {
        target.look(&self.pool.shared).await.map(drop)
    }

    /// Leases one item for a duration. It waits without polling if it is told to. When the future is dropped, what was leased by then is given
    /// back.
    pub async fn lease(&self, duration: Duration, wait: Wait) -> Result<Option<LeasedItem>> {
        Ok(self.lease_all(1, duration, wait).await?.pop())
    }

    /// Leases up to `count` items with one deadline, and none when the time is up. Otherwise as `lease`.
    pub async fn lease_all(&self, count: usize, duration: Duration, wait: Wait) -> Result<Vec<LeasedItem>> {
        let target = LeaseTarget::new(vec![self.clone()], count, duration);
        let found = wait_for(&self.pool, target, wait.timeout()).await?;
        Ok(found.map(Unclaimed::claim).unwrap_or_default())
    }
}

/// The error of an add with the answers so far: those of earlier calls, and those of the call that failed, which may have waited for room.
fn add_error(before: Vec<Added>, answers: Vec<Added>, count: usize, cause: Error) -> PartialError<Added> {
    let missing = missing_of(answers.len(), &answers);
    let mut all = before;
    if cause.is_definite() || answers.is_empty() {
        all.extend(answers);
        return PartialError::new(all, count, cause);
    }
    // Items without room were sent again, and it is unknown whether these were added.
    let (Some(begin), Some(last)) = (missing.first(), missing.last()) else { return PartialError::new(all, count, cause) };
    all.extend(&answers[..*begin]);
    PartialError::new(all, last + 1 - begin, cause)
}
