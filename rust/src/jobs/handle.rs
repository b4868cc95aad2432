//! Looking at a job, and cancelling it.

use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use redis::Cmd;
use serde_json::{Value, json};

use crate::encoding::{Reply, Word, bytes_of};
use crate::error::Result;
use crate::generated::codecs::{ItemInfo, Outcome, OutcomeState, State, encode_remove_arguments};
use crate::generated::scripts::{REMOVE, WAIT_CAP_MS};
use crate::jobs::end::{may_end, result_of};
use crate::jobs::envelope::{Envelope, MAX_COPY_BYTES, read_map};
use crate::jobs::failure::{Failure, of_unix_ms, unix_ms};
use crate::jobs::format::{Format, integer_member, member, text_member};
use crate::lease::first;
use crate::queue::Queue;
use crate::requests::queue_call;
use crate::script::command;

const DAY_MS: u64 = 86_400_000;

/// A job, by its id: [`App::job`](crate::jobs::App::job).
#[derive(Clone, Debug)]
pub struct Job {
    pub(crate) queue: Queue,
    pub(crate) id: String,
}

/// The status of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum JobStatus {
    Delayed,
    Ready,
    Running,
    /// It waits for another attempt.
    Retrying,
    Succeeded,
    Failed,
    Cancelled,
    /// There is none, or nothing is kept of it.
    Unknown,
}

impl JobStatus {
    /// The word for it in every language.
    pub fn as_str(self) -> &'static str {
        match self {
            JobStatus::Delayed => "delayed",
            JobStatus::Ready => "ready",
            JobStatus::Running => "running",
            JobStatus::Retrying => "retrying",
            JobStatus::Succeeded => "succeeded",
            JobStatus::Failed => "failed",
            JobStatus::Cancelled => "cancelled",
            JobStatus::Unknown => "unknown",
        }
    }

    pub(crate) fn is_end(self) -> bool {
        matches!(self, JobStatus::Succeeded | JobStatus::Failed | JobStatus::Cancelled | JobStatus::Unknown)
    }

    fn of(outcome: &Outcome, cancelled: bool) -> JobStatus {
        match outcome.state {
            OutcomeState::Ready | OutcomeState::Delayed if outcome.attempt > 0 => JobStatus::Retrying,
            OutcomeState::Ready => JobStatus::Ready,
            OutcomeState::Delayed => JobStatus::Delayed,
            OutcomeState::Leased => JobStatus::Running,
            OutcomeState::Result => JobStatus::Succeeded,
            OutcomeState::Failure | OutcomeState::Dead => JobStatus::Failed,
            OutcomeState::Absent if cancelled => JobStatus::Cancelled,
            _ => JobStatus::Unknown,
        }
    }
}

/// A job as it is now.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JobInfo {
    /// Its status.
    pub status: JobStatus,
    /// The name of its function; empty if the job cannot be read.
    pub function: String,
    /// The number of its last attempt, 0 before the first.
    pub attempt: u32,
    /// When it was enqueued, by the server's clock; `None` if that is not known.
    pub enqueued: Option<SystemTime>,
    /// When its last attempt started, by the worker's clock; known up to a second late.
    pub started: Option<SystemTime>,
    /// When it ended, by the server's clock; `None` before, and if no outcome of it is kept. Of a cancelled job it is the time of the cancel, by the
    /// clock of the program that cancelled it.
    pub ended: Option<SystemTime>,
    /// What its function returned; null before.
    pub result: Value,
    /// The last failure, such as `ValueError: no such order`; empty without one.
    pub error: String,
    /// What the worker added to the last failure for people, such as a traceback; empty if it was a worker in Rust.
    pub traceback: String,
    /// How much of it is done and, if that is known, of how much.
    pub progress: Option<(f64, Option<f64>)>,
    /// The value that it reported in place of numbers; null without one.
    pub report: Value,
    /// The id of the worker that runs it, or ran it last; empty before.
    pub worker: String,
}

