//! What messages have of the client's answers and errors.

use std::fmt::Debug;
use std::time::{SystemTime, UNIX_EPOCH};

use leaseq::{Added, Completed, Error, ErrorKind, HeldItem, ItemInfo, LeasedItem, Outcome, PartialError, WorkerInfo};
use serde_json::{Value, json};

use crate::arguments::b64;

/// How a method did not answer.
pub enum Failure {
    Harness(String),
    Cancelled,
    Client { error: Error, answers: Vec<Value>, in_doubt: usize },
}

impl Failure {
    pub fn harness(why: impl Into<String>) -> Failure {
        Failure::Harness(why.into())
    }

    pub fn of_list<T: Debug>(failed: PartialError<T>, form: impl Fn(&T) -> Value) -> Failure {
        let answers = failed.answers.iter().map(form).collect();
        Failure::Client { error: failed.cause, answers, in_doubt: failed.in_doubt }
    }

    pub fn into_message(self) -> Value {
        match self {
            Failure::Harness(why) => json!({"harness": why}),
            Failure::Cancelled => json!({"cancelled": true}),
            Failure::Client { error, .. } if *error.kind() == ErrorKind::Closed => json!({"cancelled": true}),
            Failure::Client { error, answers, in_doubt } => {
                let code = error.code().starts_with("LEASEQ_").then(|| error.code());
                json!({"error": {
                    "code": code, "definite": error.is_definite(), "message": error.to_string(), "answers": answers, "in_doubt": in_doubt,
                }})
            }
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let in_doubt = usize::from(!error.is_definite());
        Failure::Client { error, answers: Vec::new(), in_doubt }
    }
}

pub fn micros(time: Option<SystemTime>) -> String {
    time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or("0".to_owned(), |since| since.as_micros().to_string())
}

pub fn added(answer: &Added) -> Value {
    match answer {
        answer if answer.is_new() => json!("added"),
        answer if answer.existed() => json!("exists"),
        _ => json!("full"),
    }
}

pub fn completed(answer: &Completed) -> Value {
    let follow_up = |each: &Added| if each.had_no_room() { Value::Null } else { added(each) };
    let follow_ups: Vec<Value> = answer.follow_ups.iter().map(follow_up).collect();
    json!({"completed": answer.completed, "added": follow_ups})
}

pub fn deadline(answer: &Option<SystemTime>) -> Value {
    answer.map_or(Value::Null, |time| json!(micros(Some(time))))
}

pub fn lease(item: &LeasedItem) -> Value {
    let headers: serde_json::Map<String, Value> = item.headers().iter().map(|each| (each.name.clone(), b64(&each.value))).collect();
    json!({
        "id": b64(item.id().as_bytes()), "data": b64(item.data()), "token": item.token().to_string(), "attempt": item.attempt(),
        "deadline": micros(item.deadline()), "keep_ms": item.keep().unwrap_or_default().as_millis() as u64,
        "content_type": item.content_type().map(b64), "headers": headers,
    })
}

pub fn outcome(id: &[u8], found: &Outcome) -> Value {
    json!({
        "id": b64(id), "state": found.state.as_str(), "created": micros(found.created), "ended": micros(found.ended),
        "attempt": found.attempt, "keep_ms": found.keep.as_millis() as u64, "content": b64(&found.content),
    })
}

pub fn live_worker(found: &WorkerInfo) -> Value {
    let item = |each: &HeldItem| json!({"queue": each.queue, "id": b64(each.id.as_bytes()), "attempt": each.attempt, "ms": each.ms});
    let items: Vec<Value> = found.items.iter().map(item).collect();
    json!({
        "worker": found.id, "host": found.host, "pid": found.pid, "client": found.client, "started": micros(Some(found.started)),
        "stopping": found.stopping, "quiet": found.quiet, "concurrency": found.concurrency, "completed": found.completed, "queues": found.queues,
        "held": found.held, "items": items,
    })
}

pub fn info(id: &[u8], found: &ItemInfo) -> Value {
    json!({
        "id": b64(id), "state": found.state.as_str(), "time": micros(found.time), "attempt": found.attempt,
        "token": found.token.to_string(), "created": micros(found.created), "size": found.size, "priority": found.priority,
        "max_attempts": found.max_attempts, "keep_ms": found.keep.as_millis() as u64, "expires": micros(found.expires),
        "error": String::from_utf8_lossy(found.error.as_ref()),
    })
}
