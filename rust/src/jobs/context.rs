//! What a function knows of its job, and the note about a running job (LQ-JOB-10).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use redis::Cmd;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::encoding::Word;
use crate::error::{Error, Result};
use crate::generated::scripts::WAIT_CAP_MS;
use crate::item_run::Task;
use crate::jobs::failure::unix_ms;
use crate::jobs::watch::changed_key;
use crate::script::command;

/// How often a note is written at most. A job that is over by then has none.
const NOTE_INTERVAL: Duration = Duration::from_millis(250);
const NOTE_LIFE: Duration = Duration::from_secs(600);
const MAX_REPORT_BYTES: usize = 4096;

/// What a function knows of its job.
#[derive(Clone, Debug)]
pub struct Context {
    task: Task,
    attempt: i64,
    pub(crate) time_over: CancellationToken,
    progress: Arc<Mutex<Progress>>,
}

#[derive(Debug, Default)]
struct Progress {
    told: Map<String, Value>,
    changed: bool,
}

impl Context {
    pub(crate) fn new(task: &Task, attempt: i64) -> Context {
        Context { task: task.clone(), attempt, time_over: CancellationToken::new(), progress: Arc::default() }
    }

    /// The item of the job, with its id, headers and token.
    pub fn item(&self) -> &crate::LeasedItem {
        &self.task
    }

    /// The number of this attempt, from 1.
    pub fn attempt(&self) -> i64 {
        self.attempt
    }

    /// Tells clients that look at the job how much is done, and of how much.
    pub fn progress(&self, done: f64, total: Option<f64>) {
        let parts = [("done", Some(done)), ("total", total)];
        self.tell(parts.into_iter().filter_map(|(name, value)| Some((name.into(), number(value?)))).collect());
    }

    /// Tells them any value in place of numbers, as JSON of up to 4096 bytes. See `JobInfo::report`.
    pub fn report(&self, value: impl Serialize) -> Result<()> {
        let value = serde_json::to_value(value).map_err(|why| Error::refused(format!("a report is a value of JSON: {why}")))?;
        let bytes = value.to_string().len();
        if bytes > MAX_REPORT_BYTES {
            return Err(Error::refused(format!(
                "a report has at most {MAX_REPORT_BYTES} bytes as JSON, not {bytes}: store it elsewhere, and report where"
            )));
        }
        self.tell([("progress".into(), value)].into_iter().collect());
        Ok(())
    }

    fn tell(&self, told: Map<String, Value>) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.told = told;
        progress.changed = true;
    }

    /// Waits until the time limit of the attempt is over: a second later the future of the function is dropped.
    pub async fn time_over(&self) {
        self.time_over.cancelled().await;
    }

    /// Waits until the worker is stopped.
    pub async fn stopping(&self) {
        self.task.stopping().await;
    }

    /// The note about the job. When it is dropped, it is deleted.
    pub(crate) fn note(&self, worker: &str, started: SystemTime) -> Note {
        let key = self.task.queue().keys().key(&format!("job:{}", self.task.id()));
        let text = json!({"v": 1, "token": self.task.token(), "worker": worker, "started": unix_ms(started)});
        Note { context: self.clone(), key, text, written: 0, again_at: None, failed: false }
    }
}

/// A whole number as one.
fn number(given: f64) -> Value {
    if given.fract() == 0.0 && given.abs() < 9e15 { json!(given as i64) } else { json!(given) }
}

/// The note about one job that runs.
pub(crate) struct Note {
    context: Context,
    key: Vec<u8>,
    text: Value,
    /// How often.
    written: i64,
    again_at: Option<Instant>,
    /// Whether the attempt failed.
    pub(crate) failed: bool,
}

impl Note {
    /// Writes it again and again.
    pub(crate) async fn write(&mut self) {
        loop {
            sleep(NOTE_INTERVAL).await;
            let mut text = self.text.clone();
            let changed = {
                let mut progress = self.context.progress.lock().unwrap_or_else(PoisonError::into_inner);
                for (name, value) in &progress.told {
                    text[name] = value.clone();
                }
                std::mem::take(&mut progress.changed)
            };
            if changed || self.again_at.is_none_or(|at| at < Instant::now()) {
                text["n"] = self.written.into();
                let life = NOTE_LIFE.as_millis().to_string();
                let commands = self.published(&["SET".word(), self.key.clone(), text.to_string().into(), "PX".word(), life.into()]);
                self.again_at = Some(Instant::now() + NOTE_LIFE / 3);
                self.written += 1;
                let pool = self.context.task.queue().pool();
                let _ = pool.shared.transaction(&self.key, pool.limit, &commands).await;
            }
        }
    }

    /// A command on the note, and those that wake clients that watch the job (LQ-JOB-63).
    fn published(&self, words: &[Vec<u8>]) -> Vec<Cmd> {
        let task = &self.context.task;
        let changed = changed_key(task.queue(), task.id(), task.attempt(), self.written);
        vec![
            command(words),
            command(&["RPUSH".word(), changed.clone(), "1".word()]),
            command(&["PEXPIRE".word(), changed, WAIT_CAP_MS.to_string().into()]),
        ]
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if self.written > 0 || self.failed {
            let commands = self.published(&["DEL".word(), self.key.clone()]);
            let (pool, key) = (self.context.task.queue().pool().clone(), std::mem::take(&mut self.key));
            let running = pool.clone();
            pool.spawn(async move { drop(running.shared.transaction(&key, running.limit, &commands).await) });
        }
    }
}
