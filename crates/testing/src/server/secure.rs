//! A server with TLS, and ways to connect to it.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anemone_hub::Retention;
use anemone_server::{Options, Tls};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::Fixture;

/// A server with a certificate in files, and clients that trust it.
pub struct Secure {
    pub fixture: Fixture,
    pub folder: TempDir,
}

impl Secure {
    pub fn start() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        make_certificate(folder.path());
        let [certificate, key] =
            ["certificate.pem", "key.pem"].map(|name| folder.path().join(name));
        let tls = Tls::from_files(certificate, key).unwrap();
        let fixture = Fixture::with(
            |options| {
                options.tls = Some(tls);
                options.limits.echo = Arc::default(); // messages of 16 MiB
                change(options);
            },
            Retention::default(),
        );
        Self { fixture, folder }
    }

    /// Connects, and trusts only the present certificate in the file.
    pub async fn connect(&self, alpn: &[&str]) -> io::Result<TlsStream<TcpStream>> {
        connect(self.fixture.address, self.folder.path(), alpn).await
    }
}

/// Connects to a server, and trusts only the certificate in this folder.
pub async fn connect(
    address: SocketAddr,
    folder: &Path,
    alpn: &[&str],
) -> io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(trusting(folder, alpn)).connect(name, stream).await
}

/// The configuration of a client that trusts only the certificate in this folder.
pub fn trusting(folder: &Path, alpn: &[&str]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_file(folder.join("certificate.pem"));
    roots.add(certificate.unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

/// Makes a certificate for localhost, and renames its files into place as a careful program does.
pub fn make_certificate(folder: &Path) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    for (name, text) in
        [("certificate.pem", made.cert.pem()), ("key.pem", made.signing_key.serialize_pem())]
    {
        fs::write(folder.join("new"), text).unwrap();
        fs::rename(folder.join("new"), folder.join(name)).unwrap();
    }
}
