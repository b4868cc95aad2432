//! Enqueuing jobs.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use redis::Cmd;
use rmpv::Value;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::generated::codecs::AddOptions;
use crate::item::{NewItem, derived_id};
use crate::jobs::app::App;
use crate::jobs::envelope::VERSION;
use crate::jobs::failure::unix_ms;
use crate::jobs::format::{map, to_value};
use crate::queue::{Queue, Wait};
use crate::verdict::random_number;

/// A call of a function, to be enqueued as a job.
#[derive(Clone, Debug)]
pub struct Call {
    function: String,
    args: Vec<Value>,
    kwargs: Vec<(Value, Value)>,
    options: AddOptions,
    timeout: Option<Duration>,
    id: Option<String>,
    queue: Option<String>,
    refused: Option<String>,
}

/// A job that was enqueued.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Enqueued {
    /// Its id.
    pub id: String,
    /// False if a job of this id was in its queue already.
    pub added: bool,
}

impl Call {
    /// A call of a function without arguments.
    pub fn new(function: impl Into<String>) -> Call {
        Call {
            function: function.into(),
            args: Vec::new(),
            kwargs: Vec::new(),
            options: AddOptions::new(),
            timeout: None,
            id: None,
            queue: None,
            refused: None,
        }
    }

    /// Adds an argument by position.
    pub fn arg(mut self, value: impl Serialize) -> Call {
        match to_value(&value) {
            Ok(value) => self.args.push(value),
            Err(why) => self.refused = Some(why),
        }
        self
    }

    /// Adds an argument by name.
    pub fn named(mut self, name: &str, value: impl Serialize) -> Call {
        match to_value(&value) {
            Ok(value) => self.kwargs.push((name.into(), value)),
            Err(why) => self.refused = Some(why),
        }
        self
    }

    /// Delay, priority, attempts, expiry (from the due time), how long the result is kept, and headers.
    pub fn options(mut self, options: AddOptions) -> Call {
        self.options = options;
        self
    }

    /// The limit of one attempt; 0 is none.
    pub fn timeout(mut self, timeout: Duration) -> Call {
        self.timeout = Some(timeout);
        self
    }

    /// The id of the job. Default: a new one.
    pub fn id(mut self, id: impl Into<String>) -> Call {
        self.id = Some(id.into());
        self
    }

    /// The queue of the job. Default: that of the App.
    pub fn on(mut self, queue: impl Into<String>) -> Call {
        self.queue = Some(queue.into());
        self
    }

    /// The envelope of the job of a slot (LQ-JOB-14).
    pub(crate) fn envelope_at(&self, now: i64, slot: i64) -> Value {
        let mut envelope = self.envelope(Some(now), Vec::new());
        if let Value::Map(members) = &mut envelope {
            members.retain(|(name, _)| name.as_str() != Some("due"));
            members.push(("due".into(), slot.into()));
        }
        envelope
    }

    fn id_or_new(&self) -> String {
        self.id.clone().unwrap_or_else(|| format!("{:016x}{:016x}", random_number(), random_number()))
    }

    pub(crate) fn queue_or<'a>(&'a self, queue: &'a str) -> &'a str {
        self.queue.as_deref().unwrap_or(queue)
    }

    /// The envelope; of a stage of a chain it says neither when it was written nor when it is due.
    fn envelope(&self, times: Option<i64>, stages: Vec<Value>) -> Value {
        let due = self.options.delay.map_or(0, |delay| delay.as_millis() as i64);
        map([
            ("v", Some(VERSION.into())),
            ("function", Some(self.function.clone().into())),
            ("args", (!self.args.is_empty()).then(|| self.args.clone().into())),
            ("kwargs", (!self.kwargs.is_empty()).then(|| Value::Map(self.kwargs.clone()))),
            ("enqueued", times.map(Into::into)),
            ("due", times.filter(|_| due > 0).map(|now| (now + due).into())),
            ("timeout", self.timeout.map(|timeout| (timeout.as_millis() as u64).into())),
            ("then", (!stages.is_empty()).then(|| stages.into())),
        ])
    }

    /// An expiry counts from the due time.
    pub(crate) fn add_options(&self) -> AddOptions {
        let mut options = self.options.clone();
        options.expires_in = options.expires_in.map(|expiry| expiry + options.delay.unwrap_or_default());
        options
    }

