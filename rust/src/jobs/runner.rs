//! What a worker does with one job.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rmpv::Value;
use tokio::time::timeout;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::generated::codecs::AddOptions;
use crate::item::NewItem;
use crate::item_run::Task;
use crate::jobs::context::Context;
use crate::jobs::envelope::{Envelope, MAX_COPY_BYTES, VERSION, arguments_of};
use crate::jobs::failure::{Failure, unix_ms};
use crate::jobs::format::{Format, integer_member, map, member, text_member};
use crate::jobs::function::{Ended, Function};
use crate::jobs::schedule::{Schedule, take_turn};
use crate::queue::Queue;
use crate::verdict::{HandlerError, exponential_backoff};

/// How long a function whose time is over may take to end.
const UNWIND_LIMIT: Duration = Duration::from_secs(1);
/// How long after the first refusal a job of an unknown function is dead (LQ-JOB-43). It waits as long as it has been refused, within the others.
const REFUSAL_LIMIT: Duration = Duration::from_secs(600);
const MIN_REFUSAL_DELAY: Duration = Duration::from_secs(10);
const MAX_REFUSAL_DELAY: Duration = Duration::from_secs(60);
const UNKNOWN_FUNCTION: &str = "UnknownFunction";

pub(crate) struct Runner {
    pub(crate) client: Client,
    pub(crate) group: String,
    pub(crate) worker: String,
    pub(crate) functions: Arc<BTreeMap<String, Function>>,
    pub(crate) schedules: Vec<Arc<Schedule>>,
    /// How the jobs of schedules are written.
    pub(crate) format: Format,
}

impl Runner {
    /// Runs a job, and says how its item is to end.
    pub(crate) async fn run(&self, task: Task) -> std::result::Result<(), HandlerError> {
        if self.schedules.iter().any(|each| each.queue_name() == task.queue().name()) {
            return take_turn(&task, &self.schedules, self.format).await;
        }
        let started = SystemTime::now();
        let dead = |why: String| HandlerError::DeadLetter(self.failure("Error", why, started).text());
        let job = Envelope::read(task.data()).map_err(dead)?;
        let Some(function) = self.functions.get(job.function()) else {
            return Err(self.refusal(&task, job.function()).await);
        };
        let given = arguments_of(&job.map).map_err(dead)?;
        let attempt = task.attempt() + job.first_attempt() - 1;
        let context = Context::new(&task, attempt);
        let running = function.call(context.clone(), given).map_err(dead)?;
        let limit = job.timeout().or(function.time_limit).filter(|limit| !limit.is_zero());
        let mut note = context.note(&self.worker, started);
        let ended = tokio::select! {
            biased;
            ended = within(limit, &context, running) => ended,
            () = note.write() => return Ok(()),
        };
        note.failed = !matches!(ended, Some(Ended::Returned(_)));
        drop(note);
        match ended {
            Some(Ended::Returned(value)) => self.complete(&task, &job, value, started).map_err(dead),
            Some(Ended::Unusable(why)) => Err(dead(why)),
            Some(Ended::Failed(error)) => Err(self.failed(&job, attempt, error, started)),
            None => {
                let late = format!("the function ran longer than {:?}", limit.unwrap_or_default());
                Err(self.again(&job, attempt, self.failure("TimeoutError", late, started)))
            }
        }
    }

    /// What becomes of a job that the server refuses to complete: no attempt makes its result shorter (LQ-JOB-61).
    pub(crate) fn refused(&self, error: &Error) -> HandlerError {
        let text = Failure { started: None, ..self.failure("Error", error.to_string(), SystemTime::UNIX_EPOCH) }.text();
        if error.is_invalid() { HandlerError::DeadLetter(text) } else { HandlerError::Failed(text) }
    }

    fn failure(&self, kind: &str, message: String, started: SystemTime) -> Failure {
        Failure { kind: kind.into(), message, worker: self.worker.clone(), started: Some(started), ..Failure::default() }
    }

    /// The script says whether it was the last attempt (LQ-JOB-21).
    fn again(&self, job: &Envelope, attempt: i64, failure: Failure) -> HandlerError {
        let otherwise = || {
            let backoff = exponential_backoff(Duration::from_secs(1), Duration::from_secs(300));
            backoff(u32::try_from(attempt).unwrap_or(u32::MAX))
        };
        HandlerError::GiveBack { reason: failure.text(), delay: Some(job.delay_after(attempt, otherwise)), uncounted: false }
    }

    fn failed(&self, job: &Envelope, attempt: i64, error: HandlerError, started: SystemTime) -> HandlerError {
        match error {
            HandlerError::Failed(text) => self.again(job, attempt, self.failure("Error", text, started)),
            HandlerError::DeadLetter(text) => HandlerError::DeadLetter(self.failure("DeadLetter", text, started).text()),
            HandlerError::GiveBack { reason, delay: None, uncounted: false } => {
                self.again(job, attempt, self.failure("GiveBack", reason, started))
            }
            HandlerError::GiveBack { reason, delay, uncounted } => {
                HandlerError::GiveBack { reason: self.failure("GiveBack", reason, started).text(), delay, uncounted }
            }
        }
    }

