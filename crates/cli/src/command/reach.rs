//! The options of a connection to a server: header fields, trust and timeouts, for all client commands.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anemone_client::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use anemone_client::rustls::crypto::{
    CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
};
use anemone_client::rustls::pki_types::pem::{self, PemObject as _};
use anemone_client::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use anemone_client::rustls::{
    self, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use anemone_client::{Error, Publisher, Subscribe, Timeouts, Topics};
use anemone_lab::doctor::Way;
use anemone_sources::without_mark;

use super::Unfit;
use crate::args;

/// An error of `--ca` or `--insecure`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustError {
    #[error("--ca: cannot read {} as PEM", path.display())]
    Unreadable { path: PathBuf, source: pem::Error },
    #[error("--ca: {} contains no certificate: expected PEM, -----BEGIN CERTIFICATE-----", path.display())]
    Empty { path: PathBuf },
    #[error("--ca: a certificate in {} cannot be trusted", path.display())]
    Bad { path: PathBuf, source: rustls::Error },
    #[error("{flag} needs TLS, which {scheme} does not have: omit the flag or use https://")]
    WithoutTls { flag: &'static str, scheme: &'static str },
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
}

/// A client that takes the options of [`args::Reach`].
pub(crate) trait ReachOptions: Sized {
    fn header(self, name: String, value: String) -> Self;
    fn tls(self, config: Arc<ClientConfig>) -> Self;
    fn timeouts(self, timeouts: Timeouts) -> Self;
}

macro_rules! client {
    ($($name:ty),*) => {$(
        impl ReachOptions for $name {
            fn header(self, name: String, value: String) -> Self {
                self.header(name, value)
            }

            fn tls(self, config: Arc<ClientConfig>) -> Self {
                self.tls(config)
            }

            fn timeouts(self, timeouts: Timeouts) -> Self {
                self.timeouts(timeouts)
            }
        }
    )*};
}

client!(anemone_client::Client, Publisher, Subscribe, Topics);

impl ReachOptions for Way {
    fn header(self, name: String, value: String) -> Self {
        self.header(name, value)
    }

    fn tls(self, config: Arc<ClientConfig>) -> Self {
        self.tls(config)
    }

    fn timeouts(self, timeouts: Timeouts) -> Self {
        self.timeout(timeouts.connect + timeouts.answer)
    }
}

impl args::Reach {
    /// Returns the client of `url` with these options.
    ///
    /// # Errors
    /// When the TLS options are invalid, or the URL has no TLS: somebody who names a certificate believes that the
    /// connection is secure.
    pub(crate) fn apply<C: ReachOptions>(&self, url: &str, client: C) -> Result<C, TrustError> {
        let field =
            |client: C, field: &args::Field| client.header(field.name.clone(), field.value.clone());
        let mut client = self.fields.iter().fold(client, field);
        if let Some(config) = self.tls()? {
            if let Some(scheme) = without_tls(url) {
                let flag = if self.insecure { "--insecure" } else { "--ca" };
                return Err(TrustError::WithoutTls { flag, scheme });
            }
            client = client.tls(Arc::new(config));
        }
        if let Some(timeout) = self.timeout {
            // Connecting and the answer share this time.
            let (connect, answer) = (timeout, Duration::ZERO);
            client = client.timeouts(Timeouts { connect, answer, ..Timeouts::default() });
        }
        Ok(client)
    }

    /// Returns the TLS configuration; `None` for the default.
    fn tls(&self) -> Result<Option<ClientConfig>, TrustError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        Ok(match &self.ca {
            Some(path) => Some(builder.with_root_certificates(roots(path)?).with_no_client_auth()),
            None if self.insecure => {
                let trust = Arc::new(TrustAny(provider));
                let builder = builder.dangerous().with_custom_certificate_verifier(trust);
                Some(builder.with_no_client_auth())
            }
            None => None,
        })
    }
}

/// Returns the scheme of a URL, if it is one without TLS.
fn without_tls(url: &str) -> Option<&'static str> {
    let begins = |scheme: &str| {
        url.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    };
    ["http://", "ws://", "tcp://", "unix:"].into_iter().find(|scheme| begins(scheme))
}

fn roots(path: &Path) -> Result<RootCertStore, TrustError> {
    let unreadable = |source| TrustError::Unreadable { path: path.to_owned(), source };
    let mut roots = RootCertStore::empty();
    let file = std::fs::read(path).map_err(|error| unreadable(pem::Error::Io(error)))?;
    for certificate in CertificateDer::pem_slice_iter(without_mark(&file)) {
        let added = roots.add(certificate.map_err(unreadable)?);
        added.map_err(|source| TrustError::Bad { path: path.to_owned(), source })?;
    }
    match roots.is_empty() {
        true => Err(TrustError::Empty { path: path.to_owned() }),
        false => Ok(roots),
    }
}

/// Returns advice about an error, if it is not obvious.
pub(crate) fn advice(error: &anyhow::Error) -> Option<&'static str> {
    let is_about_certificate = error.downcast_ref().is_some_and(Error::is_about_certificate)
        || matches!(error.downcast_ref(), Some(Unfit::Untrusted));
    is_about_certificate.then_some(
        "--ca FILE trusts the certificates in FILE (serve --tls-dev --tls-dev-cert FILE writes the server's); \
         --insecure trusts any certificate",
    )
}

#[derive(Debug)]
struct TrustAny(Arc<CryptoProvider>);

impl ServerCertVerifier for TrustAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
