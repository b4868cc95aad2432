//! One queue: adding and leasing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::durability::Durability;
use crate::encoding::{Added, Words};
use crate::error::{Error, ListResult, PartialError, Result};
use crate::generated::scripts::MAX_ENTRIES;
use crate::item::NewItem;
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
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Queue({})", self.keys.registry_entry())
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
        Queue { pool: pool.clone(), keys: Arc::new(keys), durability: None }
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
        Queue { durability, ..self.clone() }
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

    /// Adds items, and returns what became of each. Waits for room if it is told to; without room for all the error is
    /// [`ErrorKind::Full`](crate::ErrorKind::Full). Dropping the future takes nothing back.
    pub async fn add_all(&self, items: &[NewItem], wait: Wait) -> ListResult<Added> {
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
