//! TLS by rustls.

use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::error::{Error, Result};

/// Certificates of the authorities that browsers trust.
fn web_roots() -> Arc<ClientConfig> {
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() };
    Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}

/// Puts TLS on a connection. Without a configuration, those certificates are trusted that browsers trust.
pub(crate) async fn secured(stream: TcpStream, host: &str, config: Option<Arc<ClientConfig>>) -> Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| Error::refused("the host cannot be the name of a certificate"))?;
    let connector = TlsConnector::from(config.unwrap_or_else(web_roots));
    connector.connect(name, stream).await.map_err(|error| Error::unavailable(format!("not connected: {error}")))
}
