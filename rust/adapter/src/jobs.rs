//! The methods of job clients.

use std::collections::BTreeMap;

use leaseq::jobs::{App, Call as JobCall, Format, JobEnd};
use leaseq::{AddOptions, Wait};
use serde::Serialize;
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::forms::Failure;
use crate::methods::Call;

/// An argument of a job: JSON, and numbers that it does not have.
#[derive(Serialize)]
#[serde(untagged)]
enum Argument {
    Plain(Value),
    Number(f64),
    List(Vec<Argument>),
    Map(BTreeMap<String, Argument>),
}

impl Argument {
    fn of(given: &Value) -> Argument {
        match given {
            Value::Array(all) => Argument::List(all.iter().map(Argument::of).collect()),
            Value::Object(all) => match all.get("$number").and_then(Value::as_str) {
                Some("NaN") => Argument::Number(f64::NAN),
                Some(_) => Argument::Number(f64::INFINITY),
                None => Argument::Map(all.iter().map(|(name, each)| (name.clone(), Argument::of(each))).collect()),
            },
            plain => Argument::Plain(plain.clone()),
        }
    }
}

fn app(call: &Call<'_>) -> Result<App, Failure> {
    let queue = call.queue()?;
    let format = if call.args.text("form") == "msgpack" { Format::MessagePack } else { Format::Json };
    Ok(App::new(&call.session.client, queue.group(), queue.name()).written_in(format))
}

fn job_call(call: &Call<'_>, given: Arguments) -> Result<JobCall, Failure> {
    let options = given.get("options");
    let mut found = JobCall::new(given.text("function"));
    for each in given.list("args") {
        found = found.arg(Argument::of(each.0));
    }
    for (name, value) in given.0["kwargs"].as_object().into_iter().flatten() {
        found = found.named(name, Argument::of(value));
    }
    let ms = |name: &str| options.has(name).then(|| options.duration(name)).transpose();
    let number = |name: &str| options.has(name).then(|| options.number(name)).transpose();
    let mut add = AddOptions::new();
    add.delay = ms("delay_ms")?;
    add.priority = number("priority")?;
    add.max_attempts = number("max_attempts")?;
    add.expires_in = ms("expires_in_ms")?;
    add.keep = ms("keep_ms")?;
    for (name, value) in options.0["headers"].as_object().into_iter().flatten() {
        add = add.header(name, value.as_str().unwrap_or_default());
    }
    if let Some(timeout) = ms("timeout_ms")? {
        found = found.timeout(timeout);
    }
    if given.has("id") {
        found = found.id(given.text("id"));
    }
    if given.has("queue") && !given.text("queue").is_empty() {
        found = found.on(call.session.queue(given.text("queue"))?.name());
    }
    Ok(found.options(add))
}

pub async fn enqueue(call: &Call<'_>) -> Result<Value, Failure> {
    let later = call.args.list("then").iter().map(|each| job_call(call, *each)).collect::<Result<Vec<JobCall>, Failure>>()?;
    let found = app(call)?.enqueue_chain(job_call(call, call.args)?, later).await?;
    Ok(json!({"id": found.id, "added": found.added}))
}

pub async fn job(call: &Call<'_>) -> Result<Value, Failure> {
    let info = app(call)?.job(call.args.text("id"))?.info().await?;
    let progress = info.progress.map(|(done, total)| std::iter::once(number(done)).chain(total.map(number)).collect::<Value>());
    Ok(json!({"status": info.status.as_str(), "result": info.result, "error": info.error, "progress": progress, "worker": info.worker}))
}

fn number(given: f64) -> Value {
    if given.fract() == 0.0 { json!(given as i64) } else { json!(given) }
}

pub async fn result(call: &Call<'_>) -> Result<Value, Failure> {
    let wait = if call.args.0["wait_ms"].is_null() { Wait::Forever } else { Wait::For(call.args.duration("wait_ms")?) };
    let end: JobEnd<Value> = app(call)?.job(call.args.text("id"))?.end(wait).await?;
    Ok(match end {
        JobEnd::Returned(result) => json!({"ended": "result", "result": result}),
        JobEnd::Failed { kind, message, .. } => json!({"ended": "failure", "kind": kind, "message": message}),
        JobEnd::Cancelled => json!({"ended": "cancelled"}),
        JobEnd::NotKept => json!({"ended": "not_kept"}),
        _ => json!({"ended": "waiting"}),
    })
}

pub async fn cancel(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(json!({"cancelled": app(call)?.job(call.args.text("id"))?.cancel().await?}))
}
