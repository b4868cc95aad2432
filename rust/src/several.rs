//! Leasing from several queues.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::generated::scripts::MAX_QUEUES;
use crate::leased_item::LeasedItem;
use crate::pool::Pool;
use crate::queue::{Queue, Wait};
use crate::race::race;
use crate::targets::LeaseTarget;
use crate::unclaimed::Unclaimed;
use crate::waiting::{Target, detached, wait_for};

impl Client {
    /// Leases from the first queue that has an item, by strict precedence. Up to 16 queues of one group take one call; each group waits on a
    /// separate connection. Otherwise as [`Queue::lease_all`].
    pub async fn lease_any(&self, queues: &[Queue], count: usize, duration: Duration, wait: Wait) -> Result<Vec<LeasedItem>> {
        if queues.is_empty() {
            return Err(Error::refused("no queues"));
        }
        let mut targets: Vec<LeaseTarget> = by_group(queues).into_iter().map(|group| LeaseTarget::new(group, count, duration)).collect();
        let found = if targets.len() == 1 {
            wait_for(&self.pool, targets.remove(0), wait.timeout()).await?
        } else {
            let ended = self.pool.closing.child_token();
            let race = lease_of_groups(self.pool.clone(), targets, ended.clone(), wait.timeout());
            detached(&self.pool, ended, Box::pin(race)).await?
        };
        Ok(found.map(Unclaimed::claim).unwrap_or_default())
    }
}

/// Looks at group after group, and blocks only if none has an item.
async fn lease_of_groups(
    pool: Arc<Pool>,
    mut targets: Vec<LeaseTarget>,
    ended: CancellationToken,
    timeout: Option<Duration>,
) -> Result<Option<Unclaimed>> {
    let begun = Instant::now();
    let mut looks = Vec::new();
    let mut at_once = false;
    for each in &mut targets {
        let mut look = each.look(&pool.shared).await?;
        while look.found.is_none() && look.due == Some(Duration::ZERO) && !ended.is_cancelled() {
            at_once = true;
            look = each.look(&pool.shared).await?;
        }
        if look.found.is_some() {
            return if ended.is_cancelled() { give_back(look.found).await } else { Ok(look.found) };
        }
        looks.push(look);
    }
    let left = timeout.map(|timeout| timeout.saturating_sub(begun.elapsed()));
    if left == Some(Duration::ZERO) && !at_once {
        return Ok(None);
    }
    race(pool, targets, looks, ended, left).await
}

async fn give_back(found: Option<Unclaimed>) -> Result<Option<Unclaimed>> {
    if let Some(found) = found {
        found.give_back().await;
    }
    Err(Error::closed())
}

/// The queues of each group, in their order, up to 16 in each list.
fn by_group(queues: &[Queue]) -> Vec<Vec<Queue>> {
    let mut groups: Vec<Vec<Queue>> = Vec::new();
    for each in queues {
        match groups.iter_mut().find(|group| group[0].group() == each.group()) {
            Some(group) => group.push(each.clone()),
            None => groups.push(vec![each.clone()]),
        }
    }
    groups.iter().flat_map(|group| group.chunks(MAX_QUEUES)).map(<[Queue]>::to_vec).collect()
}
