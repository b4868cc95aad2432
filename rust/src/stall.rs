//! Time limits that do not count the time for which the event loop stands still (LQ-CLIENT-20).

use std::future::Future;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::sleep;

/// The parts of a limit. A part counts once, however long the event loop stood still in it.
pub(crate) const STEPS: u32 = 8;
/// A timer that comes later than that shows that the event loop stood still.
pub(crate) const NOTICED: Duration = Duration::from_millis(20);

/// Returns the output of a future, `None` after the limit.
pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::pin!(future);
    for _ in 0..STEPS {
        tokio::select! {
            biased;
            done = &mut future => return Some(done),
            () = sleep(limit / STEPS) => {}
        }
    }
    // timers fire before sockets are read: what has arrived is read first
    tokio::select! {
        biased;
        done = &mut future => Some(done),
        () = yield_now() => None,
    }
}
