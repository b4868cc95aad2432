//! The wait for something on the server, without polling (page 06).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::encoding::Words;
use crate::error::{Error, ErrorKind, Result};
use crate::generated::scripts::{BLOCK_GRACE_MS, MIN_BLOCK_MS};
use crate::pool::{Pool, WAIT_CAP};
use crate::router::Router;
use crate::script::{Call, command};

const MIN_BLOCK: Duration = Duration::from_millis(MIN_BLOCK_MS);
/// How long after its timeout a block may have no reply (LQ-BLOCK-9).
const BLOCK_GRACE: Duration = Duration::from_millis(BLOCK_GRACE_MS);
/// The next check is sent this long after the block should end, so that it does not queue behind a block still under way.
const BLOCK_MARGIN: Duration = Duration::from_millis(4);
/// A wait without limit.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
/// Errors that end a block and say nothing about the next one (LQ-BLOCK-5).
const ENDS_OF_BLOCKS: &[&str] = &["MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "UNBLOCKED"];

/// What a look found, or when the next one is due: 0 at once, `None` never.
pub(crate) struct Look<T> {
    pub(crate) found: Option<T>,
    pub(crate) due: Option<Duration>,
    pub(crate) sent: Instant,
}

/// Something to wait for: how to look for it, and how to block until the next look.
pub(crate) trait Target: Send + Sync + 'static {
    /// What is waited for. Dropped without a receiver, it gives itself back.
    type Found: Send + Sync + 'static;
    /// True if it is settled also after something was found.
    const ALWAYS_SETTLES: bool = false;
    fn look(&mut self, on: &Router) -> impl Future<Output = Result<Look<Self::Found>>> + Send;
    /// The blocking command without its timeout; its first key is the second word.
    fn block(&self) -> Words;
    /// Passes on a wake-up that this waiter took and did not use.
    fn settles(&self) -> Vec<Call>;
    /// Undoes a look whose finding is not wanted; false if it cannot be undone, and is returned.
    fn give_back(found: Self::Found) -> impl Future<Output = Option<Self::Found>> + Send;
}

/// Waits in the background until the target is found or the time is up (`None`). When the returned future is dropped, the wait ends, and what
/// it leased is given back (LQ-BLOCK-15).
pub(crate) async fn wait_for<T: Target>(pool: &Arc<Pool>, target: T, timeout: Option<Duration>) -> Result<Option<T::Found>> {
    let ended = pool.closing.child_token();
    detached(pool, ended.clone(), Box::pin(Waiting::new(pool, target).run(ended, timeout, None))).await
}

/// Runs a wait in the background. Dropping the returned future cancels `ended`.
///
/// Boxed: this is nested into the calls of a program, and rustc limits how deep the futures of a program are nested.
pub(crate) async fn detached<T: Send + 'static>(
    pool: &Pool,
    ended: CancellationToken,
    wait: Pin<Box<dyn Future<Output = Result<T>> + Send>>,
) -> Result<T> {
    if pool.closing.is_cancelled() {
        return Err(Error::closed());
    }
    let _ends_with_the_caller = ended.drop_guard();
    let (sender, receiver) = oneshot::channel();
    pool.spawn(async move { drop(sender.send(wait.await)) });
    receiver.await.unwrap_or_else(|_| Err(Error::closed()))
}

/// A wait for a target.
pub(crate) struct Waiting<T: Target> {
    pool: Arc<Pool>,
    target: T,
    conn: Option<Arc<Router>>,
    /// Of several waits the first that finds something ends the others: true for the first.
    decision: Option<Decision>,
}

/// Which of several waits was first.
#[derive(Clone)]
pub(crate) struct Decision {
    pub(crate) taken: Arc<std::sync::atomic::AtomicBool>,
    pub(crate) others: CancellationToken,
}

impl Decision {
    fn is_first(&self) -> bool {
        let first = !self.taken.swap(true, std::sync::atomic::Ordering::SeqCst);
        self.others.cancel();
        first
    }
}

/// How a block ended, and when the next look is due.
enum Blocked {
    Ended(Result<Value>),
    TimeIsUp,
    Cancelled,
}

impl<T: Target> Waiting<T> {
    pub(crate) fn new(pool: &Arc<Pool>, target: T) -> Self {
        Waiting { pool: pool.clone(), target, conn: None, decision: None }
    }

    pub(crate) fn deciding(mut self, decision: Decision) -> Self {
        self.decision = Some(decision);
        self
    }

    pub(crate) async fn run(
        mut self,
        ended: CancellationToken,
        timeout: Option<Duration>,
        first: Option<Look<T::Found>>,
    ) -> Result<Option<T::Found>> {
        let result = self.until_found(&ended, timeout, first).await;
        if let Some(conn) = self.conn.take() {
            let settles = T::ALWAYS_SETTLES || !matches!(result, Ok(Some(_)));
            let calls = if settles { self.target.settles() } else { Vec::new() };
            self.pool.release(conn, calls, result.is_err());
        }
        result
    }

