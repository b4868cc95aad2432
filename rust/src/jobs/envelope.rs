//! The envelope: the data of a job's item.

use std::time::Duration;

use rmpv::Value;

use crate::jobs::format::{Format, integer, integer_member, member, text_member};

pub(crate) const VERSION: i64 = 1;
/// The longest envelope that a result or a note about a cancellation repeats.
pub(crate) const MAX_COPY_BYTES: usize = 4096;
const MAX_FUNCTION_CHARS: usize = 200;
const MAX_DELAY_MS: i64 = 315_360_000_000;

/// A job as it was read.
pub(crate) struct Envelope {
    pub(crate) format: Format,
    pub(crate) map: Value,
}

impl Envelope {
    /// Reads a job (LQ-JOB-19).
    pub(crate) fn read(data: &[u8]) -> Result<Envelope, String> {
        let map = read_map(data, "job")?;
        match problem_of(&map) {
            Some(wrong) => Err(format!("this is no job that can be read: {wrong}")),
            None => Ok(Envelope { format: Format::of(data), map }),
        }
    }

    pub(crate) fn function(&self) -> &str {
        text_member(&self.map, "function").unwrap_or_default()
    }

    /// The number of the first attempt.
    pub(crate) fn first_attempt(&self) -> i64 {
        integer_member(&self.map, "attempt").unwrap_or(1)
    }

    /// The limit of one attempt: `None` if it is missing, 0 for no limit.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        integer_member(&self.map, "timeout").map(|ms| Duration::from_millis(ms.unsigned_abs()))
    }

    pub(crate) fn stages(&self) -> &[Value] {
        member(&self.map, "then").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The delay after a failed attempt (LQ-JOB-5): that of the job, or else of the worker.
    pub(crate) fn delay_after(&self, attempt: i64, otherwise: impl FnOnce() -> Duration) -> Duration {
        let list = |name: &str| -> Option<Vec<i64>> { member(&self.map, name)?.as_array()?.iter().map(integer).collect() };
        let place = usize::try_from(attempt - 1).unwrap_or_default();
        if let Some(delays) = list("delays") {
            return Duration::from_millis(delays[place.min(delays.len() - 1)].unsigned_abs());
        }
        match list("backoff").as_deref() {
            Some([first, last]) => {
                let ms = (*first as f64 * 2f64.powi(place.min(60) as i32)).min(*last as f64);
                Duration::from_millis((ms * (0.5 + crate::verdict::random_part() / 2.0)).round() as u64)
            }
            _ => otherwise(),
        }
    }
}

/// Arguments by position, and names and values of those by name.
pub(crate) type Arguments = (Vec<Value>, Vec<(Value, Value)>);

/// The arguments of a job. A serializer of another program wrote them if there is a codec.
pub(crate) fn arguments_of(job: &Value) -> Result<Arguments, String> {
    if let Some(codec) = text_member(job, "codec") {
        return Err(format!("the arguments were written by serializer {codec}, which this client does not have"));
    }
    let args = member(job, "args").and_then(Value::as_array).cloned().unwrap_or_default();
    let kwargs = member(job, "kwargs").and_then(Value::as_map).cloned().unwrap_or_default();
    Ok((args, kwargs))
}

/// Reads a job or a result.
pub(crate) fn read_map(data: &[u8], what: &str) -> Result<Value, String> {
    let map = Format::read(data).map_err(|why| format!("this is no {what}: it cannot be read: {why}"))?;
    if !map.is_map() {
        return Err(format!("this is no {what}: it is no map"));
    }
    match member(&map, "v").and_then(integer) {
        Some(VERSION) => Ok(map),
        _ => Err(format!("this {what} is of another version, and this program knows {VERSION}")),
    }
}

/// What breaks the table of the specification.
fn problem_of(job: &Value) -> Option<&'static str> {
    let length = text_member(job, "function").map_or(0, |name| name.chars().count());
    if !(1..=MAX_FUNCTION_CHARS).contains(&length) {
        return Some("function is text of 1 to 200 characters");
    }
    MEMBERS.iter().find(|(name, is_right)| member(job, name).is_some_and(|value| !is_right(value))).map(|(name, _)| *name)
}

type Check = fn(&Value) -> bool;

/// The types of the members that may be missing.
const MEMBERS: &[(&str, Check)] = &[
    ("args", Value::is_array),
    ("kwargs", |value| value.as_map().is_some_and(|all| all.iter().all(|(name, _)| name.is_str()))),
    ("enqueued", |value| integer(value).is_some()),
    ("due", |value| integer(value).is_some()),
    ("attempt", |value| integer(value).is_some()),
    ("timeout", |value| integer(value).is_some_and(|ms| ms >= 0)),
    ("backoff", |value| value.as_array().is_some_and(|all| all.len() == 2 && all.iter().all(is_delay))),
    ("delays", |value| value.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(is_delay))),
    ("description", Value::is_str),
    ("codec", Value::is_str),
    ("body", |value| value.is_bin() || value.is_str()),
    ("then", |value| value.as_array().is_some_and(|all| all.iter().all(is_stage))),
];

fn is_delay(value: &Value) -> bool {
    integer(value).is_some_and(|ms| (0..=MAX_DELAY_MS).contains(&ms))
}

fn is_stage(stage: &Value) -> bool {
    let Some(job) = member(stage, "job") else { return false };
    let is_map_of = |name: &str, is_right: Check| {
        member(stage, name)
            .is_none_or(|value| value.as_map().is_some_and(|all| all.iter().all(|(key, each)| key.is_str() && is_right(each))))
    };
    text_member(stage, "queue").is_some()
        && integer_member(job, "v") == Some(VERSION)
        && problem_of(job).is_none()
        && member(stage, "id").is_none_or(Value::is_str)
        && is_map_of("add", |value| value.is_str() || integer(value).is_some())
        && is_map_of("headers", Value::is_str)
}
