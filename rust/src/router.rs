//! Sends each call to the node that has its group, and follows redirections.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use redis::{Cmd, Value};
use tokio::time::{Instant, sleep};

use crate::conn::Conn;
use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
use crate::keys::group_of_key;
use crate::link::Link;
use crate::pool::Pool;
use crate::script::Call;
use crate::server::Node;

/// How many MOVED and ASK one call follows.
const MAX_REDIRECTS: u32 = 16;
/// The pause after TRYAGAIN and CLUSTERDOWN doubles from the first to the second.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(20);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Which node of a cluster has which group, learned from MOVED: all keys of a group are in one slot (LQ-CLUSTER-1). A server that is no
/// cluster never replies MOVED; then every group is on the first server that was given and can be reached.
pub(crate) struct SlotTable {
    given: Vec<Arc<Node>>,
    state: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    moved: HashMap<Vec<u8>, Arc<Node>>,
    chosen: usize,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SlotTable {
    pub(crate) fn new(given: Vec<Node>) -> SlotTable {
        SlotTable { given: given.into_iter().map(Arc::new).collect(), state: Mutex::default() }
    }

    fn node_of(&self, group: &[u8]) -> Arc<Node> {
        let state = locked(&self.state);
        state.moved.get(group).unwrap_or(&self.given[state.chosen]).clone()
    }

    fn record_move(&self, group: &[u8], to: &Arc<Node>) {
        locked(&self.state).moved.insert(group.into(), to.clone());
    }

    /// Another node may know now which one has its groups.
    fn mark_unreachable(&self, group: &[u8], gone: &Node) {
        let mut state = locked(&self.state);
        if state.moved.remove(group).is_none() && self.given[state.chosen].name == gone.name {
            state.chosen = (state.chosen + 1) % self.given.len();
        }
    }

    /// How many nodes a call may still try to reach: this one, and those that were given.
    fn count_untried(&self, next: &Node, unreachable: &HashSet<String>) -> u32 {
        let others = self.given.iter().filter(|each| each.name != next.name && !unreachable.contains(&each.name));
        1 + others.count() as u32
    }
}

type Replying<'a> = Pin<Box<dyn Future<Output = Result<Value>> + Send + 'a>>;

/// One connection to each node that was needed.
pub(crate) struct Router {
    slots: Arc<SlotTable>,
    limit: Duration,
    pool: Weak<Pool>,
    links: Mutex<Links>,
}

#[derive(Default)]
struct Links {
    by_name: HashMap<String, Arc<Link>>,
    closed: bool,
}

impl Drop for Router {
    fn drop(&mut self) {
        self.close();
    }
}

impl Router {
    pub(crate) fn new(slots: Arc<SlotTable>, limit: Duration, pool: Weak<Pool>) -> Router {
        Router { slots, limit, pool, links: Mutex::default() }
    }

    fn link(&self, to: &Arc<Node>) -> Arc<Link> {
        let mut links = locked(&self.links);
        if let Some(found) = links.by_name.get(&to.name) {
            return found.clone();
        }
        let made = Arc::new(Link::new(to.clone(), self.pool.clone(), links.closed));
        links.by_name.insert(to.name.clone(), made.clone());
        made
    }

    /// Connects to the node of a key, so that the next command is written at once.
    pub(crate) async fn open(&self, key: &[u8]) -> Result<Arc<Conn>> {
        self.link(&self.slots.node_of(group_of_key(key))).open(self.limit).await
    }

    /// Makes a call. It is sent again only after a reply that shows that it did not run (LQ-CLUSTER-3), or if it could not be sent.
    pub(crate) async fn run(&self, call: &Call, limit: Duration) -> Result<Value> {
        self.follow(&call.keys[0], limit, Request::Call(call)).await
    }

    /// Makes a call and waits behind it. Returns the reply, and the error of the wait.
    pub(crate) async fn run_durably(&self, call: &Call, limit: Duration, durability: &Durability) -> Result<(Value, Option<Error>)> {
        let shortfall = OnceLock::new();
        let reply = self.follow(&call.keys[0], limit, Request::DurableCall(call, durability, &shortfall)).await?;
        Ok((reply, shortfall.into_inner()))
    }

    /// Makes calls on keys of one slot, one right behind the other. It is for calls whose replies say nothing that is needed.
    pub(crate) async fn run_all(&self, calls: &[Call], limit: Duration) -> Result<()> {
        let Some(first) = calls.first() else { return Ok(()) };
        self.follow(&first.keys[0], limit, Request::Calls(calls)).await.map(drop)
    }

    /// Sends a command on a key and follows redirections as `run` does.
    pub(crate) async fn send(&self, key: &[u8], limit: Duration, command: &Cmd) -> Result<Value> {
        self.follow(key, limit, Request::Command(command)).await
    }

    /// Sends commands on keys of one slot in one transaction, and returns the reply to EXEC.
    #[cfg(feature = "jobs")]
    pub(crate) async fn transaction(&self, key: &[u8], limit: Duration, commands: &[Cmd]) -> Result<Value> {
        self.follow(key, limit, Request::Transaction(commands)).await
    }

    /// Sends a command on a key once. For blocks: their waiter looks again anyway.
    pub(crate) async fn send_once(&self, key: &[u8], limit: Duration, command: &Cmd) -> Result<Value> {
        self.open(key).await?.send(limit, command).await
    }

