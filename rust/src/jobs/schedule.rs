//! Schedules: calls that are enqueued at the slots of a timetable.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use redis::Cmd;
use rmpv::Value;

use crate::error::{Error, Result};
use crate::generated::codecs::AddOptions;
use crate::item::NewItem;
use crate::item_run::Task;
use crate::jobs::app::App;
use crate::jobs::envelope::{VERSION, read_map};
use crate::jobs::failure::unix_ms;
use crate::jobs::format::{Format, integer_member, map};
use crate::jobs::producer::Call;
use crate::jobs::timetable::{Crontab, Timetable};
use crate::queue::{Queue, Wait};
use crate::verdict::HandlerError;

const SUFFIX: &str = ".cron";
/// With [`Missed::None`] a slot that is seen later than this was missed.
const ON_TIME_MS: i64 = 60_000;
/// The longest time between two turns, so that a changed rule counts soon (LQ-JOB-32).
const REVIEW_MS: i64 = 60_000;
/// The slots of one turn; if more were missed, the next turn is at once.
const MAX_SLOTS: usize = 64;
/// How long an unknown schedule is left to other workers, and how long it stays without a turn (LQ-JOB-33).
const PUT_OFF: Duration = Duration::from_secs(60);
const FORGET_MS: i64 = 86_400_000;

/// Which of several missed slots get a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Missed {
    /// The last of them.
    #[default]
    Last,
    /// All.
    All,
    /// None that is more than a minute late.
    None,
}

/// A call that is enqueued at the slots of a timetable.
pub(crate) struct Schedule {
    name: String,
    missed: Missed,
    call: Call,
    queue: String,
    table: Timetable,
}

/// The work of one turn: these slots get jobs, and all up to `until` are over.
struct Turn {
    slots: Vec<i64>,
    until: i64,
    due: Option<i64>,
    next: Option<i64>,
}

impl App {
    /// Enqueues a call at the slots of a line of crontab, in a time zone: minute, hour, day of month, month and day of week. Each worker of the
    /// App takes turns.
    pub fn cron(self, name: &str, line: &str, zone: &str, missed: Missed, call: Call) -> Result<App> {
        let table = Crontab::new(line, zone).map_err(Error::refused)?;
        self.scheduled(name, Timetable::Crontab(Box::new(table)), missed, call)
    }

    /// Enqueues a call at the multiples of an interval since 1970.
    pub fn every(self, name: &str, interval: Duration, missed: Missed, call: Call) -> Result<App> {
        let ms = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX);
        if ms < 1 {
            return Err(Error::refused("an interval is 1 ms or more"));
        }
        self.scheduled(name, Timetable::Every(ms), missed, call)
    }

    fn scheduled(mut self, name: &str, table: Timetable, missed: Missed, call: Call) -> Result<App> {
        if !(1..=200).contains(&name.len()) || self.schedules.iter().any(|each| each.name == name) {
            return Err(Error::refused("the name of a schedule is 1 to 200 bytes long, and no other has it"));
        }
        if call.is_once() {
            return Err(Error::refused(
                "the jobs of a schedule are neither unique nor throttled, as their ids come from their slots: leave out unique and throttle",
            ));
        }
        let queue = call.queue_or(&self.queue).to_owned();
        self.schedules.push(Arc::new(Schedule { name: name.into(), missed, call, queue, table }));
        Ok(self)
    }
}

impl Schedule {
    pub(crate) fn queue(&self) -> &str {
        &self.queue
    }

    pub(crate) fn queue_name(&self) -> String {
        format!("{}{SUFFIX}", self.queue)
    }

    /// The turn to take now, when all slots up to `until` are over. Times are the server's (LQ-JOB-30 to 32).
    fn turn(&self, until: i64, now: i64, paused: bool) -> Turn {
        let slots = if paused { Vec::new() } else { self.slots(until, now) };
        let over = if slots.len() == MAX_SLOTS { slots[MAX_SLOTS - 1] } else { now.max(until) };
        let next = self.table.after(over).next();
        let review = now.max(over) + REVIEW_MS;
        Turn { slots, until: over, due: Some(next.map_or(review, |next| next.min(review))), next }
    }

