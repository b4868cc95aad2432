//! One connection to one server, which connects once and repeats nothing. It decides of each failure whether the call can have run.

use std::collections::HashSet;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ProtocolVersion, RedisConnectionInfo, RedisError, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
use crate::home::Home;
use crate::script::Call;
use crate::socket::{Activity, Socket};
use crate::stall;

/// How many bytes of a command or reply a second must bring at least (LQ-CLIENT-19).
const SLOWEST_BYTES: u64 = 32 * 1024;

pub(crate) struct Conn {
    home: Home,
    mux: MultiplexedConnection,
    driver: AbortHandle,
    activity: Arc<Activity>,
    pending: AtomicUsize,
    retired: AtomicBool,
    /// Called once, when the connection breaks or a reply is late.
    pub(crate) broken: OnceLock<Box<dyn Fn() + Send + Sync>>,
    reported: AtomicBool,
    /// The kinds of waits that the server is known to have.
    waits: Mutex<HashSet<&'static str>>,
}

/// Counts a call whose reply is expected.
struct Pending<'a>(&'a Conn);

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if self.0.pending.fetch_sub(1, SeqCst) == 1 && self.0.retired.load(SeqCst) {
            self.0.close();
        }
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        self.close();
    }
}

impl Conn {
    /// Sets a connection up on a stream, and sends nothing.
    pub(crate) async fn over<S>(stream: S) -> std::result::Result<Conn, RedisError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let activity = Activity::new();
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        let socket = Socket { stream, activity: activity.clone() };
        let info = RedisConnectionInfo::default().set_skip_set_lib_name().set_protocol(ProtocolVersion::RESP2);
        let (mux, driver) = MultiplexedConnection::new_with_config(&info, socket, config).await?;
        Ok(Conn {
            home: Home::here(),
            mux,
            driver: tokio::spawn(driver).abort_handle(),
            activity,
            pending: AtomicUsize::new(0),
            retired: AtomicBool::new(false),
            broken: OnceLock::new(),
            reported: AtomicBool::new(false),
            waits: Mutex::default(),
        })
    }

    /// True if the next command is written at once.
    pub(crate) fn is_alive(&self) -> bool {
        !self.activity.is_dead() && !self.retired.load(SeqCst)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.pending.load(SeqCst) == 0
    }

    pub(crate) fn close(&self) {
        self.activity.kill();
        self.driver.abort();
    }

    /// Lets no further call in. The replies that are under way still come.
    pub(crate) fn retire(&self) {
        self.retired.store(true, SeqCst);
        if self.is_idle() {
            self.close();
        }
    }

    /// Sends a command and returns its reply.
    pub(crate) async fn send(&self, limit: Duration, command: &Cmd) -> Result<Value> {
        let _pending = self.begin()?;
        let mut mux = self.mux.clone();
        let size = command.args_iter().map(length).sum();
        let reply = self.within(limit, size, mux.send_packed_command(command)).await?;
        self.reply(reply)
    }

    /// Sends commands that belong together, one right behind the other, and returns their replies.
    pub(crate) async fn send_all(&self, limit: Duration, commands: Vec<Cmd>) -> Result<Vec<Result<Value>>> {
        let _pending = self.begin()?;
        let mut mux = self.mux.clone();
        let mut pipeline = redis::Pipeline::with_capacity(commands.len());
        let count = commands.len();
        for each in commands {
            pipeline.add_command(each);
        }
        let size = pipeline.get_packed_pipeline().len();
        let replies = self.within(limit, size, mux.send_packed_commands(&pipeline, 0, count)).await?;
        match replies {
            Ok(all) => Ok(all.into_iter().map(|each| self.reply(each.extract_error())).collect()),
            Err(error) => Ok(vec![self.reply(Err(error))]),
        }
    }

    fn begin(&self) -> Result<Pending<'_>> {
        if self.activity.is_dead() {
            return Err(Error::unavailable("not connected"));
        }
        self.home.check()?;
        self.pending.fetch_add(1, SeqCst);
        Ok(Pending(self))
    }

    /// Closes the connection if a reply is late (LQ-CLIENT-10). Bytes that flow renew the time (LQ-CLIENT-19).
    async fn within<T>(&self, limit: Duration, size: usize, reply: impl Future<Output = T>) -> Result<T> {
        tokio::pin!(reply);
        let begun = Instant::now();
        let moved = self.activity.moved();
        let limit = limit + transfer(size as u64);
        let mut stood_still = Duration::ZERO;
        let mut until = begun + limit;
        loop {
            // in steps: a timer that comes late shows for how long the event loop stood still (LQ-CLIENT-20)
            let next = until.min(Instant::now() + limit / stall::STEPS);
            tokio::select! {
                biased;
                done = &mut reply => return Ok(done),
                () = sleep_until(next) => {}
            }
            let late = next.elapsed();
            if late > stall::NOTICED {
                stood_still += late;
            }
            let latest = begun + limit + transfer(self.activity.moved() - moved);
            let renewed = self.activity.last() + limit;
            until = latest.min(renewed) + stood_still;
            if until <= Instant::now() {
                self.break_down();
                return Err(Error::reply_lost(format!("no reply within {limit:?}")));
            }
        }
    }

    fn break_down(&self) {
        self.close();
        if let Some(broken) = self.broken.get()
            && !self.reported.swap(true, SeqCst)
        {
            broken();
        }
    }

    /// A reply, or the error that it is. Nil is a reply.
    fn reply(&self, reply: std::result::Result<Value, RedisError>) -> Result<Value> {
        let error = match reply.and_then(Value::extract_error) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let Some(found) = Error::of_redis(&error) else {
            self.break_down();
            return Err(Error::reply_lost(format!("the connection was lost: {:?}", error.kind())));
        };
        if found.code() == "READONLY" {
            // no longer the primary: the next call connects anew (LQ-CLIENT-25)
            self.retired.store(true, SeqCst);
        }
        Err(found)
    }

    /// Makes a call of a script: with EVALSHA, after NOSCRIPT with EVAL (LQ-SCRIPT-2). With `asking`, ASKING goes before each.
    pub(crate) async fn run(&self, call: &Call, limit: Duration, asking: bool) -> Result<Value> {
        let mut reply = self.send_asking(call.by_digest(), limit, asking).await;
        if has_code(&reply, "NOSCRIPT") {
            reply = self.send_asking(call.by_source(), limit, asking).await;
        }
        if has_code(&reply, "ERR") {
            // Texts of servers differ: whether this one runs scripts is asked with a script of no commands (LQ-ERROR-6).
            let mut probe = Cmd::new();
            probe.arg("EVAL").arg("return 1").arg(0);
            if has_code(&self.send(limit, &probe).await, "ERR") {
                return Err(Error::no_scripts());
            }
        }
        reply
    }

    /// Makes a call and waits behind it, over the same socket. Whatever becomes of the wait, the reply of the call is returned.
    pub(crate) async fn run_durably(
        &self,
        call: &Call,
        durability: &Durability,
        limit: Duration,
        asking: bool,
    ) -> Result<(Value, Option<Error>)> {
        self.check_wait(durability, limit).await?;
        let reply = self.run(call, limit, asking).await?;
        let waited = self.send(durability.timeout() + limit, &durability.command()).await;
        Ok((reply, durability.shortfall(waited)))
    }

    /// Asks once whether the server waits so.
    async fn check_wait(&self, durability: &Durability, limit: Duration) -> Result<()> {
        let known = || self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        if !known().contains(durability.name()) && durability.read_probe(self.send(limit, &durability.probe()).await)? {
            known().insert(durability.name());
        }
        Ok(())
    }

    /// Makes calls, one right behind the other.
    pub(crate) async fn run_all(&self, calls: &[Call], limit: Duration, asking: bool) -> Result<()> {
        let mut commands = Vec::new();
        for each in calls {
            if asking {
                commands.push(ask());
            }
            commands.push(each.by_digest());
        }
        let mut replies = self.send_all(limit, commands).await?;
        if asking {
            replies = replies.into_iter().skip(1).step_by(2).collect();
        }
        for (call, reply) in calls.iter().zip(replies) {
            if has_code(&reply, "NOSCRIPT") {
                self.send_asking(call.by_source(), limit, asking).await?;
            } else {
                reply?;
            }
        }
        Ok(())
    }

    /// Sends commands in one transaction, and returns the reply to EXEC.
    #[cfg(feature = "jobs")]
    pub(crate) async fn transaction(&self, commands: &[Cmd], limit: Duration) -> Result<Value> {
        let word = |name: &str| {
            let mut command = Cmd::new();
            command.arg(name);
            command
        };
        let mut all = vec![word("MULTI")];
        all.extend_from_slice(commands);
        all.push(word("EXEC"));
        let mut replies = self.send_all(limit, all).await?;
        let last = replies.pop().unwrap_or_else(|| Err(Error::bad_reply("there is none")));
        // why the transaction was refused is in the first reply that is an error
        replies.into_iter().collect::<Result<Vec<Value>>>().map_err(Error::definite)?;
        last
    }

    pub(crate) async fn send_asking(&self, command: Cmd, limit: Duration, asking: bool) -> Result<Value> {
        if !asking {
            return self.send(limit, &command).await;
        }
        let replies = self.send_all(limit, vec![ask(), command]).await?;
        replies.into_iter().next_back().unwrap_or_else(|| Err(Error::bad_reply("there is none")))
    }
}

fn ask() -> Cmd {
    let mut command = Cmd::new();
    command.arg("ASKING");
    command
}

fn length(word: redis::Arg<&[u8]>) -> usize {
    match word {
        redis::Arg::Simple(bytes) => bytes.len(),
        _ => 0,
    }
}

fn has_code(reply: &Result<Value>, code: &str) -> bool {
    matches!(reply, Err(error) if matches!(error.kind(), ErrorKind::Server(word) if word == code))
}

/// The longest time that bytes may take.
fn transfer(bytes: u64) -> Duration {
    Duration::from_millis(bytes * 1000 / SLOWEST_BYTES)
}
