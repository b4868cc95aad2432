//! TLS, through a program that takes it off in front of a server.
#![cfg(feature = "tls")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{Server, add, queue};
use leaseq::{Client, Wait};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

/// Takes TLS off in front of a port; returns the port to connect to and the certificate of `localhost`.
async fn secured(port: u16) -> (u16, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.der().clone(), PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into()));
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate.clone()], key).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut inner = TcpStream::connect(("127.0.0.1", port)).await?;
                copy_bidirectional(&mut acceptor.accept(stream).await?, &mut inner).await
            });
        }
    });
    (own, certificate)
}

fn trusting(certificate: CertificateDer<'static>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
}

#[tokio::test]
async fn items_go_over_tls_to_a_server_whose_certificate_is_trusted() {
    let server = Server::start();
    let (port, certificate) = secured(server.port).await;
    let builder = || Client::builder().node(&format!("rediss://localhost:{port}")).unwrap();
    let client = builder().tls_config(trusting(certificate)).build().unwrap();
    let secret = queue(&client);
    add(&secret, &["a"]).await;
    let waiting = tokio::spawn({
        let secret = secret.clone();
        async move { secret.lease_all(2, Duration::from_secs(60), Wait::For(Duration::from_secs(10))).await }
    });
    let items = waiting.await.unwrap().unwrap();
    assert!(items[0].complete().await.unwrap());

    let error = builder().build().unwrap().queue("any").unwrap().stats().await.unwrap_err();
    assert_eq!((error.code(), error.is_definite()), ("CONNECTION", true));
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_certificate_of_another_host_is_refused() {
    let server = Server::start();
    let (port, certificate) = secured(server.port).await;
    let client = Client::builder().node(&format!("rediss://127.0.0.1:{port}")).unwrap().tls_config(trusting(certificate)).build().unwrap();
    assert!(client.queue("any").unwrap().stats().await.unwrap_err().is_definite());
}
