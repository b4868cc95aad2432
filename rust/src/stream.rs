//! A stream of leased items.

use std::collections::VecDeque;
use std::time::Duration;

use futures_core::Stream;
use futures_util::stream::try_unfold;

use crate::error::Result;
use crate::generated::codecs::ReleaseOptions;
use crate::leased_item::LeasedItem;
use crate::queue::{Queue, Wait};

impl Queue {
    /// Leases items one after the other until none came for the time of `wait`. Up to `count` are leased at a time; those that were not taken
    /// are given back when the stream is dropped, and one whose lease is over by then is passed over.
    pub fn items(&self, count: usize, duration: Duration, wait: Wait) -> impl Stream<Item = Result<LeasedItem>> + Send + use<> {
        let start = (self.clone(), Leased(VecDeque::new()));
        try_unfold(start, move |(queue, mut leased)| async move {
            loop {
                while let Some(item) = leased.0.pop_front() {
                    if item.is_held() {
                        return Ok(Some((item, (queue, leased))));
                    }
                    let _ = item.release(ReleaseOptions::new().uncounted()).await;
                }
                leased.0.extend(queue.lease_all(count, duration, wait).await?);
                if leased.0.is_empty() {
                    return Ok(None);
                }
            }
        })
    }
}

/// Items that were leased and not taken: dropped, they go back as if they had not been leased.
struct Leased(VecDeque<LeasedItem>);

impl Drop for Leased {
    fn drop(&mut self) {
        drop(crate::unclaimed::Unclaimed(std::mem::take(&mut self.0).into()));
    }
}
