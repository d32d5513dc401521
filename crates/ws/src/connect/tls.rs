//! TLS below the WebSocket handshake (RFC 6455 section 4.1, item 5).
//!
//! Owns the default configuration. It trusts the root certificates of the machine, so it accepts the same
//! certificates as the machine's other programs, for example those of a company's proxy. The cryptography is the one
//! that the program has installed, or else that of the feature `aws-lc-rs`.

use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::error::{ConnectError, Step};
use super::stream::ClientStream;
use super::url::Host;

/// Checks before connecting that there is cryptography for a default configuration.
pub(super) fn check_provider() -> Result<(), ConnectError> {
    provider().map(drop).ok_or(ConnectError::TlsProviderMissing)
}

/// Performs the TLS handshake for `host`.
pub(super) async fn connect(
    stream: TcpStream,
    host: &Host,
    config: Option<&Arc<ClientConfig>>,
) -> Result<ClientStream, ConnectError> {
    let connect = async {
        let config = match config {
            Some(config) => Arc::clone(config),
            None => default_config().await?,
        };
        let name = match host {
            Host::Address(address) => ServerName::from(*address),
            Host::Name(name) => ServerName::try_from(name.clone()).map_err(io::Error::other)?,
        };
        TlsConnector::from(config).connect(name, stream).await
    };
    let secured = connect.await.map_err(|source| ConnectError::Stream { step: Step::Tls, source });
    Ok(ClientStream::tls(secured?))
}

/// Returns the one default configuration of the process. Reading the roots takes milliseconds, on some systems many,
/// and sessions can be resumed only under the same configuration.
async fn default_config() -> io::Result<Arc<ClientConfig>> {
    static CONFIG: OnceCell<Arc<ClientConfig>> = OnceCell::const_new();
    let read = || async { tokio::task::spawn_blocking(read_roots).await.map_err(io::Error::other) };
    let config = CONFIG.get_or_try_init(|| async { configure(read().await??) }).await?;
    Ok(Arc::clone(config))
}

fn read_roots() -> io::Result<RootCertStore> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Some machines have one unreadable certificate among a hundred good ones.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.into_iter().next();
        return Err(why.map_or_else(|| io::Error::other(NoRoots), io::Error::other));
    }
    Ok(roots)
}

#[derive(Debug, thiserror::Error)]
#[error("no root certificates on this machine")]
struct NoRoots;

/// Returns the cryptography that the program has installed, or else the one that this crate was built with.
fn provider() -> Option<Arc<CryptoProvider>> {
    CryptoProvider::get_default().cloned().or_else(built_in)
}

#[cfg(feature = "aws-lc-rs")]
fn built_in() -> Option<Arc<CryptoProvider>> {
    Some(Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider()))
}

#[cfg(not(feature = "aws-lc-rs"))]
fn built_in() -> Option<Arc<CryptoProvider>> {
    None
}

fn configure(roots: RootCertStore) -> io::Result<Arc<ClientConfig>> {
    let provider = provider().ok_or_else(|| io::Error::other(ConnectError::TlsProviderMissing))?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
