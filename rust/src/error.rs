//! Errors: each says whether the effect of its call is known.

use std::sync::Arc;

use redis::RedisError;

use crate::durability::NotDurable;
use crate::encoding::Added;
use crate::generated::errors::{NOT_RUN, STOPPED_INSIDE, ScriptError, TURNED_AWAY};

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// The result of a call of several entries.
pub type ListResult<T> = std::result::Result<Vec<T>, PartialError<T>>;

/// What kind of error it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A script refused the call.
    Script(ScriptError),
    /// The queue has no room for some of the items (LQ-CLIENT-6).
    Full,
    /// The server was not reached, or its reply did not come: see [`Error::is_definite`].
    Connection,
    /// The client is closed.
    Closed,
    /// The process was forked since the client connected. Open a client in the child (LQ-CLIENT-17).
    OtherProcess,
    /// The client is connected in another Tokio runtime. Open a client in this one (LQ-CLIENT-18).
    OtherRuntime,
    /// The server runs no Lua scripts (LQ-ERROR-6).
    NoScripts,
    /// The call was done, and too few servers have it: see [`Queue::durable`](crate::Queue::durable).
    NotDurable(NotDurable),
    /// The server cannot wait so: it has no WAITAOF, or no append-only file. Nothing was done.
    NoDurability,
    /// Another error reply of the server, by its first word.
    Server(String),
}

/// An error of a call. It holds no data, header or result of an item and no password (LQ-SAFE-3).
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    definite: bool,
    message: String,
    #[source]
    cause: Option<Arc<Error>>,
}

impl Error {
    /// What kind of error it is.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// True if the effect of the call is known: there is none, but for the answers of a [`PartialError`]. If it is false, the call may have
    /// taken effect.
    pub fn is_definite(&self) -> bool {
        self.definite
    }

    /// True if the same call can never work, since an argument of it is refused.
    pub fn is_invalid(&self) -> bool {
        matches!(self.kind, ErrorKind::Script(code) if code.is_invalid())
    }

    /// The code of the protocol (`LEASEQ_...`), the first word of a reply of the server, or `CONNECTION`, `CLOSED`,
    /// `OTHER_PROCESS`, `OTHER_RUNTIME`, `NO_SCRIPTS`, `NOT_DURABLE` or `NO_DURABILITY`.
    pub fn code(&self) -> &str {
        match &self.kind {
            ErrorKind::Script(code) => code.code(),
            ErrorKind::Full => "LEASEQ_FULL",
            ErrorKind::Connection => "CONNECTION",
            ErrorKind::Closed => "CLOSED",
            ErrorKind::OtherProcess => "OTHER_PROCESS",
            ErrorKind::OtherRuntime => "OTHER_RUNTIME",
            ErrorKind::NoScripts => "NO_SCRIPTS",
            ErrorKind::NotDurable(_) => "NOT_DURABLE",
            ErrorKind::NoDurability => "NO_DURABILITY",
            ErrorKind::Server(word) => word,
        }
    }

    fn new(kind: ErrorKind, definite: bool, message: impl Into<String>) -> Error {
        Error { kind, definite, message: message.into(), cause: None }
    }

    pub(crate) fn because(mut self, cause: Error) -> Error {
        self.cause = Some(Arc::new(cause));
        self
    }

    pub(crate) fn cause(&self) -> Option<&Error> {
        self.cause.as_deref()
    }

    #[cfg(feature = "jobs")]
    pub(crate) fn definite(mut self) -> Error {
        self.definite = true;
        self
    }

    /// What cannot be sent.
    pub(crate) fn refused(why: impl Into<String>) -> Error {
        Error::new(ErrorKind::Script(ScriptError::BadArgument), true, why)
    }

    pub(crate) fn cross_group(why: String) -> Error {
        Error::new(ErrorKind::Script(ScriptError::CrossGroup), true, why)
    }

    pub(crate) fn full() -> Error {
        Error::new(ErrorKind::Full, true, "no room for some of the items")
    }

    pub(crate) fn unavailable(why: impl Into<String>) -> Error {
        Error::new(ErrorKind::Connection, true, why)
    }

    pub(crate) fn reply_lost(why: impl Into<String>) -> Error {
        Error::new(ErrorKind::Connection, false, why)
    }