/// All that the server has of a job.
pub(crate) struct Snapshot {
    pub(crate) outcome: Outcome,
    pub(crate) item: ItemInfo,
    running: Option<Value>,
    cancelled: Option<Value>,
    /// That of the item.
    data: Option<Vec<u8>>,
}

impl Snapshot {
    /// The note of the current attempt (LQ-JOB-24).
    pub(crate) fn note(&self) -> Option<&Value> {
        self.running.as_ref().filter(|note| self.item.state == State::Leased && note["token"].as_i64() == Some(self.item.token))
    }

    pub(crate) fn info(&self) -> Result<JobInfo> {
        let outcome = &self.outcome;
        let has_result = outcome.state == OutcomeState::Result;
        let map = if has_result { read_map(&outcome.content, "result").unwrap_or(rmpv::Value::Nil) } else { rmpv::Value::Nil };
        let failed = if has_result { Failure::default() } else { self.failure() };
        let job = self.job(&map);
        let status = JobStatus::of(outcome, self.cancelled.is_some());
        let note = self.note();
        let (worker, started) = match note {
            Some(note) => (note["worker"].as_str(), note["started"].as_i64().and_then(of_unix_ms)),
            None if has_result => (text_member(&map, "worker"), integer_member(&map, "started").and_then(of_unix_ms)),
            None => (Some(failed.worker.as_str()), failed.started),
        };
        let cancelled = self.cancelled.as_ref().filter(|_| status == JobStatus::Cancelled);
        Ok(JobInfo {
            status,
            function: job.as_ref().map_or("", Envelope::function).into(),
            attempt: number_of(outcome.attempt, job.as_ref().map_or(1, Envelope::first_attempt)),
            enqueued: outcome.created,
            started,
            ended: cancelled.map_or(outcome.ended, |note| note["cancelled"].as_i64().and_then(of_unix_ms)),
            worker: worker.unwrap_or_default().into(),
            result: if has_result { result_of(&outcome.content)? } else { Value::Null },
            error: failed.description(),
            traceback: failed.traceback,
            progress: note.and_then(|note| Some((note["done"].as_f64()?, note["total"].as_f64()))),
            report: note.map_or(Value::Null, |note| note["progress"].clone()),
        })
    }

    /// The last failure.
    fn failure(&self) -> Failure {
        let text = if self.outcome.state == OutcomeState::Failure { &self.outcome.content } else { &self.item.error };
        Failure::read(&String::from_utf8_lossy(text))
    }

    /// The job by the data of its item or the note of its cancel, or else by the copy in its result; `None` if none of them can be read.
    fn job(&self, result: &rmpv::Value) -> Option<Envelope> {
        let noted = || STANDARD.decode(self.cancelled.as_ref()?["job"].as_str()?).ok();
        let copied = || {
            let map = member(result, "job").filter(|copy| copy.is_map())?.clone();
            Some(Envelope { format: Format::of(&self.outcome.content), map })
        };
        let data = self.data.clone().or_else(noted);
        data.and_then(|data| Envelope::read(&data).ok()).or_else(copied)
    }
}

/// The number of an attempt as people see it: the item counts from 1, the job from its first attempt.
pub(super) fn number_of(attempt: i64, first: i64) -> u32 {
    if attempt == 0 { 0 } else { attempt.saturating_add(first.saturating_sub(1)).clamp(0, u32::MAX.into()) as u32 }
}

impl Job {
    /// All that is known of the job.
    pub async fn info(&self) -> Result<JobInfo> {
        self.snapshot().await?.info()
    }

    /// The data come first: they go with the item, which can end meanwhile.
    pub(crate) async fn snapshot(&self) -> Result<Snapshot> {
        let data = self.data().await?;
        let outcome = first(self.queue.outcomes(&[&self.id]).await?)?;
        let item = first(self.queue.inspect(&[&self.id]).await?)?;
        let (running, cancelled) = self.notes().await?;
        Ok(Snapshot { outcome, item, running, cancelled, data })
    }