    /// The stage of a chain.
    pub(crate) fn stage(&self, id: Option<String>, queue: &str) -> Value {
        let options = self.add_options();
        let ms = |time: Option<Duration>| time.map(|time| (time.as_millis() as u64).into());
        let add = map([
            ("delay", ms(options.delay)),
            ("priority", options.priority.map(Into::into)),
            ("max_attempts", options.max_attempts.map(Into::into)),
            ("expires_in", ms(options.expires_in)),
            ("expires_to", options.expires_to.then(|| "dead".into())),
            ("keep", ms(options.keep)),
        ]);
        let header = |each: &crate::Header| (each.name.clone().into(), String::from_utf8_lossy(&each.value).into_owned().into());
        let headers: Vec<(Value, Value)> = options.headers.iter().map(header).collect();
        map([
            ("id", id.map(Into::into)),
            ("queue", Some(self.queue.as_deref().unwrap_or(queue).into())),
            ("job", Some(self.envelope(None, Vec::new()))),
            ("add", Some(add)),
            ("headers", (!headers.is_empty()).then_some(Value::Map(headers))),
        ])
    }
}

impl App {
    /// Enqueues a job.
    pub async fn enqueue(&self, call: Call) -> Result<Enqueued> {
        self.enqueue_chain(call, Vec::new()).await
    }

    /// Enqueues jobs one after the other, each given what the one before it returned as its first argument. One call of the server completes a
    /// job and enqueues the next, so no crash comes between.
    pub async fn enqueue_chain(&self, first: Call, later: Vec<Call>) -> Result<Enqueued> {
        if let Some(why) = first.refused.iter().chain(later.iter().filter_map(|each| each.refused.as_ref())).next() {
            return Err(Error::refused(why.clone()));
        }
        let id = first.id_or_new();
        let stage_ids: Vec<String> = (1..=later.len()).map(|number| derived_id(&id, &number.to_string())).collect();
        let stages = later.iter().zip(&stage_ids).map(|(call, id)| call.stage(Some(id.clone()), &self.queue)).collect();
        let queue = self.queue_named(first.queue_or(&self.queue))?;
        let added = queue.add(self.item(&first, id.clone(), stages)?).await?.is_new();
        if added && first.id.is_some() {
            forget_notes(&queue, &id).await?;
            for (call, id) in later.iter().zip(&stage_ids) {
                forget_notes(&self.queue_named(call.queue_or(&self.queue))?, id).await?;
            }
        }
        Ok(Enqueued { id, added })
    }

    /// Enqueues jobs, in one call of the server for each queue and 256 of them. Returns what became of each, in their order.
    pub async fn enqueue_all(&self, calls: &[Call]) -> Result<Vec<Enqueued>> {
        if let Some(why) = calls.iter().find_map(|call| call.refused.as_ref()) {
            return Err(Error::refused(why.clone()));
        }
        let mut enqueued: Vec<Enqueued> = calls.iter().map(|call| Enqueued { id: call.id_or_new(), added: false }).collect();
        let items = calls.iter().zip(&enqueued).map(|(call, job)| self.item(call, job.id.clone(), Vec::new()));
        let items = items.collect::<Result<Vec<NewItem>>>()?;
        let names: BTreeSet<&str> = calls.iter().map(|call| call.queue_or(&self.queue)).collect();
        for name in names {
            let queue = self.queue_named(name)?;
            let places: Vec<usize> = (0..calls.len()).filter(|at| calls[*at].queue_or(&self.queue) == name).collect();
            let of_queue: Vec<NewItem> = places.iter().map(|at| items[*at].clone()).collect();
            for (at, added) in places.into_iter().zip(queue.add_all(&of_queue, Wait::No).await?) {
                enqueued[at].added = added.is_new();
                if added.is_new() && calls[at].id.is_some() {
                    forget_notes(&queue, &enqueued[at].id).await?;
                }
            }
        }
        Ok(enqueued)
    }

    fn item(&self, call: &Call, id: String, stages: Vec<Value>) -> Result<NewItem> {
        let envelope = call.envelope(Some(unix_ms(SystemTime::now())), stages);
        let data = self.format.write(&envelope).map_err(Error::refused)?;
        Ok(NewItem::new(id, data).with(call.add_options()))
    }
}

/// Deletes what is left of an earlier job of an id (LQ-JOB-26).
async fn forget_notes(queue: &Queue, id: &str) -> Result<()> {
    let keys = [queue.keys().key(&format!("job:{id}")), queue.keys().key(&format!("cancelled:{id}"))];
    let mut command = Cmd::new();
    command.arg("DEL").arg(&keys[0]).arg(&keys[1]);
    queue.pool().shared.send(&keys[0], queue.pool().limit, &command).await.map(drop)
}
