//! The clock of a time zone, which is changed at most once within two days. Moments are milliseconds since 1970 UTC; times, as the clock shows
//! them, are the milliseconds of the same time in UTC.

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub(crate) const DAY_MS: i64 = 86_400_000;

pub(crate) struct WallClock {
    pub(crate) zone: String,
    rules: TimeZone,
}

impl WallClock {
    pub(crate) fn new(zone: &str) -> Option<WallClock> {
        Some(WallClock { zone: zone.into(), rules: TimeZone::get(zone).ok()? })
    }

    /// The milliseconds that it is ahead of UTC.
    fn offset(&self, moment: i64) -> i64 {
        let at = Timestamp::from_millisecond(moment).unwrap_or(Timestamp::MAX);
        i64::from(self.rules.to_offset(at).seconds()) * 1000
    }

    /// A time that it does not go below from this moment on.
    pub(crate) fn lowest(&self, moment: i64) -> i64 {
        let now = self.offset(moment);
        let mut later = self.offset(moment + DAY_MS);
        if later < now {
            later = self.offset(moment + now - later); // it is set back below the time of now if that is soon
        }
        moment + now.min(later)
    }

    /// The moments at which it shows a time: one, two if it is set back, none if it is set forward.
    pub(crate) fn moments(&self, shown: i64) -> Vec<i64> {
        let (before, after) = (self.offset(shown - DAY_MS), self.offset(shown + DAY_MS));
        if before == after {
            return vec![shown - before];
        }
        let mut found: Vec<i64> =
            [before, after].into_iter().filter(|offset| self.offset(shown - offset) == *offset).map(|offset| shown - offset).collect();
        found.sort_unstable();
        found
    }

    /// The first moment at which it shows a time, or a later one.
    pub(crate) fn first(&self, shown: i64) -> i64 {
        if let Some(found) = self.moments(shown).first() {
            return *found;
        }
        // The time is skipped: the clock is set forward between these.
        let after = self.offset(shown + DAY_MS);
        let (mut low, mut high) = (shown - after, shown - self.offset(shown - DAY_MS));
        while low < high {
            let middle = (low + high) / 2;
            if self.offset(middle) == after { high = middle } else { low = middle + 1 }
        }
        low
    }
}
