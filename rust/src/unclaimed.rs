//! Leased items that nobody has received.

use crate::generated::codecs::ReleaseOptions;
use crate::leased_item::LeasedItem;

/// Items that nobody has received yet: dropped, they go back as if they had not been leased.
pub(crate) struct Unclaimed(pub(crate) Vec<LeasedItem>);

impl Unclaimed {
    pub(crate) fn claim(mut self) -> Vec<LeasedItem> {
        std::mem::take(&mut self.0)
    }

    /// If it fails, they come back at their deadline.
    pub(crate) async fn give_back(mut self) {
        give_back_all(std::mem::take(&mut self.0)).await;
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        let items = std::mem::take(&mut self.0);
        if let Some(first) = items.first() {
            let pool = first.queue().pool().clone();
            pool.spawn(give_back_all(items));
        }
    }
}

pub(crate) async fn give_back_all(items: Vec<LeasedItem>) {
    let Some(queue) = items.first().map(|each| each.queue().clone()) else { return };
    let entries = items.iter().map(|each| each.releasing().with(ReleaseOptions::new().uncounted())).collect();
    items.into_iter().for_each(LeasedItem::forget);
    let _ = queue.release_all(entries).await;
}
