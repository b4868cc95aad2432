//! Timetables: their slots are milliseconds since 1970, and every program that knows the rule finds the same.

use std::collections::BTreeSet;

use jiff::civil::{Date, Weekday, date};

use crate::jobs::wall_clock::{DAY_MS, WallClock};

/// When a schedule enqueues jobs.
pub(crate) enum Timetable {
    /// At multiples of a time since 1970.
    Every(i64),
    Crontab(Box<Crontab>),
}

impl Timetable {
    /// For people.
    pub(crate) fn rule(&self) -> String {
        match self {
            Timetable::Every(ms) => format!("every {} s", *ms as f64 / 1000.0),
            Timetable::Crontab(crontab) => format!("{} {}", crontab.line, crontab.clock.zone),
        }
    }

    /// The slots later than a time, in order.
    pub(crate) fn after(&self, ms: i64) -> Box<dyn Iterator<Item = i64> + '_> {
        match self {
            Timetable::Every(step) => Box::new((1..).map(move |number| ms - ms.rem_euclid(*step) + number * step)),
            Timetable::Crontab(crontab) => Box::new(crontab.after(ms)),
        }
    }
}

/// A line of crontab, in a time zone. A line that names hours gives one slot for each time of the clock (LQ-JOB-40), a line for every hour one for
/// each moment at which the clock shows a time of the line (LQ-JOB-41).
pub(crate) struct Crontab {
    line: String,
    clock: WallClock,
    minutes: BTreeSet<u32>,
    hours: BTreeSet<u32>,
    days: BTreeSet<u32>,
    months: BTreeSet<u32>,
    weekdays: BTreeSet<u32>,
    /// As in Debian's cron, a day has to be right by both fields if one of them starts with a star, else by one of them.
    both_days: bool,
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Crontab {
    pub(crate) fn new(line: &str, zone: &str) -> Result<Crontab, String> {
        let clock = WallClock::new(zone).ok_or_else(|| format!("there is no time zone {zone}: names are like Europe/Berlin"))?;
        let text = line.trim().to_lowercase();
        let text = match text.as_str() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(format!("{line} is no line of crontab: it has minute, hour, day of month, month and day of week"));
        };
        let field = |text: &str, least, most, names: &[&str]| {
            field_of(text, least, most, names)
                .ok_or_else(|| format!("{line} is no line of crontab: {text} is not within {least} to {most}"))
        };
        let mut found = Crontab {
            line: line.into(),
            clock,
            minutes: field(minute, 0, 59, &[])?,
            hours: field(hour, 0, 23, &[])?,
            days: field(day, 1, 31, &[])?,
            months: field(month, 1, 12, MONTHS)?,
            weekdays: field(weekday, 0, 7, WEEKDAYS)?,
            both_days: day.starts_with('*') || weekday.starts_with('*'),
        };
        if found.weekdays.contains(&7) {
            found.weekdays.insert(0);
        }
        if found.shown_after(0).next().is_none() {
            return Err(format!("{line} has no slot: no day is like that"));
        }
        Ok(found)
    }

    /// The times that the line names, later than one, as if the zone were UTC.
    fn shown_after(&self, ms: i64) -> impl Iterator<Item = i64> + '_ {
        let first = ms.div_euclid(DAY_MS);
        let days = (first..first + 60 * 366).filter(|day| self.is_day(*day));
        let times = days.flat_map(move |day| {
            self.hours
                .iter()
                .flat_map(move |hour| self.minutes.iter().map(move |minute| (day * 24 + i64::from(*hour)) * 60 + i64::from(*minute)))
        });
        times.map(|minutes| minutes * 60_000).filter(move |shown| *shown > ms)
    }

    fn is_day(&self, days: i64) -> bool {
        let Some(day) = day_of(days) else { return false };
        let (of_month, of_week) = (self.days.contains(&(day.day() as u32)), self.weekdays.contains(&weekday_number(day.weekday())));
        self.months.contains(&(day.month() as u32)) && if self.both_days { of_month && of_week } else { of_month || of_week }
    }

    fn moments(&self, shown: i64) -> Vec<i64> {
        if self.hours.len() == 24 { self.clock.moments(shown) } else { vec![self.clock.first(shown)] }
    }

    fn after(&self, ms: i64) -> impl Iterator<Item = i64> + '_ {
        let mut waiting = BTreeSet::new();
        let mut latest = ms;
        // The second moment of a time can be later than those of later times.
        self.shown_after(self.clock.lowest(ms) - 1).flat_map(move |shown| {
            let moments = self.moments(shown);
            let first = moments.first().copied();
            waiting.extend(moments);
            let mut slots = Vec::new();
            while let (Some(slot), Some(first)) = (waiting.first().copied(), first)
                && slot <= first
            {
                waiting.pop_first();
                if slot > latest {
                    latest = slot;
                    slots.push(slot);
                }
            }
            slots
        })
    }
}

fn day_of(days: i64) -> Option<Date> {
    date(1970, 1, 1).checked_add(jiff::Span::new().try_days(days).ok()?).ok()
}

fn weekday_number(day: Weekday) -> u32 {
    day.to_sunday_zero_offset() as u32
}

/// The values of a field: parts with commas between, each a star, a value or a range, perhaps with a step.
fn field_of(text: &str, least: u32, most: u32, names: &[&str]) -> Option<BTreeSet<u32>> {
    let value = |text: &str| -> Option<u32> {
        let named = names.iter().position(|name| *name == text).map(|at| at as u32 + least);
        named.or_else(|| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten())
    };
    let mut found = BTreeSet::new();
    for part in text.split(',') {
        let (span, step) = match part.split_once('/') {
            Some((span, step)) => (span, Some(step.parse::<usize>().ok().filter(|step| *step > 0)?)),
            None => (part, None),
        };
        let (from, to) = match span.split_once('-') {
            _ if span == "*" => (least, most),
            Some((from, to)) => (value(from)?, value(to)?),
            None => (value(span)?, if step.is_some() { most } else { value(span)? }),
        };
        if from < least || to > most || from > to {
            return None;
        }
        found.extend((from..=to).step_by(step.unwrap_or(1)));
    }
    Some(found)
}
