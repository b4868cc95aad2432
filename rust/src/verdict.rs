//! How a handler can fail, and what becomes of its item then.

use std::fmt::Display;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use crate::generated::codecs::ReleaseOptions;
use crate::generated::scripts::MAX_ERROR_BYTES;

/// The longest delay of an item: 10 years.
const MAX_DELAY: Duration = Duration::from_millis(315_360_000_000);

/// How a handler ended without success. Any [`std::error::Error`] becomes one by `?`, with the text of its sources; for `anyhow::Error` and
/// `Box<dyn Error>`, which are none, write `.map_err(HandlerError::failed)?`. A panic is a failure too.
#[derive(Debug)]
pub enum HandlerError {
    /// The attempt has failed: the item comes back after a delay, or becomes a dead letter after its last attempt.
    Failed(String),
    /// Never again: the item becomes a dead letter for a person to look at.
    DeadLetter(String),
    /// The item goes back after a delay, by default that of the worker's backoff.
    GiveBack {
        /// Kept as the last error.
        reason: String,
        /// From now on.
        delay: Option<Duration>,
        /// The attempt does not count.
        uncounted: bool,
    },
}

impl HandlerError {
    /// A failed attempt with the text of this: a message, or an error of any kind.
    pub fn failed(why: impl Display) -> HandlerError {
        HandlerError::Failed(format!("{why:#}"))
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            HandlerError::Failed(text) | HandlerError::DeadLetter(text) | HandlerError::GiveBack { reason: text, .. } => text,
        }
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        HandlerError::Failed(text)
    }
}

/// How an item goes back: after a delay, or dead; with the text that is kept as its last error.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) delay: Duration,
    pub(crate) dead: bool,
    pub(crate) uncounted: bool,
    pub(crate) reason: String,
}

impl Verdict {
    pub(crate) fn uncounted() -> Verdict {
        Verdict { uncounted: true, ..Verdict::default() }
    }

    pub(crate) fn options(&self) -> ReleaseOptions {
        let mut options = ReleaseOptions::new();
        options.delay = (!self.delay.is_zero()).then_some(self.delay);
        options.dead = self.dead;
        options.uncounted = self.uncounted;
        options.error = (!self.reason.is_empty()).then(|| kept_text(&self.reason).into());
        options
    }
}

/// The start of a text that is kept as a last error.
fn kept_text(text: &str) -> &str {
    let end = (0..=MAX_ERROR_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// The delay before the next attempt, by the number of the attempt that failed.
pub(crate) type Backoff = Box<dyn Fn(u32) -> Duration + Send + Sync>;

/// Which failures end an item and which bring it back.
pub(crate) struct RetryPolicy {
    /// 0 is no limit.
    pub(crate) attempts: u32,
    pub(crate) backoff: Backoff,
}

impl RetryPolicy {
    pub(crate) fn judge(&self, attempt: i64, error: HandlerError) -> Verdict {
        let (reason, delay, uncounted, dead) = match error {
            HandlerError::Failed(text) => (text, None, false, false),
            HandlerError::DeadLetter(text) => (text, None, false, true),
            HandlerError::GiveBack { reason, delay, uncounted } => (reason, delay, uncounted, false),
        };
        let reason = if reason.is_empty() { "the handler failed without a text".to_owned() } else { reason };
        let last = self.attempts > 0 && attempt >= i64::from(self.attempts);
        if dead || last && !uncounted {
            return Verdict { dead: true, reason, ..Verdict::default() };
        }
        let delay = match delay {
            Some(delay) => delay,
            None if uncounted => Duration::ZERO,
            None => (self.backoff)(u32::try_from(attempt).unwrap_or(u32::MAX)),
        };
        Verdict { delay: delay.min(MAX_DELAY), uncounted, reason, dead: false }
    }

    /// What becomes of an item that has had all its attempts: its workers did not live to report a failure.
    pub(crate) fn exhausted(&self, attempt: i64) -> Option<Verdict> {
        if self.attempts == 0 || attempt <= i64::from(self.attempts) {
            return None;
        }
        let reason = format!("leased {attempt} times, which is more than the {} attempts of this worker", self.attempts);
        Some(Verdict { dead: true, reason, ..Verdict::default() })
    }
}

/// A delay that starts with the first, doubles with each attempt up to the last, less up to half at random.
pub fn exponential_backoff(first: Duration, last: Duration) -> impl Fn(u32) -> Duration + Send + Sync + 'static {
    move |attempt| {
        let full = first.saturating_mul(1 << attempt.saturating_sub(1).min(30)).min(last);
        full.mul_f64(0.5 + random_part() / 2.0)
    }
}

/// A random number from 0 to 1.
pub(crate) fn random_part() -> f64 {
    random_number() as f64 / u64::MAX as f64
}

pub(crate) fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}