    /// The note about a running job, and that about a cancelled one.
    pub(crate) async fn notes(&self) -> Result<(Option<Value>, Option<Value>)> {
        let keys = ["job", "cancelled"].map(|kind| self.key(kind));
        let [running, cancelled] = &keys;
        let reply = self.send(running.clone(), &["MGET".word(), running.clone(), cancelled.clone()]).await?;
        let mut texts = Reply::elements(reply)?;
        Ok((note_of(texts.value()?), note_of(texts.value()?)))
    }

    /// The data of its item.
    pub(super) async fn data(&self) -> Result<Option<Vec<u8>>> {
        let items = self.queue.keys().key("items");
        Ok(bytes_of(self.send(items.clone(), &["HGET".word(), items, self.id.word()]).await?))
    }

    fn key(&self, kind: &str) -> Vec<u8> {
        self.queue.keys().key(&format!("{kind}:{}", self.id))
    }

    async fn send(&self, key: Vec<u8>, words: &[Vec<u8>]) -> Result<redis::Value> {
        self.queue.pool().shared.send(&key, self.queue.pool().limit, &command(words)).await
    }

    /// Removes the job from its queue. False if it has ended, or there is none. A worker that runs it finds out at its next heartbeat.
    pub async fn cancel(&self) -> Result<bool> {
        if !may_end(&first(self.queue.outcomes(&[&self.id]).await?)?) {
            return Ok(false);
        }
        let data = self.data().await?;
        let mut note = json!({"v": 1, "cancelled": unix_ms(SystemTime::now())});
        if let Some(data) = data.filter(|data| data.len() <= MAX_COPY_BYTES) {
            note["job"] = STANDARD.encode(&data).into();
        }
        let key = self.key("cancelled");
        let remove = queue_call(&REMOVE, self.queue.keys(), encode_remove_arguments(&[self.id.word()]));
        let set = command(&["SET".word(), key.clone(), note.to_string().into(), "PX".word(), DAY_MS.to_string().into()]);
        let replies = self.transaction(&key, vec![remove.by_source(), set]).await?;
        let state = replies.into_iter().next().and_then(bytes_of).unwrap_or_default();
        if state.is_empty() || state == b"absent" {
            // it ended meanwhile
            self.send(key.clone(), &["DEL".word(), key]).await?;
            return Ok(false);
        }
        self.wake().await;
        Ok(true)
    }

    /// Wakes clients that wait for the outcome of a job that was cancelled. Without this they look again at the cap.
    async fn wake(&self) {
        let woken = self.key("woken");
        // an outcome that does not count, since its id is not in `kept`: version, kind, and zeros (02.5)
        let outcome = [&[1, 2][..], &[0; 28], b"cancelled"].concat();
        let commands = vec![
            command(&["RPUSH".word(), woken.clone(), outcome]),
            command(&["PEXPIRE".word(), woken.clone(), WAIT_CAP_MS.to_string().into()]),
            // not in place of an outcome: the id may be in use again
            command(&["RENAMENX".word(), woken.clone(), self.queue.keys().result_key(self.id.as_bytes())]),
            command(&["DEL".word(), woken.clone()]),
        ];
        let _ = self.transaction(&woken, commands).await;
    }

    async fn transaction(&self, key: &[u8], commands: Vec<Cmd>) -> Result<Vec<redis::Value>> {
        let reply = self.queue.pool().shared.transaction(key, self.queue.pool().limit, &commands).await?;
        match reply {
            redis::Value::Array(replies) => Ok(replies),
            _ => Err(crate::Error::bad_reply("no array")),
        }
    }
}

/// A note, if it can be read.
fn note_of(text: redis::Value) -> Option<Value> {
    let note = bytes_of(text).and_then(|text| serde_json::from_slice::<Value>(&text).ok())?;
    (note["v"] == 1).then_some(note)
}