    pub(crate) fn bad_reply(why: &str) -> Error {
        Error::reply_lost(format!("the reply cannot be read: {why}"))
    }

    pub(crate) fn closed() -> Error {
        Error::new(ErrorKind::Closed, true, "the client is closed")
    }

    /// A call in another process or runtime than the one that connected.
    pub(crate) fn elsewhere(kind: ErrorKind) -> Error {
        let what = if kind == ErrorKind::OtherProcess {
            "process: open a client behind the fork"
        } else {
            "Tokio runtime: open a client in this one"
        };
        Error::new(kind, true, format!("the client is connected in another {what}"))
    }

    pub(crate) fn no_scripts() -> Error {
        let why = "the server runs no Lua scripts, nothing was done: load the Lua module of Valkey, start Garnet with --lua, \
                   do not rename EVAL and EVALSHA, or take Redis 6.2 or later";
        Error::new(ErrorKind::NoScripts, true, why)
    }

    pub(crate) fn not_durable(found: NotDurable, why: &str) -> Error {
        Error::new(ErrorKind::NotDurable(found), true, format!("the call was done, but it is not durable: {why}"))
    }

    pub(crate) fn no_durability(why: impl Into<String>) -> Error {
        Error::new(ErrorKind::NoDurability, true, why)
    }

    /// The same with the answer of a call on one item, if the call was done.
    pub(crate) fn with_answer(mut self, answer: Option<bool>) -> Error {
        if let ErrorKind::NotDurable(found) = &mut self.kind {
            found.took_effect = answer;
        }
        self
    }

    /// An error reply, by its first word and the text behind it.
    pub(crate) fn from_reply(code: &str, detail: &str) -> Error {
        let text = format!("{code} {detail}");
        let text = text.trim_end();
        if let Some(known) = ScriptError::of_code(code) {
            return Error::new(ErrorKind::Script(known), true, text);
        }
        let starts = |texts: &[&str]| texts.iter().any(|each| text.starts_with(each));
        let definite = (NOT_RUN.contains(&code) || starts(TURNED_AWAY)) && !starts(STOPPED_INSIDE);
        let kind = ErrorKind::Server(code.to_owned());
        Error::new(kind, definite, format!("the server replied {text}"))
    }

    /// An error reply as redis-rs has it; `None` for another error.
    pub(crate) fn of_redis(error: &RedisError) -> Option<Error> {
        let code = error.code()?;
        Some(Error::from_reply(code, error.detail().unwrap_or_default()))
    }

    /// The same without the text of the server, which may hold a password (3.5).
    pub(crate) fn without_text(mut self) -> Error {
        self.message = format!("the server refused the connection: {}", self.code());
        self.definite = true;
        self
    }
}

/// One of the calls that a list was split into has failed; those behind it were not sent (LQ-CLIENT-2).
#[derive(Clone, Debug, thiserror::Error)]
#[error("after {} answers: {cause}", answers.len())]
pub struct PartialError<T: std::fmt::Debug> {
    /// The answers of the first entries. Without room for some items, theirs are [`Added::had_no_room`].
    pub answers: Vec<T>,
    /// How many entries behind those of `answers` may have taken effect or not.
    pub in_doubt: usize,
    /// The error of the call that failed.
    #[source]
    pub cause: Error,
}

impl<T: std::fmt::Debug> PartialError<T> {
    pub(crate) fn new(answers: Vec<T>, failed: usize, cause: Error) -> Self {
        let in_doubt = if cause.is_definite() { 0 } else { failed };
        PartialError { answers, in_doubt, cause }
    }
}

impl<T: std::fmt::Debug> From<Error> for PartialError<T> {
    fn from(cause: Error) -> Self {
        PartialError { answers: Vec::new(), in_doubt: usize::from(!cause.is_definite()), cause }
    }
}

impl<T: std::fmt::Debug> From<PartialError<T>> for Error {
    fn from(error: PartialError<T>) -> Self {
        error.cause
    }
}

/// The items without room, of an error whose kind is [`ErrorKind::Full`].
impl PartialError<Added> {
    /// How many items found no room.
    pub fn without_room(&self) -> usize {
        self.answers.iter().filter(|each| each.had_no_room()).count()
    }
}