    /// Says how the worker completes the item: with the result, and with the next stage of a chain (LQ-JOB-8, LQ-JOB-16).
    fn complete(&self, task: &Task, job: &Envelope, returned: Value, started: SystemTime) -> std::result::Result<(), String> {
        let mut completion = task.completion();
        if task.keep().is_some() {
            let copied = (task.data().len() <= MAX_COPY_BYTES).then(|| job.map.clone());
            let result = map([
                ("v", Some(VERSION.into())),
                ("result", Some(returned.clone())),
                ("started", Some(unix_ms(started).into())),
                ("ended", Some(unix_ms(SystemTime::now()).into())),
                ("worker", Some(self.worker.clone().into())),
                ("job", copied),
            ]);
            completion = completion.result(job.format.write(&result)?);
        }
        if let [stage, rest @ ..] = job.stages() {
            let (queue, item) = self.follow_up(job.format, stage, rest, returned)?;
            completion = completion.then(&queue, item);
        }
        task.complete_as(completion);
        Ok(())
    }

    /// The next stage of a chain, whose first argument is what this one returned (LQ-JOB-27).
    fn follow_up(&self, format: Format, stage: &Value, rest: &[Value], returned: Value) -> std::result::Result<(Queue, NewItem), String> {
        let id = text_member(stage, "id").ok_or("the next stage of the chain has no id")?;
        let queue =
            self.client.queue_in(&self.group, text_member(stage, "queue").unwrap_or_default()).map_err(|error| error.to_string())?;
        let given = member(stage, "job").cloned().unwrap_or(Value::Nil);
        let (args, _) = arguments_of(&given)?;
        let options = stage_options(stage);
        let now = unix_ms(SystemTime::now());
        let mut job: Vec<(Value, Value)> = given.as_map().cloned().unwrap_or_default();
        job.retain(|(name, _)| !["args", "enqueued", "due", "then"].iter().any(|each| name.as_str() == Some(each)));
        job.push(("args".into(), std::iter::once(returned).chain(args).collect::<Vec<_>>().into()));
        job.push(("enqueued".into(), now.into()));
        if let Some(delay) = options.delay.filter(|delay| !delay.is_zero()) {
            job.push(("due".into(), (now + delay.as_millis() as i64).into()));
        }
        if !rest.is_empty() {
            job.push(("then".into(), rest.to_vec().into()));
        }
        Ok((queue, NewItem::new(id, format.write(&Value::Map(job))?).with(options)))
    }

    /// Puts off a job of a function that this worker does not have: another worker may (LQ-JOB-42). The time of the first refusal is in the last
    /// error of the item, by the server's clock.
    async fn refusal(&self, task: &Task, name: &str) -> HandlerError {
        let known: Vec<&str> = self.functions.keys().take(20).map(String::as_str).collect();
        let message = format!("this App has no function {name}; it has {}", known.join(", "));
        let leased_at = task.leased_at();
        let earlier = self.earlier_refusal(task).await.unwrap_or_default();
        let refused = earlier.unwrap_or(leased_at);
        let since = leased_at.duration_since(refused).unwrap_or_default();
        let mut failure = Failure { kind: UNKNOWN_FUNCTION.into(), message, worker: self.worker.clone(), ..Failure::default() };
        if since >= REFUSAL_LIMIT {
            return HandlerError::DeadLetter(failure.text());
        }
        failure.refused = Some(refused);
        let delay = since.clamp(MIN_REFUSAL_DELAY, MAX_REFUSAL_DELAY);
        HandlerError::GiveBack { reason: failure.text(), delay: Some(delay), uncounted: true }
    }

    async fn earlier_refusal(&self, task: &Task) -> Result<Option<SystemTime>> {
        let found = task.queue().inspect(&[task.id()]).await?;
        let last = found.first().map(|each| Failure::read(&String::from_utf8_lossy(&each.error)));
        Ok(last.filter(|last| last.kind == UNKNOWN_FUNCTION).and_then(|last| last.refused))
    }
}

/// Runs within the limit. A function that returns past it has returned; if it fails then, or does not end soon, the attempt took too long (`None`),
/// unless it said itself that it must not run again (LQ-JOB-6, LQ-JOB-20).
async fn within(limit: Option<Duration>, context: &Context, running: impl Future<Output = Ended>) -> Option<Ended> {
    tokio::pin!(running);
    let Some(limit) = limit else { return Some(running.await) };
    if let Ok(ended) = timeout(limit, &mut running).await {
        return Some(ended);
    }
    context.time_over.cancel();
    match timeout(UNWIND_LIMIT, &mut running).await {
        Ok(Ended::Failed(HandlerError::Failed(_))) | Err(_) => None,
        Ok(ended) => Some(ended),
    }
}

/// The options of `add` that a stage has.
fn stage_options(stage: &Value) -> AddOptions {
    let add = member(stage, "add").cloned().unwrap_or(Value::Nil);
    let ms = |name: &str| integer_member(&add, name).map(|ms| Duration::from_millis(ms.unsigned_abs()));
    let mut options = AddOptions::new();
    options.delay = ms("delay");
    options.priority = integer_member(&add, "priority");
    options.max_attempts = integer_member(&add, "max_attempts");
    options.expires_in = ms("expires_in");
    options.expires_to = text_member(&add, "expires_to").is_some();
    options.keep = ms("keep");
    options.content_type = text_member(&add, "content_type").map(Into::into);
    for (name, value) in member(stage, "headers").and_then(Value::as_map).into_iter().flatten() {
        if let (Some(name), Some(value)) = (name.as_str(), value.as_str()) {
            options = options.header(name, value);
        }
    }
    options
}
