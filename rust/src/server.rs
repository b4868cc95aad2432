//! Servers to connect to.

use std::time::Duration;

use redis::{Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo, Value};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::conn::Conn;
use crate::encoding::strings_of;
use crate::error::{Error, ErrorKind, Result};
use crate::stall;

/// A server to connect to: its name for look-ups, and how.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    info: ConnectionInfo,
    sentinels: Option<Sentinels>,
    tls: Tls,
}

/// How TLS is set up, where it is used.
#[cfg(feature = "tls")]
pub(crate) type Tls = Option<std::sync::Arc<tokio_rustls::rustls::ClientConfig>>;
/// Without the feature `tls` there is nothing to set up.
#[cfg(not(feature = "tls"))]
#[derive(Clone, Debug, Default)]
pub(crate) struct Tls;

/// Sentinels to ask for the primary of a name.
#[derive(Clone, Debug)]
pub(crate) struct Sentinels {
    pub(crate) master: String,
    pub(crate) nodes: Vec<ConnectionInfo>,
}

/// Reads the URL of a server. Errors do not name it, since it may hold a password (LQ-SAFE-3).
pub(crate) fn info_of_url(text: &str) -> Result<ConnectionInfo> {
    let Some(url) = redis::parse_redis_url(text) else {
        return Err(Error::refused("the URL of the server starts with redis://, rediss:// or unix://"));
    };
    let is_unix = url.scheme().ends_with("unix");
    if let Some((name, _)) = url.query_pairs().find(|(name, _)| !(is_unix && ["db", "user", "pass"].contains(&name.as_ref()))) {
        return Err(Error::refused(format!("the query of the URL cannot set {name:.60}: give a redis::ConnectionInfo")));
    }
    if url.fragment().is_some() {
        return Err(Error::refused("the URL of the server has a part behind #"));
    }
    let invalid = |_| Error::refused("the URL of the server is not valid: behind the host comes the number of a database");
    let Some(rest) = text.strip_prefix("rediss://").or_else(|| text.strip_prefix("valkeys://")) else {
        return url.into_connection_info().map_err(invalid);
    };
    // redis-rs reads it only with its own TLS
    let plain = format!("redis://{rest}").into_connection_info().map_err(invalid)?;
    let ConnectionAddr::Tcp(host, port) = plain.addr().clone() else { return Ok(plain) };
    Ok(plain.set_addr(ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }))
}

impl Node {
    pub(crate) fn new(info: ConnectionInfo, tls: Tls) -> Node {
        Node { name: info.addr().to_string(), info, sentinels: None, tls }
    }

    /// The primary that Sentinels know.
    pub(crate) fn behind(info: ConnectionInfo, sentinels: Sentinels, tls: Tls) -> Node {
        Node { name: format!("sentinel {}", sentinels.master), info, sentinels: Some(sentinels), tls }
    }

    /// The same server at another address.
    fn at(&self, host: &str, port: u16) -> Node {
        Node::new(self.info.clone().set_addr(address_like(self.info.addr(), host, port)), self.tls.clone())
    }

    /// The node of `MOVED <slot> <host>:<port>`, or ASK. Without a host it is the host of the node that replied.
    pub(crate) fn redirected(&self, text: &str) -> Node {
        let address = text.split_whitespace().next_back().unwrap_or_default();
        // an IPv6 address has colons (LQ-CLUSTER-4)
        let Some((host, port)) = address.rsplit_once(':') else { return self.clone() };
        let Ok(port) = port.parse() else { return self.clone() };
        let own = match self.info.addr() {
            ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => host.clone(),
            _ => String::new(),
        };
        let host = host.trim_matches(['[', ']']);
        self.at(if host.is_empty() { &own } else { host }, port)
    }

    /// Connects within the limit: to the primary, if Sentinels know it.
    pub(crate) async fn dial(&self, limit: Duration) -> Result<Conn> {
        match &self.sentinels {
            None => dial(&self.info, &self.tls, limit).await,
            Some(sentinels) => self.dial_behind(sentinels, limit).await,
        }
    }

    async fn dial_behind(&self, sentinels: &Sentinels, limit: Duration) -> Result<Conn> {
        let until = Instant::now() + limit;
        let left = || until.saturating_duration_since(Instant::now());
        let count = sentinels.nodes.len();
        let why = format!("no Sentinel of {count} knows a primary that can be reached");
        let mut last = Error::unavailable(why.clone());
        for (at, each) in sentinels.nodes.iter().enumerate() {
            // a part of the time for each, so that others are asked if one is silent (LQ-CLIENT-22)
            let part = left() / (count - at + 1) as u32;
            let found = match ask_sentinel(each, &self.tls, &sentinels.master, part).await {
                Ok((host, port)) => dial_primary(&self.at(&host, port).info, &self.tls, left() / 2).await,
                Err(error) => Err(error),
            };
            match found {
                Ok(conn) => return Ok(conn),
                Err(error) => last = Error::unavailable(why.clone()).because(error),
            }
        }
        Err(last)
    }
}

