//! Whether the server is away, and which errors say so.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::error::{Error, ErrorKind};
use crate::generated::errors::ScriptError;
use crate::hooks::Reporter;
use crate::verdict::random_part;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// True if the call may work later as it is: the server is away, is loading, has no memory, refuses writes, and the like.
pub(crate) fn is_server_away(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Script(code) => matches!(code, ScriptError::OutOfMemory | ScriptError::Clock),
        ErrorKind::Connection | ErrorKind::Server(_) => true,
        ErrorKind::Full | ErrorKind::Closed | ErrorKind::OtherProcess | ErrorKind::OtherRuntime => false,
        ErrorKind::NoScripts | ErrorKind::NotDurable(_) | ErrorKind::NoDurability => false,
    }
}

/// True if the queue cannot be read: it works again after a repair (page 07).
pub(crate) fn is_damaged(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Script(ScriptError::Format | ScriptError::WrongKeyType))
}

/// True if the server refuses because of the user, the password or the settings of the connection (LQ-WORK-14).
pub(crate) fn is_misconfigured(error: &Error) -> bool {
    let connecting = *error.kind() == ErrorKind::Connection && error.is_definite();
    let found = if connecting { error.cause() } else { Some(error) };
    found.is_some_and(|found| match found.kind() {
        ErrorKind::NoScripts => true,
        ErrorKind::Server(code) => ["NOAUTH", "WRONGPASS", "NOPERM"].contains(&code.as_str()) || connecting && code == "ERR",
        _ => false,
    })
}

/// Waits after that many failures in a row, at random so that workers do not come back together (LQ-WORK-7).
pub(crate) async fn pause_after(ended: &CancellationToken, failures: u32) {
    let full = FIRST_PAUSE.saturating_mul(1 << (failures - 1).min(20)).min(LONGEST_PAUSE);
    tokio::select! {
        () = ended.cancelled() => {}
        () = sleep(full.mul_f64(0.75 + random_part() / 4.0)) => {}
    }
}

/// Since when the server is away.
#[derive(Default)]
pub(crate) struct ServerHealth {
    reporter: Reporter,
    since: Mutex<Option<Instant>>,
}

impl ServerHealth {
    pub(crate) fn new(reporter: Reporter) -> ServerHealth {
        ServerHealth { reporter, since: Mutex::default() }
    }

    fn since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_away(&self) -> bool {
        self.since().is_some()
    }

    /// The first call of an outage that fails is reported.
    pub(crate) fn failed(&self, error: &Error) {
        let first = self.since().is_none();
        self.since().get_or_insert_with(Instant::now);
        if first {
            warn!(%error, "leaseq worker: the server is away or refuses, trying again");
            self.reporter.tell(|hooks| hooks.server_away(error));
        }
    }

    pub(crate) fn worked(&self) {
        let since = self.since().take();
        if let Some(since) = since {
            info!(after = ?since.elapsed(), "leaseq worker: the server is back");
            self.reporter.tell(|hooks| hooks.server_back(since.elapsed()));
        }
    }
}
