//! Ending leases of a queue, and extending them.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::error::{Error, ListResult, PartialError, Result};
use crate::generated::codecs::*;
use crate::generated::scripts::MAX_ENTRIES;
use crate::heartbeat::{EndedLease, while_ending};
use crate::item::{Completion, Extension, Release};
use crate::leased_item::LeasedItem;
use crate::lists::{chunks_of_hand_offs, collect, parts};
use crate::queue::Queue;
use crate::requests;
use crate::script::Call;
use crate::targets::{LeaseTarget, leased_items};
use crate::unclaimed::Unclaimed;
use crate::waiting::wait_for;

/// A call of completions, prepared before the first is sent.
struct Prepared {
    call: Call,
    leases: Vec<EndedLease>,
    /// How many follow-ups each entry has; `None` for the script `complete`.
    follow_ups: Option<Vec<usize>>,
}

impl Prepared {
    fn simple(queue: &Queue, part: &[Completion]) -> Result<Prepared> {
        Ok(Prepared { call: requests::complete(queue.keys(), part)?, leases: leases_of(part), follow_ups: None })
    }

    fn with_more(queue: &Queue, part: &[Completion]) -> Result<Prepared> {
        let follow_ups = Some(part.iter().map(|each| each.follow_ups.len()).collect());
        Ok(Prepared { call: requests::complete_with(queue.keys(), part)?, leases: leases_of(part), follow_ups })
    }

    /// Returns the answers, and the error of the wait behind the call.
    async fn run(&self, queue: &Queue) -> Result<(Vec<Completed>, Option<Error>)> {
        let pool = queue.pool();
        while_ending(&pool.beats, queue.keys().registry_entry(), &self.leases, async {
            let (reply, shortfall) = pool.call_durably(&self.call, queue.durability()).await?;
            let answers = match &self.follow_ups {
                Some(counts) => read_complete_with_reply(reply, counts)?,
                None => read_complete_reply(reply)?.into_iter().map(without_follow_ups).collect(),
            };
            Ok((answers, shortfall))
        })
        .await
    }
}

fn without_follow_ups(completed: bool) -> Completed {
    Completed { completed, follow_ups: Vec::new() }
}

fn leases_of(entries: &[Completion]) -> Vec<EndedLease> {
    entries.iter().map(|each| EndedLease { token: each.token, lease: each.lease.clone() }).collect()
}

impl Queue {
    /// Completes items and returns of each whether this call did: of all calls for an item, only the first does. Follow-ups are for
    /// [`Queue::hand_off_all`].
    pub async fn complete_all(&self, mut entries: Vec<Completion>) -> ListResult<bool> {
        entries.iter_mut().for_each(|each| each.follow_ups.clear());
        let prepare = |part: &[Completion]| match part.iter().all(Completion::is_simple) {
            true => Prepared::simple(self, part),
            false => Prepared::with_more(self, part),
        };
        let calls = entries.chunks(MAX_ENTRIES).map(prepare).collect::<Result<Vec<_>>>()?;
        let completed = |all: Vec<Completed>| all.into_iter().map(|each| each.completed).collect();
        match self.run_prepared(calls).await {
            Ok(found) => Ok(completed(found)),
            Err(PartialError { answers, in_doubt, cause }) => Err(PartialError { answers: completed(answers), in_doubt, cause }),
        }
    }

    async fn run_prepared(&self, calls: Vec<Prepared>) -> ListResult<Completed> {
        let mut answers = Vec::new();
        for each in calls {
            let (found, shortfall) = match each.run(self).await {
                Ok((found, shortfall)) => (Ok(found), shortfall),
                Err(error) => (Err(error), None),
            };
            answers = collect(answers, each.leases.len(), found)?;
            if let Some(error) = shortfall {
                return Err(PartialError::new(answers, 0, error));
            }
        }
        Ok(answers)
    }

