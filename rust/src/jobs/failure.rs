//! The text of a failed attempt (LQ-JOB-9).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::generated::scripts::MAX_ERROR_BYTES;

const MAX_MESSAGE_CHARS: usize = 500;

/// A failed attempt, in its parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Failure {
    pub(crate) kind: String,
    pub(crate) message: String,
    pub(crate) worker: String,
    pub(crate) started: Option<SystemTime>,
    pub(crate) refused: Option<SystemTime>,
    /// Other text for people.
    pub(crate) traceback: String,
}

impl Failure {
    /// The text, cut at its end so that all of it is kept (LQ-JOB-23).
    pub(crate) fn text(&self) -> String {
        let message = self.message.split_whitespace().collect::<Vec<_>>().join(" ");
        let message: String = if message.chars().count() > MAX_MESSAGE_CHARS {
            message.chars().take(MAX_MESSAGE_CHARS - 3).chain("...".chars()).collect()
        } else {
            message
        };
        let mut text = format!("{}: {message}\nworker: {}", self.kind, self.worker);
        for (name, time) in [("started", self.started), ("refused", self.refused)] {
            if let Some(time) = time {
                text += &format!("\n{name}: {}", rfc3339(time));
            }
        }
        text += "\n\n";
        text += &self.traceback;
        let end = (0..=MAX_ERROR_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
        text
    }

    /// Reads a failure from its text; a text of another form is only a message.
    pub(crate) fn read(text: &str) -> Failure {
        let (head, rest) = text.split_once("\n\n").unwrap_or((text, ""));
        let mut lines = head.split('\n');
        let Some((kind, message)) = lines.next().and_then(|first| first.split_once(": ")).filter(|(kind, _)| is_kind(kind)) else {
            return Failure { message: text.into(), ..Failure::default() };
        };
        let mut found = Failure { kind: kind.into(), message: message.into(), traceback: rest.into(), ..Failure::default() };
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            match name {
                "worker" => found.worker = value.into(),
                "started" => found.started = parse(value),
                "refused" => found.refused = parse(value),
                _ => {}
            }
        }
        found
    }

    /// For people.
    pub(crate) fn description(&self) -> String {
        if self.kind.is_empty() { self.message.clone() } else { format!("{}: {}", self.kind, self.message) }
    }
}

fn is_kind(kind: &str) -> bool {
    let allowed = |each: char| each.is_alphanumeric() || "_$.".contains(each);
    let first = kind.chars().next();
    first.is_some_and(|each| each.is_alphabetic() || "_$.".contains(each)) && kind.chars().all(allowed)
}

pub(crate) fn unix_ms(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// The time of a number of `unix_ms`; `None` if it is none.
pub(crate) fn of_unix_ms(ms: i64) -> Option<SystemTime> {
    let since = u64::try_from(ms).ok().filter(|ms| *ms > 0)?;
    UNIX_EPOCH.checked_add(Duration::from_millis(since))
}

/// A time in UTC, by the rules of the proleptic Gregorian calendar.
fn rfc3339(time: SystemTime) -> String {
    let ms = unix_ms(time);
    let (days, rest) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    // years that begin in March, in eras of 400 years
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let (day, month) = (day_of_year - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = year + era * 400 + i64::from(month <= 2);
    let (seconds, millis) = (rest / 1000, rest % 1000);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{millis:03}+00:00", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Reads a time by RFC 3339 in any zone.
fn parse(text: &str) -> Option<SystemTime> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let seconds = number(11, 13)? * 3600 + number(14, 16)? * 60 + number(17, 19)?;
    let rest = text.get(19..)?;
    let zone_at = rest.find(['Z', 'z', '+', '-'])?;
    let fraction: f64 = if zone_at > 0 { format!("0{}", &rest[..zone_at]).parse().ok().filter(|part| *part < 1.0)? } else { 0.0 };
    let offset = match rest[zone_at..].split_at(1) {
        (sign @ ("+" | "-"), zone) => {
            let minutes = zone.get(0..2)?.parse::<i64>().ok()? * 60 + zone.get(3..5)?.parse::<i64>().ok()?;
            if sign == "+" { minutes } else { -minutes }
        }
        _ => 0,
    };
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = years.div_euclid(400) * 146_097 + {
        let year = years.rem_euclid(400);
        year * 365 + year / 4 - year / 100 + (153 * months + 2) / 5 + day - 1
    } - 719_468;
    let since = u64::try_from(days * 86_400 + seconds - offset * 60).ok()?;
    Some(UNIX_EPOCH + Duration::from_secs(since) + Duration::from_secs_f64(fraction))
}
