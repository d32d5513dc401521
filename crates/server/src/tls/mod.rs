//! TLS: the certificate, and what is agreed on with a client.
//!
//! Owns the configuration and the certificate in use, which can change at any time: `certificate` reads and
//! makes one, `watch` looks whether there is a new one. Whoever accepts connections does the handshake.

mod certificate;
mod error;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;

use ::aws_lc_rs::digest;
use anemone_ws::proto::handshake::base64;
use arc_swap::ArcSwap;
use certificate::{Digest, Files};
pub use error::TlsError;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
pub(crate) use watch::Watch;

/// HTTP/2 as it is called in the handshake (RFC 9113 section 3.2).
pub(crate) const ALPN_HTTP2: &[u8] = b"h2";
const ALPN_HTTP1: &[u8] = b"http/1.1";

/// The means to speak TLS: a certificate and its key. TLS 1.2 and 1.3; HTTP/2 for clients that
/// can, otherwise HTTP/1.1.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ServerConfig>,
    current: Arc<Current>,
    /// The files of the certificate, and the digest of what was there when it was read.
    files: Option<(Files, Digest)>,
}

impl Tls {
    /// The certificate in a PEM file, with its chain after it, and its private key in another (or the
    /// same). A running server looks at the files again every 2 s and takes over what is new; what
    /// cannot be used is logged and changes nothing.
    ///
    /// # Errors
    /// When a file cannot be read, does not hold what it should, or the key is another certificate's.
    pub fn from_files(
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Result<Self, TlsError> {
        let files = Files { certificate: certificate.into(), key: key.into() };
        let found = files.read()?;
        Self::new(found.parse(&files)?, Some((files, found.digest())))
    }

    /// A certificate for `localhost`, `127.0.0.1` and `::1`, made now, signed by itself and kept in
    /// memory: for development. Nobody trusts it unless told to.
    ///
    /// # Errors
    /// When there are no random bytes.
    pub fn for_localhost() -> Result<Self, TlsError> {
        Self::new(certificate::for_localhost()?, None)
    }

    fn new(certificate: CertifiedKey, files: Option<(Files, Digest)>) -> Result<Self, TlsError> {
        let current = Arc::new(Current(ArcSwap::from_pointee(certificate)));
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::<Current>::clone(&current));
        config.alpn_protocols = vec![ALPN_HTTP2.to_vec(), ALPN_HTTP1.to_vec()];
        // A client that comes back brings its session along, so none is kept for it here.
        config.ticketer = aws_lc_rs::Ticketer::new()?;
        Ok(Self { config: Arc::new(config), current, files })
    }

    /// SHA-256 of the certificate in use, as browsers and `openssl x509 -fingerprint` show it.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let certificate = self.current.0.load();
        let Some(certificate) = certificate.cert.first() else { return String::new() };
        let digest = digest::digest(&digest::SHA256, certificate);
        digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
    }

    /// SHA-256 of the public key in use, in base64, as `curl --pinnedpubkey` takes it after `sha256//`
    /// and Chromium's `--ignore-certificate-errors-spki-list` as it is.
    #[must_use]
    pub fn public_key_pin(&self) -> String {
        let certificate = self.current.0.load();
        let Some(public_key) = certificate.key.public_key() else { return String::new() };
        base64(digest::digest(&digest::SHA256, &public_key).as_ref())
    }

    /// The certificate in use as PEM (RFC 7468), without its chain and its key.
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

/// The certificate in use.
#[derive(Debug)]
struct Current(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

#[cfg(test)]
mod tests;