    /// Completes items, keeps their results and adds their follow-ups, in one step each. A follow-up for a queue of another group or client is
    /// refused before anything is sent.
    pub async fn hand_off_all(&self, entries: Vec<Completion>) -> ListResult<Completed> {
        for each in entries.iter().flat_map(|entry| &entry.follow_ups) {
            if !Arc::ptr_eq(each.queue.pool(), self.pool()) {
                return Err(Error::refused("a follow-up goes to a queue of the same client").into());
            }
            if each.queue.group() != self.group() {
                let why = format!("queue {} is of group {} and not of {}", each.queue.name(), each.queue.group(), self.group());
                return Err(Error::cross_group(why).into());
            }
        }
        let chunks = chunks_of_hand_offs(&entries);
        let calls = chunks.into_iter().map(|part| Prepared::with_more(self, part)).collect::<Result<Vec<_>>>()?;
        self.run_prepared(calls).await
    }

    /// Completes items and leases up to `count` others in one round trip, without waiting. It takes two if an outcome is kept, there are more
    /// than 256 entries, or the completion is durable; if the second fails, the error has the answers of the first.
    pub async fn complete_and_lease(
        &self,
        entries: Vec<Completion>,
        count: usize,
        duration: Duration,
    ) -> std::result::Result<(Vec<bool>, Vec<LeasedItem>), PartialError<bool>> {
        let fused = self.durability().is_none() && (1..=MAX_ENTRIES).contains(&entries.len()) && entries.iter().all(Completion::is_simple);
        if !fused {
            let completed = self.complete_all(entries).await?;
            return self.then_lease(completed, count, duration).await;
        }
        let call = requests::complete_and_lease(self.keys(), &entries, count, duration)?;
        let sent = Instant::now();
        let pool = self.pool();
        let leases = leases_of(&entries);
        let found = while_ending(&pool.beats, self.keys().registry_entry(), &leases, async {
            read_complete_and_lease_reply(pool.call(&call).await?, entries.len())
        })
        .await;
        let CompleteAndLeaseFields { wait, deadline, items, extras, entries: completed } =
            found.map_err(|cause| PartialError::new(Vec::new(), entries.len(), cause))?;
        let fields = LeaseFields { wait, deadline, items, extras };
        let items = leased_items(std::slice::from_ref(self), Some(0), fields, duration, sent);
        if items.is_empty() && wait == Some(Duration::ZERO) {
            // more was due than one call takes (LQ-BLOCK-14)
            return self.then_lease(completed, count, duration).await;
        }
        Ok((completed, items))
    }

    async fn then_lease(
        &self,
        completed: Vec<bool>,
        count: usize,
        duration: Duration,
    ) -> std::result::Result<(Vec<bool>, Vec<LeasedItem>), PartialError<bool>> {
        let target = LeaseTarget::new(vec![self.clone()], count, duration);
        match wait_for(self.pool(), target, Some(Duration::ZERO)).await {
            Ok(found) => Ok((completed, found.map(Unclaimed::claim).unwrap_or_default())),
            Err(cause) => Err(PartialError::new(completed, 0, cause)),
        }
    }

    /// Extends leases and returns the new deadlines, `None` for a lease that is lost. [`LeasedItem::extend`] also tells the item.
    pub async fn extend_all(&self, entries: &[Extension]) -> ListResult<Option<SystemTime>> {
        let parts = parts(entries, |part| Ok(requests::extend(self.keys(), part)))?;
        self.run_parts(parts, read_extend_reply).await
    }

    /// Releases items and returns the state of each.
    pub async fn release_all(&self, entries: Vec<Release>) -> ListResult<Released> {
        let parts = parts(&entries, |part| requests::release(self.keys(), part))?;
        let pool = self.pool();
        let mut answers = Vec::new();
        for (part, chunk) in parts.iter().zip(entries.chunks(MAX_ENTRIES)) {
            let leases: Vec<EndedLease> = chunk.iter().map(|each| EndedLease { token: each.token, lease: each.lease.clone() }).collect();
            let call = async { read_release_reply(pool.call(&part.call).await?) };
            let found = while_ending(&pool.beats, self.keys().registry_entry(), &leases, call).await;
            answers = collect(answers, part.count, found)?;
        }
        Ok(answers)
    }
}