    async fn until_found(
        &mut self,
        ended: &CancellationToken,
        timeout: Option<Duration>,
        first: Option<Look<T::Found>>,
    ) -> Result<Option<T::Found>> {
        let timeout_at = Instant::now() + timeout.unwrap_or(FOREVER).min(FOREVER);
        let mut look = match first {
            Some(look) => look,
            None => self.look().await?,
        };
        loop {
            if let Some(found) = look.found {
                return self.unless_over(ended, found).await;
            }
            if ended.is_cancelled() {
                return Err(Error::closed());
            }
            if look.due.is_none_or(|due| !due.is_zero()) {
                if Instant::now() >= timeout_at {
                    return Ok(None);
                }
                let conn = self.connect().await?;
                let due = look.due.unwrap_or(WAIT_CAP).min(WAIT_CAP);
                let until = timeout_at.min(look.sent + due);
                let pause = until.saturating_duration_since(Instant::now());
                if pause >= MIN_BLOCK {
                    look = self.block_then_look(ended, &conn, pause).await?;
                    continue;
                }
                sleep_unless(ended, pause).await;
            }
            look = self.look().await?;
        }
    }

    async fn look(&mut self) -> Result<Look<T::Found>> {
        match &self.conn {
            Some(conn) => self.target.look(conn).await,
            None => self.target.look(&self.pool.shared).await,
        }
    }

    /// Opens the connection to block on: the server gets the time of the block, so that is computed afterwards.
    async fn connect(&mut self) -> Result<Arc<Router>> {
        let conn = self.conn.get_or_insert_with(|| self.pool.acquire()).clone();
        conn.open(&self.target.block()[1]).await?;
        Ok(conn)
    }

    /// What was found. If the wait is over by now, it is given back (LQ-BLOCK-15).
    async fn unless_over(&self, ended: &CancellationToken, found: T::Found) -> Result<Option<T::Found>> {
        let cancelled = ended.is_cancelled();
        if !cancelled && self.decision.as_ref().is_none_or(Decision::is_first) {
            return Ok(Some(found));
        }
        match T::give_back(found).await {
            Some(kept) => Ok(Some(kept)),
            None if cancelled => Err(Error::closed()),
            None => Ok(None),
        }
    }

    /// Blocks for a time or until a wake-up, then looks on the same connection.
    async fn block_then_look(&mut self, ended: &CancellationToken, conn: &Arc<Router>, pause: Duration) -> Result<Look<T::Found>> {
        let begun = Instant::now();
        let mut words = self.target.block();
        let key = words[1].clone();
        words.push(format!("{:.3}", pause.as_millis() as f64 / 1000.0).into_bytes());
        let words = command(&words);
        let block = conn.send_once(&key, pause + BLOCK_GRACE, &words);
        tokio::pin!(block);
        let blocked = tokio::select! {
            biased;
            reply = &mut block => Blocked::Ended(reply),
            () = ended.cancelled() => Blocked::Cancelled,
            () = sleep_until(begun + pause + BLOCK_MARGIN) => Blocked::TimeIsUp,
        };
        match blocked {
            Blocked::Cancelled => Err(Error::closed()),
            Blocked::Ended(reply) if begun.elapsed() < pause => {
                if is_out_of_memory(&reply) {
                    // A server without memory refuses BLMOVE, though it needs none (06.7). Then the time passes without a block.
                    sleep_unless(ended, (begun + pause).saturating_duration_since(Instant::now())).await;
                } else if !says_nothing(&reply) {
                    reply?;
                }
                if ended.is_cancelled() {
                    return Err(Error::closed());
                }
                self.target.look(conn).await
            }
            Blocked::Ended(reply) => {
                let look = self.target.look(conn).await?;
                unless_refused(look, reply)
            }
            Blocked::TimeIsUp => {
                // The server may not have noticed: a command behind the block makes it check the clock (LQ-BLOCK-8).
                let (look, reply) = look_behind(self.target.look(conn), block).await;
                unless_refused(look?, reply)
            }
        }
    }
}

/// Looks while a block is under way; the reply to the block comes before that of the look.
async fn look_behind<L>(look: impl Future<Output = L>, block: impl Future<Output = Result<Value>>) -> (L, Result<Value>) {
    tokio::pin!(block);
    tokio::pin!(look);
    tokio::select! {
        biased;
        reply = &mut block => (look.await, reply),
        found = &mut look => (found, block.await),
    }
}

/// A look that found something counts, whatever became of the block (LQ-BLOCK-22).
fn unless_refused<T>(look: Look<T>, block: Result<Value>) -> Result<Look<T>> {
    if look.found.is_none() && !says_nothing(&block) && !is_out_of_memory(&block) {
        block?;
    }
    Ok(look)
}

fn says_nothing(block: &Result<Value>) -> bool {
    match block {
        Ok(_) => true,
        Err(error) => *error.kind() == ErrorKind::Connection || ENDS_OF_BLOCKS.contains(&error.code()),
    }
}

fn is_out_of_memory(block: &Result<Value>) -> bool {
    matches!(block, Err(error) if error.code() == "OOM")
}

async fn sleep_unless(ended: &CancellationToken, pause: Duration) {
    tokio::select! {
        () = ended.cancelled() => {}
        () = sleep(pause) => {}
    }
}
