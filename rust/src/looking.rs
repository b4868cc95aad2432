//! Looking at a queue, dead letters, outcomes, limits and cleaning.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::deaths;
use crate::encoding::Words;
use crate::error::{Error, ListResult, PartialError, Result};
use crate::generated::codecs::*;
use crate::generated::scripts::*;
use crate::lists::parts;
use crate::queue::{Queue, Wait};
use crate::requests::{self, queue_call};
use crate::targets::OutcomeTarget;
use crate::waiting::wait_for;

fn words_of(ids: &[impl AsRef<[u8]>]) -> Words {
    ids.iter().map(|id| id.as_ref().to_vec()).collect()
}

impl Queue {
    /// Makes dead items ready again, with all their attempts. Returns of each whether it was dead.
    pub async fn revive(&self, ids: &[impl AsRef<[u8]>]) -> ListResult<bool> {
        let calls = parts(&words_of(ids), |part| Ok(queue_call(&REVIVE, self.keys(), encode_revive_arguments(part))))?;
        self.run_parts(calls, read_revive_reply).await
    }

    /// Makes delayed items ready now. Returns of each whether it was delayed.
    pub async fn promote(&self, ids: &[impl AsRef<[u8]>]) -> ListResult<bool> {
        let calls = parts(&words_of(ids), |part| Ok(queue_call(&PROMOTE, self.keys(), encode_promote_arguments(part))))?;
        self.run_parts(calls, read_promote_reply).await
    }

    /// Deletes items that have been dead for at least that long. Returns of each whether it was deleted.
    pub async fn purge(&self, ids: &[impl AsRef<[u8]>], older_than: Duration) -> ListResult<bool> {
        let encode = |part: &[Vec<u8>]| Ok(queue_call(&PURGE, self.keys(), encode_purge_arguments(older_than, part)));
        self.run_parts(parts(&words_of(ids), encode)?, read_purge_reply).await
    }

    /// Removes items in any state, leased ones too, and returns the state that each was in.
    pub async fn remove(&self, ids: &[impl AsRef<[u8]>]) -> ListResult<State> {
        let calls = parts(&words_of(ids), |part| Ok(queue_call(&REMOVE, self.keys(), encode_remove_arguments(part))))?;
        self.run_parts(calls, read_remove_reply).await
    }

    /// Items as they are, without changing them.
    pub async fn inspect(&self, ids: &[impl AsRef<[u8]>]) -> ListResult<ItemInfo> {
        let calls = parts(&words_of(ids), |part| Ok(queue_call(&INSPECT, self.keys(), encode_inspect_arguments(part))))?;
        self.run_parts(calls, read_inspect_reply).await
    }

    /// The outcome of each item, or its state if it has none.
    pub async fn outcomes(&self, ids: &[impl AsRef<[u8]>]) -> ListResult<Outcome> {
        let ids = words_of(ids);
        let mut outcomes = Vec::new();
        // A reply has fewer entries if contents are long (LQ-OUTCOME-9).
        while outcomes.len() < ids.len() {
            let rest = &ids[outcomes.len()..ids.len().min(outcomes.len() + MAX_ENTRIES)];
            let found = match self.pool().call(&requests::outcome(self.keys(), rest)).await.and_then(read_outcome_reply) {
                Ok(found) if found.is_empty() => Err(Error::bad_reply("it is empty")),
                other => other,
            };
            match found {
                Ok(found) => outcomes.extend(found),
                Err(cause) => return Err(PartialError::new(outcomes, rest.len(), cause)),
            }
        }
        Ok(outcomes)
    }

    /// Waits until the item has an outcome or is gone, and returns what is known then. An item of the same id that was added later counts as
    /// absent. An item that is dead and keeps no outcome is waited for, since it may be revived.
    pub async fn wait_outcome(&self, id: impl AsRef<[u8]>, wait: Wait) -> Result<Outcome> {
        let latest = Arc::new(Mutex::new(None));
        let target = OutcomeTarget::new(self, id.as_ref(), &latest);
        wait_for(self.pool(), target, wait.timeout()).await?;
        let found = latest.lock().unwrap_or_else(PoisonError::into_inner).take();
        found.ok_or_else(Error::closed)
    }