fn address_like(given: &ConnectionAddr, host: &str, port: u16) -> ConnectionAddr {
    match given {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host: host.into(), port, insecure: *insecure, tls_params: tls_params.clone() }
        }
        _ => ConnectionAddr::Tcp(host.into(), port),
    }
}

async fn ask_sentinel(info: &ConnectionInfo, tls: &Tls, master: &str, limit: Duration) -> Result<(String, u16)> {
    let conn = dial(info, tls, limit).await?;
    let mut command = Cmd::new();
    command.arg("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(master);
    let words = strings_of(conn.send(limit, &command).await?).unwrap_or_default();
    let text = |at: usize| words.get(at).and_then(|each| String::from_utf8(each.clone()).ok());
    let port = text(1).and_then(|port| port.parse().ok());
    text(0).zip(port).ok_or_else(|| Error::unavailable("the Sentinel does not know the primary"))
}

async fn dial_primary(info: &ConnectionInfo, tls: &Tls, limit: Duration) -> Result<Conn> {
    let conn = dial(info, tls, limit).await?;
    let mut command = Cmd::new();
    command.arg("ROLE");
    match conn.send(limit, &command).await? {
        Value::Array(words) if matches!(words.first(), Some(Value::BulkString(role)) if role == b"master") => Ok(conn),
        _ => Err(Error::unavailable("the server is no primary")),
    }
}

async fn dial(info: &ConnectionInfo, tls: &Tls, limit: Duration) -> Result<Conn> {
    let connecting = connect(info, tls, limit);
    stall::within(limit, connecting).await.unwrap_or_else(|| Err(Error::unavailable(format!("not connected within {limit:?}"))))
}

#[cfg_attr(not(feature = "tls"), allow(unused_variables))]
async fn connect(info: &ConnectionInfo, tls: &Tls, limit: Duration) -> Result<Conn> {
    let settings = info.redis_settings();
    match info.addr() {
        ConnectionAddr::Tcp(host, port) => set_up(settings, tcp(host, *port).await?, limit).await,
        #[cfg(feature = "tls")]
        ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None } => {
            let stream = crate::tls::secured(tcp(host, *port).await?, host, tls.clone()).await?;
            set_up(settings, stream, limit).await
        }
        #[cfg(unix)]
        ConnectionAddr::Unix(path) => {
            let stream = tokio::net::UnixStream::connect(path).await.map_err(|error| not_connected(&error))?;
            set_up(settings, stream, limit).await
        }
        _ => Err(Error::refused("this kind of address needs the feature `tls` of the crate, and a configuration by tls_config")),
    }
}

async fn tcp(host: &str, port: u16) -> Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await.map_err(|error| not_connected(&error))?;
    stream.set_nodelay(true).map_err(|error| not_connected(&error))?;
    Ok(stream)
}

fn not_connected(error: &std::io::Error) -> Error {
    Error::unavailable(format!("not connected: {error}"))
}

async fn set_up<S>(settings: &RedisConnectionInfo, stream: S, limit: Duration) -> Result<Conn>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let conn = Conn::over(stream).await.map_err(|error| Error::unavailable(format!("not connected: {:?}", error.kind())))?;
    greet(&conn, settings, limit).await.map_err(refused_connection)?;
    Ok(conn)
}

/// Sends AUTH and SELECT. redis-rs would hide with which code the server refuses them: some refusals pass (LQ-WORK-7).
async fn greet(conn: &Conn, settings: &RedisConnectionInfo, limit: Duration) -> Result<()> {
    let mut commands = Vec::new();
    if let Some(password) = settings.password() {
        let mut auth = Cmd::new();
        auth.arg("AUTH").arg(settings.username()).arg(password);
        commands.push(auth);
    }
    if settings.db() != 0 {
        let mut select = Cmd::new();
        select.arg("SELECT").arg(settings.db());
        commands.push(select);
    }
    if commands.is_empty() {
        return Ok(());
    }
    conn.send_all(limit, commands).await?.into_iter().try_for_each(|reply| reply.map(drop))
}

/// The cause is the reply of the server, without its text: that may hold the password (3.5).
fn refused_connection(error: Error) -> Error {
    match error.kind() {
        // an ERR that is definite: the server has too many connections, which passes
        ErrorKind::Server(code) if code == "ERR" && error.is_definite() => {
            Error::unavailable("not connected: the server has too many connections")
        }
        ErrorKind::Server(_) | ErrorKind::Script(_) => {
            let code = error.code().to_owned();
            Error::unavailable(format!("not connected: the server replied {code}")).because(error.without_text())
        }
        _ => Error::unavailable(format!("not connected: {error}")),
    }
}
