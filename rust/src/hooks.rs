//! What a worker tells of its work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tracing::error;

use crate::error::Error;
use crate::leased_item::LeasedItem;

/// Functions that a worker calls as the work goes on, for metrics, traces and logs. Keep them short. If one panics, that is logged and changes
/// nothing.
#[allow(unused_variables)]
pub trait Hooks: Send + Sync + 'static {
    /// One call has leased that many items.
    fn leased(&self, count: usize) {}
    /// The handler of an item starts.
    fn started(&self, item: &LeasedItem) {}
    /// The handler has ended. `failure` is `None` if it succeeded, else the text of its error, or why it was cut off: its time limit, a lost
    /// lease, the end of the grace.
    fn ended(&self, item: &LeasedItem, took: Duration, failure: Option<&str>) {}
    /// The item is completed.
    fn completed(&self, item: &LeasedItem) {}
    /// The item was given back. The reason is empty if its handler did not fail.
    fn released(&self, item: &LeasedItem, delay: Duration, reason: &str) {}
    /// The item became a dead letter.
    fn dead_lettered(&self, item: &LeasedItem, reason: &str) {}
    /// The lease is lost: another worker has the item, it was finished or removed, or the server was away for as long as the lease. Not called if a
    /// call of this worker may have ended the item and its reply was lost.
    fn lost(&self, item: &LeasedItem) {}
    /// Calls to the server start to fail. The worker goes on trying.
    fn server_away(&self, error: &Error) {}
    /// Calls work again.
    fn server_back(&self, after: Duration) {}
}

/// Hooks whose failures do not reach the worker.
#[derive(Clone, Default)]
pub(crate) struct Reporter(pub(crate) Option<Arc<dyn Hooks>>);

impl Reporter {
    pub(crate) fn tell(&self, call: impl FnOnce(&dyn Hooks)) {
        if let Some(hooks) = &self.0
            && catch_unwind(AssertUnwindSafe(|| call(hooks.as_ref()))).is_err()
        {
            error!("leaseq worker: a hook panicked");
        }
    }
}