    /// Publishes in the background.
    pub(crate) fn publish_later(&self, ids: Words) {
        if !ids.is_empty() {
            let queue = self.clone();
            self.pool().spawn(async move { queue.publish(&ids).await });
        }
    }

    /// Reads the outcomes of items that died where no handler ran, which writes them (LQ-CLIENT-8), and logs them.
    async fn publish(&self, ids: &Words) {
        if let Ok(outcomes) = self.outcomes(ids).await {
            deaths::log(self.name(), ids, &outcomes);
        }
    }

    /// The counts of the queue by their names in the protocol; `now` and `waited` are microseconds.
    pub async fn stats(&self) -> Result<BTreeMap<String, i64>> {
        read_stats_reply(self.pool().call(&queue_call(&STATS, self.keys(), Words::new())).await?)
    }

    /// A page of the ids in a state, or of those that have an outcome, in an order.
    pub async fn list(&self, state: ListState, offset: i64, limit: i64, order: ListOrder) -> Result<Page> {
        let args = encode_list_arguments(state, offset, limit, order);
        read_list_reply(self.pool().call(&queue_call(&LIST, self.keys(), args)).await?)
    }

    /// Sets limits of the queue; what is `None` stays.
    pub async fn configure(&self, changes: &ConfigureOptions) -> Result<()> {
        let args = encode_configure_arguments(encode_configure_options(changes)?);
        read_configure_reply(self.pool().call(&queue_call(&CONFIGURE, self.keys(), args)).await?).map(drop)
    }

    /// Deletes the queue with its settings and counters, and takes it out of the registry. False if there was no queue. It must hold no
    /// items, dead ones included, and no outcomes: else the error is `ScriptError::QueueInUse` (LQ-DELETE-1).
    pub async fn delete(&self) -> Result<bool> {
        let reply = self.pool().call(&queue_call(&DELETE, self.keys(), Words::new())).await?;
        self.pool().unregister(self.keys()).await;
        read_delete_reply(reply)
    }

    /// Lets nothing be leased until `resume`.
    pub async fn pause(&self) -> Result<()> {
        self.configure(&ConfigureOptions::new().paused(true)).await
    }

    /// Ends a pause.
    pub async fn resume(&self) -> Result<()> {
        self.configure(&ConfigureOptions::new().paused(false)).await
    }

    /// Passes a wake-up on, and returns whether one was needed. It is for programs with a way of their own to wait.
    pub async fn settle(&self) -> Result<bool> {
        read_settle_reply(self.pool().call(&requests::settle(self.keys())).await?)
    }

    /// Promotes due items, reclaims expired leases, and ends items and outcomes whose time is over, until nothing is left to do now. Returns the
    /// sums.
    pub async fn light_clean(&self) -> Result<LightClean> {
        let call = queue_call(&LIGHT_CLEAN, self.keys(), encode_light_clean_arguments(MAX_ENTRIES as i64));
        let mut sum: Option<LightClean> = None;
        loop {
            let mut step = read_light_clean_reply(self.pool().call(&call).await?)?;
            if !step.dead_with_outcome.is_empty() {
                self.publish(&words_of(&step.dead_with_outcome)).await;
            }
            if let Some(before) = sum {
                step.promoted += before.promoted;
                step.reclaimed += before.reclaimed;
                step.died += before.died;
                step.expired += before.expired;
                step.pruned += before.pruned;
                step.dead_with_outcome.splice(0..0, before.dead_with_outcome);
            }
            if step.wait != Some(Duration::ZERO) {
                return Ok(step);
            }
            sum = Some(step);
        }
    }

    /// Looks at the whole queue for damage, repairs it unless `dry_run`, and returns how often it found each kind. Others can use the queue
    /// meanwhile.
    pub async fn deep_clean(&self, dry_run: bool) -> Result<BTreeMap<String, i64>> {
        let mut found = BTreeMap::new();
        let mut cursor = "0".to_owned();
        loop {
            let args = encode_deep_clean_arguments(&cursor, MAX_ENTRIES as i64, dry_run);
            let page = read_deep_clean_reply(self.pool().call(&queue_call(&DEEP_CLEAN, self.keys(), args)).await?)?;
            for (kind, count) in page.repairs {
                *found.entry(kind).or_default() += count;
            }
            if page.cursor == "0" {
                return Ok(found);
            }
            cursor = page.cursor;
        }
    }
}
