//! Several waits at the same time.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};
use crate::pool::Pool;
use crate::waiting::{Decision, Look, Target, Waiting};

/// Lets each target block on a separate connection. The first that finds something ends the others.
pub(crate) async fn race<T: Target>(
    pool: Arc<Pool>,
    targets: Vec<T>,
    looks: Vec<Look<T::Found>>,
    ended: CancellationToken,
    timeout: Option<Duration>,
) -> Result<Option<T::Found>> {
    let others = ended.child_token();
    let decision = Decision { taken: Arc::new(AtomicBool::new(false)), others: others.clone() };
    let waits = targets.into_iter().zip(looks).map(|(target, look)| {
        let wait = Waiting::new(&pool, target).deciding(decision.clone()).run(others.clone(), timeout, Some(look));
        let others = others.clone();
        async move {
            let result = wait.await;
            // errors behind the decision are its effect, not its cause
            let failed = result.is_err() && !others.is_cancelled();
            if failed {
                others.cancel();
            }
            (result, failed)
        }
    });
    let mut failure = None;
    let mut winner = None;
    for (result, failed) in join_all(waits).await {
        match result {
            Ok(Some(found)) => winner = Some(found),
            Err(error) if failed => failure = Some(error),
            _ => {}
        }
    }
    match (winner, failure) {
        (Some(found), _) => Ok(Some(found)),
        (None, Some(error)) => Err(error),
        (None, None) if ended.is_cancelled() => Err(Error::closed()),
        (None, None) => Ok(None),
    }
}
