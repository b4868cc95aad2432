//! A watch of one job: what is known of it, now and whenever that changes.

use std::time::Duration;

use futures_core::Stream;
use futures_util::stream::try_unfold;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::encoding::Words;
use crate::error::Result;
use crate::generated::codecs::{OutcomeState, State};
use crate::jobs::handle::{Job, JobInfo, JobStatus, Snapshot};
use crate::pool::WAIT_CAP;
use crate::queue::Queue;
use crate::race::race;
use crate::requests;
use crate::router::Router;
use crate::script::Call;
use crate::targets::block_on;
use crate::waiting::{Look, Target, detached};

/// How long a watch waits that saw nothing new behind a wake-up, or has no connections to block on.
const PAUSE: Duration = Duration::from_millis(250);

/// A list that has an element for 4 s once a job has changed (LQ-JOB-63): number `n` of the changes of an attempt, from 0.
pub(crate) fn changed_key(queue: &Queue, id: &str, attempt: i64, n: i64) -> Vec<u8> {
    queue.keys().key(&format!("changed:{id}:{attempt}.{n}"))
}

impl Job {
    /// What `info` returns: at once, and whenever the status, the attempt or the progress changes. The stream ends behind the info of a job that
    /// has ended: succeeded, failed, cancelled or unknown. An error ends it too.
    ///
    /// It waits without polling. It sees other changes within 4 s: the end of a delay, or the death of a worker. It takes two connections
    /// while it waits, until it is dropped; from the 17th on that a client has at a time, a watch takes none and looks four times a second.
    ///
    /// ```no_run
    /// # async fn show(job: leaseq::jobs::Job) -> leaseq::Result<()> {
    /// use futures_util::StreamExt;
    ///
    /// let mut watch = std::pin::pin!(job.watch());
    /// while let Some(info) = watch.next().await {
    ///     println!("{}", info?.status.as_str());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn watch(&self) -> impl Stream<Item = Result<JobInfo>> + Send + use<> {
        let start = Watch { job: self.clone(), seen: None, next: Change::default(), looked_at: None, woken_in_vain: false };
        try_unfold(start, |mut watch| async move { Ok(watch.news().await?.map(|info| (info, watch))) })
    }

    /// Waits until a change of the job is published or it has an outcome, for the wait cap at most. False at once if as many watches of the
    /// client block as may.
    async fn await_change(&self, change: Change) -> Result<bool> {
        let pool = self.queue.pool();
        let Ok(permit) = pool.watches.clone().try_acquire_owned() else { return Ok(false) };
        let changed = changed_key(&self.queue, &self.id, change.attempt, change.n);
        let lists = [changed, self.queue.keys().result_key(self.id.as_bytes())];
        let targets = lists.into_iter().map(|list| WakeTarget { job: self.clone(), list }).collect();
        let looks = (0..2).map(|_| Look { found: None, due: Some(WAIT_CAP), sent: Instant::now() }).collect();
        let ended = pool.closing.child_token();
        let blocking = race(pool.clone(), targets, looks, ended.clone(), None);
        let wait = async move {
            let _permit = permit;
            blocking.await
        };
        detached(pool, ended, Box::pin(wait)).await?;
        Ok(true)
    }
}

/// A list that wakes a watch, which then finds out what has changed. The look only makes a server notice that the time of the block is over.
struct WakeTarget {
    job: Job,
    list: Vec<u8>,
}

impl Target for WakeTarget {
    type Found = ();

    async fn look(&mut self, on: &Router) -> Result<Look<()>> {
        let sent = Instant::now();
        let queue = &self.job.queue;
        on.run(&requests::outcome(queue.keys(), &[self.job.id.as_bytes().to_vec()]), queue.pool().limit).await?;
        Ok(Look { found: Some(()), due: None, sent })
    }

    fn block(&self) -> Words {
        block_on(self.list.clone())
    }

    fn settles(&self) -> Vec<Call> {
        Vec::new()
    }

    async fn give_back(found: ()) -> Option<()> {
        Some(found)
    }
}

/// A watch, and what it has seen last.
struct Watch {
    job: Job,
    seen: Option<View>,
    next: Change,
    /// When it looked; `None` if it is to look again at once.
    looked_at: Option<Instant>,
    /// Whether it blocked and then saw nothing new.
    woken_in_vain: bool,
}

/// What a watch compares: the status, the attempt, the progress and the report.
type View = (JobStatus, u32, Option<(f64, Option<f64>)>, Value);

impl Watch {
    /// The next info that differs; `None` behind the end of the job.
    async fn news(&mut self) -> Result<Option<JobInfo>> {
        if self.seen.as_ref().is_some_and(|(status, ..)| status.is_end()) {
            return Ok(None);
        }
        loop {
            let waited = self.wait().await?;
            let looked_at = Instant::now();
            let found = self.job.snapshot().await?;
            let info = found.info()?;
            let view = Some((info.status, info.attempt, info.progress, info.report.clone()));
            let is_new = view != self.seen;
            self.seen = view;
            self.next = self.next.behind(&found);
            self.looked_at = (!is_torn(&found)).then_some(looked_at);
            self.woken_in_vain = waited && !is_new;
            if is_new {
                return Ok(Some(info));
            }
        }
    }

    /// Waits until the next look is due. True if it blocked for that.
    async fn wait(&self) -> Result<bool> {
        // The change that follows a look long ago can be past, and its list with it, which lives for the wait cap.
        if self.looked_at.is_none_or(|at| at.elapsed() > WAIT_CAP / 2) {
            return Ok(false);
        }
        if self.woken_in_vain {
            sleep(PAUSE).await;
        }
        let waited = self.job.await_change(self.next).await?;
        if !waited {
            sleep(PAUSE).await;
        }
        Ok(waited)
    }
}

/// A change that the worker of a lease publishes (LQ-JOB-63). The token is 0 if the lease is still to come.
#[derive(Clone, Copy, Default)]
struct Change {
    token: i64,
    attempt: i64,
    n: i64,
}

impl Change {
    /// The change that will be published next, or was since. A note that is gone does not set the number back: the attempt has ended, and what
    /// was published then lets the watch look until the item says so too.
    fn behind(self, found: &Snapshot) -> Change {
        let item = &found.item;
        if item.state != State::Leased {
            return Change { attempt: item.attempt + 1, ..Change::default() };
        }
        let n = match found.note() {
            Some(note) => note["n"].as_i64().unwrap_or(0) + 1,
            None if self.token == item.token => self.n,
            None => 0,
        };
        Change { token: item.token, attempt: item.attempt, n }
    }
}

/// Whether the job changed between the calls that read it.
fn is_torn(found: &Snapshot) -> bool {
    (found.outcome.state == OutcomeState::Leased) != (found.item.state == State::Leased)
}
