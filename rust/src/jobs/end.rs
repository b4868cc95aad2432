//! How a job ended.

use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::generated::codecs::{Outcome, OutcomeState};
use crate::jobs::envelope::{Envelope, read_map};
use crate::jobs::failure::Failure;
use crate::jobs::format::{from_value, member, text_member};
use crate::jobs::handle::{Job, number_of};
use crate::lease::first;
use crate::queue::Wait;

/// How a job ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum JobEnd<T> {
    /// What its function returned.
    Returned(T),
    /// It is dead, since it failed for the last time.
    Failed {
        /// The kind of failure in its worker, such as `ValueError`; empty if no worker wrote one.
        kind: String,
        /// That of the failure.
        message: String,
        /// The number of the last attempt, as the function saw it.
        attempt: i64,
    },
    /// It was cancelled.
    Cancelled,
    /// There is no result of it, and none will come. Of a job that was enqueued without `keep` that is so before it has run.
    NotKept,
    /// It has not ended within the time that the call waited.
    Waiting,
}

pub(crate) fn may_end(outcome: &Outcome) -> bool {
    matches!(outcome.state, OutcomeState::Ready | OutcomeState::Delayed | OutcomeState::Leased)
}

impl Job {
    /// How the job ended. It waits for that if its result is kept: enqueue the job with [`AddOptions::keep`](crate::AddOptions::keep). Without, it
    /// returns [`JobEnd::NotKept`] at once.
    pub async fn end<T: DeserializeOwned>(&self, wait: Wait) -> Result<JobEnd<T>> {
        let mut outcome = first(self.queue.outcomes(&[&self.id]).await?)?;
        if may_end(&outcome) && !outcome.keep.is_zero() {
            let first = outcome.created;
            outcome = self.queue.wait_outcome(&self.id, wait).await?;
            if outcome.created.is_some() && outcome.created != first {
                outcome.state = OutcomeState::Absent; // another item of this id by now (LQ-BLOCK-13)
            }
        }
        match outcome.state {
            OutcomeState::Result => Ok(JobEnd::Returned(result_of(&outcome.content)?)),
            OutcomeState::Failure => Ok(failed(&outcome.content, self.last_attempt(&outcome).await?)),
            OutcomeState::Dead => {
                let info = first(self.queue.inspect(&[&self.id]).await?)?;
                Ok(failed(&info.error, self.last_attempt(&outcome).await?))
            }
            _ if may_end(&outcome) && outcome.keep.is_zero() => Ok(JobEnd::NotKept),
            _ if may_end(&outcome) => Ok(JobEnd::Waiting),
            _ if self.notes().await?.1.is_some() => Ok(JobEnd::Cancelled),
            _ => Ok(JobEnd::NotKept),
        }
    }

    /// The number of the last attempt as people see it; without the item, as the item counted.
    async fn last_attempt(&self, outcome: &Outcome) -> Result<i64> {
        let job = self.data().await?.and_then(|data| Envelope::read(&data).ok());
        Ok(number_of(outcome.attempt, job.as_ref().map_or(1, Envelope::first_attempt)).into())
    }
}

fn failed<T>(text: &[u8], attempt: i64) -> JobEnd<T> {
    let Failure { kind, message, .. } = Failure::read(&String::from_utf8_lossy(text));
    JobEnd::Failed { kind, message, attempt }
}

pub(crate) fn result_of<T: DeserializeOwned>(content: &[u8]) -> Result<T> {
    let map = read_map(content, "result").map_err(Error::refused)?;
    if let Some(codec) = text_member(&map, "codec") {
        return Err(Error::refused(format!("the result was written by serializer {codec}, which this client does not have")));
    }
    from_value(member(&map, "result").cloned().unwrap_or(rmpv::Value::Nil)).map_err(Error::refused)
}
