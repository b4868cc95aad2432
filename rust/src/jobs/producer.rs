//! Enqueuing jobs.

use std::collections::BTreeMap;
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
use crate::jobs::once::{self, Draft};
use crate::queue::Queue;
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
    pub(crate) unique: bool,
    pub(crate) throttle: Option<Duration>,
    queue: Option<String>,
    refused: Option<String>,
}

/// A job that was enqueued.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Enqueued {
    /// Its id.
    pub id: String,
    /// False if a job of this id was in its queue already, if the result of a unique job is kept, or if the slot of a throttled job has its job.
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
            unique: false,
            throttle: None,
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

    /// Adds an argument by name; of two with one name the later one counts.
    pub fn named(mut self, name: &str, value: impl Serialize) -> Call {
        match to_value(&value) {
            Ok(value) => {
                self.kwargs.retain(|(given, _)| given.as_str() != Some(name));
                self.kwargs.push((name.into(), value));
            }
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

    /// Makes the id of the function and its arguments, as JSON: while a job with the same ones is in its queue, or its result is kept, a second
    /// one is not enqueued. It goes neither with `id` nor with `throttle`.
    pub fn unique(mut self) -> Call {
        self.unique = true;
        self
    }

    /// Enqueues one job with the same function and arguments in each slot of this length, by the server's clock. It goes neither with `id` nor
    /// with `unique`.
    pub fn throttle(mut self, length: Duration) -> Call {
        self.throttle = Some(length);
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

    /// Refuses what no job can have.
    fn check(&self) -> Result<()> {
        if let Some(why) = &self.refused {
            return Err(Error::refused(why.clone()));
        }
        match (self.unique, self.throttle) {
            (true, Some(_)) => Err(Error::refused("a job is unique or throttled, not both: leave out unique or throttle")),
            (_, Some(length)) if once::slot_ms(length) == 0 => Err(Error::refused("throttle is 1 ms or longer, not shorter")),
            _ if self.is_once() && self.id.is_some() => Err(Error::refused(
                "the id of a job that is unique or throttled is made of its arguments: leave out id, or unique and throttle",
            )),
            _ => Ok(()),
        }
    }

    /// Whether the id is made of the arguments.
    pub(crate) fn is_once(&self) -> bool {
        self.unique || self.throttle.is_some()
    }

    fn has_chosen_id(&self) -> bool {
        self.id.is_some() || self.is_once()
    }

    /// The id of the job, if it is enqueued at this time of the server in ms.
    fn id_at(&self, now: u128) -> Result<String> {
        let made = match (self.unique, self.throttle) {
            (true, _) => once::unique_id(&self.function, &self.args, &self.kwargs),
            (_, Some(length)) => once::slot_id(&self.function, &self.args, &self.kwargs, length, now),
            _ => Ok(self.id.clone().unwrap_or_else(|| format!("{:016x}{:016x}", random_number(), random_number()))),
        };
        made.map_err(|why| {
            Error::refused(format!(
                "the id of a job that is unique or throttled is made of its arguments as JSON, which has none for a call of {}: {why}; choose an id \
                 yourself, with id",
                self.function
            ))
        })
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
        std::iter::once(&first).chain(&later).try_for_each(Call::check)?;
        if later.iter().any(Call::is_once) {
            return Err(Error::refused(
                "a later job of a chain is neither unique nor throttled, as its first argument is not known yet: the first job of the chain can be",
            ));
        }
        let queue = self.queue_named(first.queue_or(&self.queue))?;
        let id = first.id_at(if first.throttle.is_some() { server_ms(&queue).await? } else { 0 })?;
        let stage_ids: Vec<String> = (1..=later.len()).map(|number| derived_id(&id, &number.to_string())).collect();
        let stages = later.iter().zip(&stage_ids).map(|(call, id)| call.stage(Some(id.clone()), &self.queue)).collect();
        let item = self.item(&first, id.clone(), stages)?;
        let added = once::add(&queue, vec![Draft { call: &first, id: &id, item }]).await?[0];
        if added && first.has_chosen_id() {
            forget_notes(&queue, &id).await?;
            for (call, id) in later.iter().zip(&stage_ids) {
                forget_notes(&self.queue_named(call.queue_or(&self.queue))?, id).await?;
            }
        }
        Ok(Enqueued { id, added })
    }

    /// Enqueues jobs, in one call of the server for each queue and 256 of them. Returns what became of each, in their order.
    pub async fn enqueue_all(&self, calls: &[Call]) -> Result<Vec<Enqueued>> {
        calls.iter().try_for_each(Call::check)?;
        let mut times = BTreeMap::new();
        for call in calls.iter().filter(|call| call.throttle.is_some()) {
            let name = call.queue_or(&self.queue);
            if !times.contains_key(name) {
                times.insert(name, server_ms(&self.queue_named(name)?).await?);
            }
        }
        let time_of = |call: &Call| times.get(call.queue_or(&self.queue)).copied().unwrap_or_default();
        let ids = calls.iter().map(|call| call.id_at(time_of(call))).collect::<Result<Vec<String>>>()?;
        let items = calls.iter().zip(&ids).map(|(call, id)| self.item(call, id.clone(), Vec::new()));
        let items = items.collect::<Result<Vec<NewItem>>>()?;
        let mut drafts: BTreeMap<&str, (Vec<usize>, Vec<Draft<'_>>)> = BTreeMap::new();
        for (at, ((call, id), item)) in calls.iter().zip(&ids).zip(items).enumerate() {
            let (places, of_queue) = drafts.entry(call.queue_or(&self.queue)).or_default();
            places.push(at);
            of_queue.push(Draft { call, id, item });
        }
        let mut enqueued: Vec<Enqueued> = ids.iter().map(|id| Enqueued { id: id.clone(), added: false }).collect();
        for (name, (places, of_queue)) in drafts {
            let queue = self.queue_named(name)?;
            for (at, added) in places.into_iter().zip(once::add(&queue, of_queue).await?) {
                enqueued[at].added = added;
                if added && calls[at].has_chosen_id() {
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

/// The server's time.
async fn server_ms(queue: &Queue) -> Result<u128> {
    let now = queue.stats().await?.get("now").copied().unwrap_or_default();
    Ok(u128::from(now.unsigned_abs()) / 1000)
}

/// Deletes what is left of an earlier job of an id (LQ-JOB-26).
async fn forget_notes(queue: &Queue, id: &str) -> Result<()> {
    let keys = [queue.keys().key(&format!("job:{id}")), queue.keys().key(&format!("cancelled:{id}"))];
    let mut command = Cmd::new();
    command.arg("DEL").arg(&keys[0]).arg(&keys[1]);
    queue.pool().shared.send(&keys[0], queue.pool().limit, &command).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::format::{Format, member};

    #[test]
    fn of_two_arguments_with_one_name_the_later_one_counts() {
        let envelope = Call::new("f").named("a", 1).named("b", 2).named("a", 3).envelope(None, Vec::new());
        let kwargs = member(&envelope, "kwargs").unwrap();
        assert_eq!(kwargs.as_map().unwrap().len(), 2);
        assert_eq!(member(kwargs, "a").unwrap().as_i64(), Some(3));
        assert!(Format::Json.write(&envelope).unwrap().ends_with(br#""kwargs":{"b":2,"a":3}}"#));
    }
}