    /// Sends to the node of a key until a node replies to the command itself. Connecting, redirections, pauses and the reply share one
    /// limit: that of connecting, and that of the reply (LQ-CLUSTER-5).
    ///
    /// Boxed: this is nested into each call of a program, and rustc limits how deep the futures of a program are nested.
    fn follow<'a>(&'a self, key: &'a [u8], limit: Duration, request: Request<'a>) -> Replying<'a> {
        Box::pin(async move {
            let mut following = Following::new(self, group_of_key(key), Instant::now() + self.limit + limit);
            loop {
                let result = match following.connect().await {
                    Ok(conn) => {
                        let left = following.until.saturating_duration_since(Instant::now());
                        let sent = request.send(&conn, following.asking, limit.min(left.max(Duration::from_millis(1)))).await;
                        match sent {
                            Err(error) if error.code() == "ERR" && !error.is_definite() && !conn.is_alive() => {
                                Err(following.refusal(limit).await.unwrap_or(error))
                            }
                            other => other,
                        }
                    }
                    Err(error) => Err(error),
                };
                let error = match result {
                    Ok(found) => return Ok(found),
                    Err(error) => error,
                };
                if !error.is_definite() || Instant::now() >= following.until || !following.again(&error).await {
                    return Err(error);
                }
            }
        })
    }

    /// Closes the connection to a node if no reply is expected on it (LQ-CLIENT-21).
    pub(crate) fn close_idle(&self, to: &str) {
        let found = locked(&self.links).by_name.get(to).cloned();
        if let Some(link) = found {
            link.close_if_idle();
        }
    }

    pub(crate) fn close(&self) {
        let mut links = locked(&self.links);
        links.closed = true;
        links.by_name.values().for_each(|each| each.close());
    }
}

/// What is sent to a node.
enum Request<'a> {
    Call(&'a Call),
    DurableCall(&'a Call, &'a Durability, &'a OnceLock<Error>),
    Calls(&'a [Call]),
    Command(&'a Cmd),
    #[cfg(feature = "jobs")]
    Transaction(&'a [Cmd]),
}

impl Request<'_> {
    async fn send(&self, conn: &Conn, asking: bool, limit: Duration) -> Result<Value> {
        match self {
            Request::Call(call) => conn.run(call, limit, asking).await,
            Request::DurableCall(call, durability, found) => {
                let (reply, shortfall) = conn.run_durably(call, durability, limit, asking).await?;
                shortfall.map(|error| found.set(error));
                Ok(reply)
            }
            Request::Command(command) => conn.send_asking((*command).clone(), limit, asking).await,
            #[cfg(feature = "jobs")]
            Request::Transaction(commands) => conn.transaction(commands, limit).await,
            Request::Calls(calls) => conn.run_all(calls, limit, asking).await.map(|()| Value::Nil),
        }
    }
}

/// Where a call is on its way through the nodes of a cluster.
struct Following<'a> {
    router: &'a Router,
    group: &'a [u8],
    until: Instant,
    next: Arc<Node>,
    asking: bool,
    redirects: u32,
    delay: Duration,
    unreachable: HashSet<String>,
}

impl<'a> Following<'a> {
    fn new(router: &'a Router, group: &'a [u8], until: Instant) -> Self {
        let next = router.slots.node_of(group);
        Following { router, group, until, next, asking: false, redirects: 0, delay: MIN_RETRY_DELAY, unreachable: HashSet::new() }
    }

    /// Why the server closed the connection behind an error reply. A long command without a password is such an error: a short one on a new
    /// connection gets NOAUTH (LQ-WORK-14).
    async fn refusal(&self, limit: Duration) -> Option<Error> {
        let mut short = Cmd::new();
        short.arg("EVAL").arg("return 1").arg(0);
        let refused = self.connect().await.ok()?.send(limit, &short).await.err()?;
        (refused.code() == "NOAUTH").then_some(refused)
    }

    async fn connect(&self) -> Result<Arc<Conn>> {
        let link = self.router.link(&self.next);
        if let Some(conn) = link.ready() {
            return Ok(conn);
        }
        let untried = self.router.slots.count_untried(&self.next, &self.unreachable);
        link.open(self.until.saturating_duration_since(Instant::now()) / untried).await
    }

    /// Whether to send the call again after a definite error; `next` is then the node.
    async fn again(&mut self, error: &Error) -> bool {
        self.asking = error.code() == "ASK";
        let slots = &self.router.slots;
        match (error.kind(), error.code()) {
            (ErrorKind::Server(_), "MOVED" | "ASK") => {
                self.redirects += 1;
                self.next = Arc::new(self.next.redirected(&error.to_string()));
                if !self.asking {
                    slots.record_move(self.group, &self.next);
                }
                self.redirects <= MAX_REDIRECTS
            }
            (ErrorKind::Server(_), "TRYAGAIN" | "CLUSTERDOWN") => {
                if Instant::now() + self.delay > self.until {
                    return false;
                }
                sleep(self.delay).await;
                self.delay = MAX_RETRY_DELAY.min(2 * self.delay);
                self.next = slots.node_of(self.group);
                true
            }
            (ErrorKind::Connection, _) => {
                self.unreachable.insert(self.next.name.clone());
                slots.mark_unreachable(self.group, &self.next);
                self.next = slots.node_of(self.group);
                !self.unreachable.contains(&self.next.name)
            }
            _ => false,
        }
    }
}
