//! TLS: its configuration and its certificate.
//!
//! The certificate can change at any time: `certificate` reads or creates one, and `watch` checks for a new one. The
//! code that accepts connections does the handshake.

mod certificate;
mod error;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;

use ::aws_lc_rs::digest;
use anemone_ws::proto::handshake::base64;
use arc_swap::ArcSwap;
use certificate::{Digest, PemFiles};
pub use error::TlsError;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
pub(crate) use watch::Watch;

/// The name of HTTP/2 in the handshake (RFC 9113 section 3.2).
pub(crate) const ALPN_HTTP2: &[u8] = b"h2";
const ALPN_HTTP1: &[u8] = b"http/1.1";

/// A TLS configuration: a certificate and its key, TLS 1.2 and 1.3, and HTTP/2 for clients that support it, otherwise
/// HTTP/1.1.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ServerConfig>,
    current: Arc<Current>,
    /// The files of the certificate, and the digest of their contents when they were read.
    files: Option<(PemFiles, Digest)>,
}

impl Tls {
    /// Reads a certificate with its chain from a PEM file, and its private key from another (or the same). A running
    /// server checks the files every 2 s and uses new contents; invalid ones are logged and ignored.
    ///
    /// # Errors
    /// When a file cannot be read or is invalid, or the key does not match the certificate.
    pub fn from_files(
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Result<Self, TlsError> {
        let files = PemFiles { certificate: certificate.into(), key: key.into() };
        let found = files.read()?;
        Self::new(found.parse(&files)?, Some((files, found.digest())))
    }

    /// Creates a self-signed certificate for `localhost`, `127.0.0.1` and `::1` in memory, for development. Clients
    /// do not trust it by default.
    ///
    /// # Errors
    /// When there are no random bytes.
    pub fn for_localhost() -> Result<Self, TlsError> {
        Self::new(certificate::for_localhost()?, None)
    }

    fn new(certificate: CertifiedKey, files: Option<(PemFiles, Digest)>) -> Result<Self, TlsError> {
        let current = Arc::new(Current(ArcSwap::from_pointee(certificate)));
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::<Current>::clone(&current));
        config.alpn_protocols = vec![ALPN_HTTP2.to_vec(), ALPN_HTTP1.to_vec()];
        // A returning client brings its session, so none are stored here.
        config.ticketer = aws_lc_rs::Ticketer::new()?;
        Ok(Self { config: Arc::new(config), current, files })
    }

    /// Returns the SHA-256 of the current certificate, as browsers and `openssl x509 -fingerprint` show it.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let certificate = self.current.0.load();
        let Some(certificate) = certificate.cert.first() else { return String::new() };
        let digest = digest::digest(&digest::SHA256, certificate);
        digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
    }

    /// Returns the SHA-256 of the current public key in base64, as in `curl --pinnedpubkey` after `sha256//`, and in
    /// Chromium's `--ignore-certificate-errors-spki-list`.
    #[must_use]
    pub fn public_key_pin(&self) -> String {
        let certificate = self.current.0.load();
        let Some(public_key) = certificate.key.public_key() else { return String::new() };
        base64(digest::digest(&digest::SHA256, &public_key).as_ref())
    }

    /// Returns the current certificate as PEM (RFC 7468), without its chain and its key.
    #[must_use]
    pub fn certificate_pem(&self) -> String {
        const LINE_BYTES: usize = 64;
        let certificate = self.current.0.load();
        let text = certificate.cert.first().map(|der| base64(der)).unwrap_or_default();
        let lines = text.as_bytes().chunks(LINE_BYTES).map(String::from_utf8_lossy);
        let lines: String = lines.map(|line| format!("{line}\n")).collect();
        format!("-----BEGIN CERTIFICATE-----\n{lines}-----END CERTIFICATE-----\n")
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}

#[derive(Debug)]
struct Current(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

#[cfg(test)]
mod tests;
