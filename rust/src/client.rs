//! A client of one server or cluster.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, ConnectionInfo};

use crate::encoding::{Reply, strings_of};
use crate::error::{Error, Result};
use crate::keys::{QueueKeys, REGISTRY, is_registry_entry};
use crate::pool::Pool;
use crate::queue::Queue;
use crate::server::{Node, Sentinels, Tls, info_of_url};

/// A client of one server or cluster. Connections are opened when they are needed, in the Tokio runtime that it is used in. Clones share them.
#[derive(Clone)]
pub struct Client {
    pub(crate) pool: Arc<Pool>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

/// How a client is made.
#[derive(Clone, Debug)]
pub struct ClientBuilder {
    limit: Duration,
    nodes: Vec<ConnectionInfo>,
    master: Option<String>,
    tls: Tls,
}

impl ClientBuilder {
    /// Adds a server: one, or further nodes of a cluster, by its URL: `redis://` or `unix://`.
    pub fn node(mut self, url: &str) -> Result<Self> {
        self.nodes.push(info_of_url(url)?);
        Ok(self)
    }

    /// Adds a server by the connection info of redis-rs.
    pub fn node_info(mut self, info: ConnectionInfo) -> Self {
        self.nodes.push(info);
        self
    }

    /// The servers are Sentinels, which know the primary of this name. User, password and database of the first are those of the primary.
    pub fn sentinel_master(mut self, name: impl Into<String>) -> Self {
        self.master = Some(name.into());
        self
    }

    /// How TLS is set up for `rediss://`. Default: certificates are trusted that browsers trust.
    #[cfg(feature = "tls")]
    pub fn tls_config(mut self, config: impl Into<Arc<tokio_rustls::rustls::ClientConfig>>) -> Self {
        self.tls = Some(config.into());
        self
    }

    /// After which time a call without a reply fails and its connection is closed, and how long connecting may take. Default: 10 s.
    pub fn reply_timeout(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Makes the client. It does not connect.
    pub fn build(self) -> Result<Client> {
        if self.limit.is_zero() {
            return Err(Error::refused("the reply timeout is above 0"));
        }
        let Some(first) = self.nodes.first().cloned() else { return Err(Error::refused("no server: add a node")) };
        let nodes = match self.master {
            Some(master) => {
                let without_login = |each: ConnectionInfo| each.set_redis_settings(redis::RedisConnectionInfo::default());
                let nodes = self.nodes.into_iter().map(without_login).collect();
                vec![Node::behind(first, Sentinels { master, nodes }, self.tls)]
            }
            None => self.nodes.into_iter().map(|info| Node::new(info, self.tls.clone())).collect(),
        };
        Ok(Client { pool: Pool::new(nodes, self.limit) })
    }
}

impl Client {
    /// How a client is made.
    pub fn builder() -> ClientBuilder {
        ClientBuilder { limit: Duration::from_secs(10), nodes: Vec::new(), master: None, tls: Default::default() }
    }

    /// A client of the server at a URL, or of the cluster that it is a node of. It does not connect yet.
    pub fn open(url: &str) -> Result<Client> {
        Client::builder().node(url)?.build()
    }

    /// A client of the server of a client of redis-rs, on separate connections.
    pub fn of_redis(client: &redis::Client) -> Result<Client> {
        Client::builder().node_info(client.get_connection_info().clone()).build()
    }

    /// Opens a queue, which is a separate group. A name that does not match `[A-Za-z0-9_.-]{1,100}` is refused.
    pub fn queue(&self, name: &str) -> Result<Queue> {
        self.queue_in(name, name)
    }

    /// Opens a queue of a group. Queues of one group can hand items off to each other, and one call waits for all of them.
    pub fn queue_in(&self, group: &str, name: &str) -> Result<Queue> {
        Ok(Queue::new(&self.pool, QueueKeys::new(name, group)?))
    }

    /// Lists the queues that clients have used, each `<group>:<name>` (LQ-REGISTRY-4).
    pub async fn queues(&self) -> Result<Vec<String>> {
        let mut found = BTreeSet::new();
        let mut cursor = b"0".to_vec();
        loop {
            let mut command = Cmd::new();
            command.arg("SSCAN").arg(REGISTRY).arg(cursor).arg("COUNT").arg(1000);
            let mut page = Reply::elements(self.pool.shared.send(REGISTRY.as_bytes(), self.pool.limit, &command).await?)?;
            cursor = page.bytes()?;
            let members = strings_of(page.value()?)?;
            found.extend(members.into_iter().filter_map(|each| String::from_utf8(each).ok()).filter(|each| is_registry_entry(each)));
            if cursor == b"0" {
                return Ok(found.into_iter().collect());
            }
        }
    }

    /// Ends every wait, gives back what they leased, and closes the connections.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}