    fn slots(&self, until: i64, now: i64) -> Vec<i64> {
        if self.missed == Missed::All {
            return self.table.after(until).take_while(|slot| *slot <= now).take(MAX_SLOTS).collect();
        }
        let last = self.last(until, now);
        last.filter(|last| self.missed == Missed::Last || now - last <= ON_TIME_MS).into_iter().collect()
    }

    /// The last slot later than `until`, up to now: looked for from now back, further and further.
    fn last(&self, until: i64, now: i64) -> Option<i64> {
        let mut span = 1000;
        loop {
            let from = until.max(now - span);
            let found = self.table.after(from).take_while(|slot| *slot <= now).last();
            if found.is_some() || from == until {
                return found;
            }
            span *= 2;
        }
    }

    /// The item of the schedule, after a turn or of a new one.
    fn item(&self, turn: &Turn, last: Option<i64>) -> std::result::Result<NewItem, String> {
        let missed = match self.missed {
            Missed::Last => "last",
            Missed::All => "all",
            Missed::None => "none",
        };
        let state = map([
            ("v", Some(VERSION.into())),
            ("until", Some(turn.until.into())),
            ("last", last.map(Into::into)),
            ("next", turn.next.map(Into::into)),
            ("rule", Some(self.table.rule().into())),
            ("missed", Some(missed.into())),
            ("job", Some(self.call.stage(None, &self.queue))),
        ]);
        let mut options = AddOptions::new().max_attempts(0);
        options.not_before = turn.due.map(|due| UNIX_EPOCH + Duration::from_millis(due.unsigned_abs()));
        Ok(NewItem::new(self.name.clone(), Format::Json.write(&state)?).with(options))
    }
}

/// Adds the item of a schedule: a new one starts now, an existing one stays as it is (LQ-JOB-12).
pub(crate) async fn start(queue: &Queue, schedule: &Schedule) -> Result<()> {
    let pool = queue.pool();
    let now = crate::presence::server_time(&pool.shared, pool.limit).await?;
    let turn = Turn { slots: Vec::new(), until: now as i64, due: None, next: None };
    let item = schedule.item(&turn, None).map_err(Error::refused)?;
    queue.add_all(&[item], Wait::No).await?;
    Ok(())
}

/// Takes a turn: the item is completed, and in the same step the jobs of its slots and the item are added (LQ-JOB-13).
pub(crate) async fn take_turn(task: &Task, schedules: &[Arc<Schedule>], format: Format) -> std::result::Result<(), HandlerError> {
    let queue = task.queue();
    let state = read_map(task.data(), "schedule").map_err(HandlerError::DeadLetter)?;
    let Some(until) = integer_member(&state, "until") else {
        return Err(HandlerError::DeadLetter("this is no schedule that can be read here".into()));
    };
    let now = unix_ms(task.leased_at());
    let Some(known) = schedules.iter().find(|each| each.name == task.id() && each.queue_name() == queue.name()) else {
        if now - until >= FORGET_MS {
            return Ok(());
        }
        return Err(HandlerError::GiveBack { reason: "this App has no such schedule".into(), delay: Some(PUT_OFF), uncounted: true });
    };
    let key = queue.keys().key("paused");
    let mut command = Cmd::new();
    command.arg("SISMEMBER").arg(&key).arg(task.id());
    let paused = queue.pool().shared.send(&key, queue.pool().limit, &command).await?;
    let turn = known.turn(until, now, paused == redis::Value::Int(1));
    let jobs = sibling(queue, &known.queue)?;
    let mut completion = task.completion();
    for slot in &turn.slots {
        let envelope: Value = known.call.envelope_at(now, *slot);
        let data = format.write(&envelope).map_err(HandlerError::Failed)?;
        let item = NewItem::new(format!("cron:{}:{slot}", known.name), data).with(known.call.add_options());
        completion = completion.then(&jobs, item);
    }
    let last = turn.slots.last().copied().or_else(|| integer_member(&state, "last"));
    let next = known.item(&turn, last).map_err(HandlerError::Failed)?;
    task.complete_as(completion.then(queue, next));
    Ok(())
}

/// Another queue of the same group.
fn sibling(queue: &Queue, name: &str) -> Result<Queue> {
    Ok(Queue::new(queue.pool(), crate::keys::QueueKeys::new(name, queue.group())?))
}
