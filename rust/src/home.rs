//! Where a connection was opened.

use tokio::runtime::{Handle, Id};

use crate::error::{Error, ErrorKind, Result};

/// The process and the Tokio runtime that opened a connection. It is used there only: a forked child shares its socket with the parent, and the
/// task that reads it runs in its runtime.
pub(crate) struct Home {
    process: u32,
    runtime: Id,
}

impl Home {
    pub(crate) fn here() -> Home {
        Home { process: std::process::id(), runtime: Handle::current().id() }
    }

    /// Refuses a call from elsewhere (LQ-CLIENT-17, LQ-CLIENT-18).
    pub(crate) fn check(&self) -> Result<()> {
        let here = Home::here();
        if here.process != self.process {
            return Err(Error::elsewhere(ErrorKind::OtherProcess));
        }
        if here.runtime != self.runtime {
            return Err(Error::elsewhere(ErrorKind::OtherRuntime));
        }
        Ok(())
    }
}
