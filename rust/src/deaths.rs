//! The log of items that died where no handler ran: their leases expired, or no worker leased them in time.

use std::collections::BTreeMap;

use tracing::warn;

use crate::encoding::Words;
use crate::generated::codecs::{Outcome, OutcomeState};

/// Logs the failures among the outcomes of a queue: a line for each reason, whatever their number.
pub(crate) fn log(queue: &str, ids: &Words, outcomes: &[Outcome]) {
    let mut died: BTreeMap<String, Vec<&[u8]>> = BTreeMap::new();
    for (id, outcome) in ids.iter().zip(outcomes).filter(|(_, outcome)| outcome.state == OutcomeState::Failure) {
        died.entry(reason(&outcome.content)).or_default().push(id);
    }
    for (reason, items) in died {
        let first = String::from_utf8_lossy(items[0]);
        warn!(queue, items = items.len(), %first, %reason, "items are dead letters");
    }
}

/// The first line of an error. An item whose workers died has none.
fn reason(error: &[u8]) -> String {
    let text = String::from_utf8_lossy(error);
    text.lines().next().filter(|line| !line.is_empty()).unwrap_or("its attempts are used up").to_owned()
}
