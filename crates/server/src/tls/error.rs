//! The errors of a certificate.

use std::io;
use std::path::PathBuf;

use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::pem;

/// A certificate or key that cannot be used; names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is larger than any certificate.
    #[error("{} is larger than {limit} bytes", path.display())]
    TooBig {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// The file is not PEM, or a block of it is damaged.
    #[error("{} is not valid PEM", path.display())]
    NotPem {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: pem::Error,
    },
    /// The file has no certificate.
    #[error("{} contains no certificate: no block begins with -----BEGIN CERTIFICATE-----", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The file has no private key.
    #[error("{} contains no private key: no block begins with -----BEGIN PRIVATE KEY-----", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// The certificate is damaged, or of a kind that cannot be used.
    #[error("the first certificate in {} is not usable", path.display())]
    BadCertificate {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: rustls::Error,
    },
    /// The private key is damaged, or of a kind that cannot be used.
    #[error("the private key in {} is not usable", path.display())]
    BadKey {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: rustls::Error,
    },
    /// The key does not match the certificate.
    #[error(
        "the private key in {} does not match the first certificate in {}",
        key.display(),
        certificate.display()
    )]
    KeyMismatch {
        /// The file of the key.
        key: PathBuf,
        /// The file of the certificate.
        certificate: PathBuf,
    },
    /// The certificate could not be created.
    #[error("cannot create a certificate")]
    Generate(#[from] rcgen::Error),
    /// TLS could not be set up.
    #[error("cannot set up TLS")]
    Setup(#[from] rustls::Error),
}
