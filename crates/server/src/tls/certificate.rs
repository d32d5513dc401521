//! A certificate from two files, or one made for development.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ::aws_lc_rs::digest;
use anemone_wire::without_mark;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use tokio_rustls::rustls::Error;
use tokio_rustls::rustls::InconsistentKeys;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::CertifiedKey;

use super::TlsError;

const FILE_BYTES_MAX: u64 = 1 << 20;
const DAY: Duration = Duration::from_secs(24 * 3600);
/// The validity of a development certificate; some clients refuse more than 825 days.
const DEVELOPMENT_DAYS: u32 = 365;

#[derive(Clone, Debug)]
pub(super) struct PemFiles {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

/// The contents of these files.
pub(super) struct Found {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// The SHA-256 of both files, which shows if they have changed.
pub(super) type Digest = [u8; 32];

impl PemFiles {
    pub(super) fn read(&self) -> Result<Found, TlsError> {
        Ok(Found { certificate: read(&self.certificate)?, key: read(&self.key)? })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|source| TlsError::Unreadable { path: path.to_owned(), source })?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(TlsError::TooBig { path: path.to_owned(), limit: FILE_BYTES_MAX });
    }
    Ok(bytes)
}

impl Found {
    pub(super) fn digest(&self) -> Digest {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(&self.certificate.len().to_be_bytes());
        context.update(&self.certificate);
        context.update(&self.key);
        let mut digest = [0; 32];
        digest.copy_from_slice(context.finish().as_ref());
        digest
    }

    /// Parses the certificate with its chain and its key; errors name `files`.
    pub(super) fn parse(&self, files: &PemFiles) -> Result<CertifiedKey, TlsError> {
        let not_pem = |path: &Path| {
            let path = path.to_owned();
            |source| TlsError::NotPem { path, source }
        };
        let chain = CertificateDer::pem_slice_iter(without_mark(&self.certificate))
            .collect::<Result<Vec<_>, _>>()
            .map_err(not_pem(&files.certificate))?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate { path: files.certificate.clone() });
        }
        let key =
            PrivateKeyDer::from_pem_slice(without_mark(&self.key)).map_err(
                |error| match error {
                    pem::Error::NoItemsFound => TlsError::NoKey { path: files.key.clone() },
                    error => not_pem(&files.key)(error),
                },
            )?;
        let provider = aws_lc_rs::default_provider();
        let key = provider
            .key_provider
            .load_private_key(key)
            .map_err(|source| TlsError::BadKey { path: files.key.clone(), source })?;
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            Ok(()) => Ok(certified),
            Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                let PemFiles { certificate, key } = files.clone();
                Err(TlsError::KeyMismatch { key, certificate })
            }
            Err(source) => {
                Err(TlsError::BadCertificate { path: files.certificate.clone(), source })
            }
        }
    }
}

/// Creates a self-signed certificate for this machine's own names.
pub(super) fn for_localhost() -> Result<CertifiedKey, TlsError> {
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "Anemone development certificate");
    params.is_ca = IsCa::ExplicitNoCa;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    // Tolerates a clock that is a little behind.
    params.not_before = (SystemTime::now() - DAY).into();
    params.not_after = (SystemTime::now() + DAY * DEVELOPMENT_DAYS).into();
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let key = aws_lc_rs::default_provider().key_provider.load_private_key(key)?;
    Ok(CertifiedKey::new(vec![certificate.der().clone()], key))
}
