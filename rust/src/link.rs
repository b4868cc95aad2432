//! The connection to one node: opened when it is needed, and again after it broke.

use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::conn::Conn;
use crate::error::{Error, Result};
use crate::pool::Pool;
use crate::server::Node;
use crate::stall;

type Opening<'a> = Pin<Box<dyn Future<Output = Result<Arc<Conn>>> + Send + 'a>>;

pub(crate) struct Link {
    pub(crate) node: Arc<Node>,
    pool: Weak<Pool>,
    state: Mutex<State>,
    opening: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    conn: Option<Arc<Conn>>,
    closed: bool,
}

impl Link {
    pub(crate) fn new(node: Arc<Node>, pool: Weak<Pool>, closed: bool) -> Link {
        Link { node, pool, state: Mutex::new(State { conn: None, closed }), opening: tokio::sync::Mutex::new(()) }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The connection if the next command is written at once.
    pub(crate) fn ready(&self) -> Option<Arc<Conn>> {
        self.state().conn.clone().filter(|conn| conn.is_alive())
    }

    /// Connects within the limit, once for all calls that wait for it.
    ///
    /// Boxed: this is nested into each call, and rustc limits how deep the futures of a program are nested.
    pub(crate) fn open(&self, limit: Duration) -> Opening<'_> {
        Box::pin(async move {
            let opened = stall::within(limit, async {
                let _only = self.opening.lock().await;
                if self.state().closed {
                    return Err(Error::closed());
                }
                match self.ready() {
                    Some(conn) => Ok(conn),
                    None => self.dial(limit).await,
                }
            });
            opened.await.unwrap_or_else(|| Err(Error::unavailable(format!("not connected within {limit:?}"))))
        })
    }

    async fn dial(&self, limit: Duration) -> Result<Arc<Conn>> {
        let conn = Arc::new(self.node.dial(limit).await?);
        let (pool, name) = (self.pool.clone(), self.node.name.clone());
        let _ = conn.broken.set(Box::new(move || {
            if let Some(pool) = pool.upgrade() {
                pool.close_idle(&name);
            }
        }));
        let mut state = self.state();
        if state.closed {
            conn.close();
            return Err(Error::closed());
        }
        if let Some(before) = state.conn.replace(conn.clone()) {
            before.retire();
        }
        Ok(conn)
    }

    /// Closes the connection if no reply is expected on it.
    pub(crate) fn close_if_idle(&self) {
        let mut state = self.state();
        if state.conn.as_ref().is_some_and(|conn| conn.is_idle())
            && let Some(conn) = state.conn.take()
        {
            conn.close();
        }
    }

    /// Closes the connection for good.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        if let Some(conn) = &state.conn {
            conn.close();
        }
    }
}
