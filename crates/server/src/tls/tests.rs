use std::fs;
use std::io::ErrorKind;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, duplex};
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection};

use super::watch::Watcher;
use super::*;
use crate::socket::write_deadline::WriteDeadline;

/// A client that trusts the certificate in use.
fn client(tls: &Tls) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(tls.current.0.load().cert[0].clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

/// Returns true if a client that trusts the present certificate connects to a server of this name.
fn is_trusted_as(tls: &Tls, name: &str) -> bool {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(client(tls), name).unwrap();
    let mut server = ServerConnection::new(Arc::clone(&tls.config)).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut &*wire).unwrap();
        if server.process_new_packets().is_err() {
            return false;
        }
        wire.clear();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut &*wire).unwrap();
        if client.process_new_packets().is_err() {
            return false;
        }
    }
    true
}

#[test]
fn the_development_certificate_is_for_this_machine_only() {
    let tls = Tls::for_localhost().unwrap();
    for name in ["localhost", "127.0.0.1", "::1"] {
        assert!(is_trusted_as(&tls, name), "{name}");
    }
    for name in ["example.com", "127.0.0.2"] {
        assert!(!is_trusted_as(&tls, name), "{name}");
    }
    let other = Tls::for_localhost().unwrap();
    assert_ne!(tls.fingerprint(), other.fingerprint(), "each has a key of its own");
    assert_eq!(tls.fingerprint().len(), 32 * 3 - 1);
    assert_eq!(tls.public_key_pin().len(), 44);
}

#[tokio::test(start_paused = true)]
async fn what_a_session_has_taken_and_not_written_is_given_up_in_time() {
    let tls = Tls::for_localhost().unwrap();
    let timeout = Duration::from_secs(30);
    let (wire, server) = duplex(4096);
    let connector = TlsConnector::from(client(&tls));
    let (client, server) = tokio::join!(
        connector.connect(ServerName::try_from("localhost").unwrap(), wire),
        tls.acceptor().accept(WriteDeadline::new(server, timeout, &anemone_ws::Memory::default()))
    );
    let (_client, mut server) = (client.unwrap(), server.unwrap());
    let begun = Instant::now();
    server.write_all(&[0; 20_000]).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO, "a session takes more than the socket does");
    assert_eq!(server.flush().await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(begun.elapsed(), timeout);
    assert_eq!(server.shutdown().await.unwrap_err().kind(), ErrorKind::TimedOut);
}

/// A folder of its own, removed when dropped.
struct Folder(tempfile::TempDir);

impl Folder {
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// A new certificate and its key.
    fn pair(&self, name: &str) -> (PathBuf, PathBuf) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = self.write(&format!("{name}.pem"), &made.cert.pem());
        (certificate, self.write(&format!("{name}.key"), &made.signing_key.serialize_pem()))
    }
}

#[test]
fn a_new_certificate_is_taken_over_and_a_broken_one_is_not() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let (certificate, key) = folder.pair("one");
    let tls = Tls::from_files(&certificate, &key).unwrap();
    let mut watcher = Watcher::new(&tls).unwrap();
    let first = tls.fingerprint();
    watcher.check();
    assert_eq!((tls.fingerprint(), watcher.complaint()), (first.clone(), None));

    let (new_certificate, new_key) = folder.pair("new");
    fs::rename(new_certificate, &certificate).unwrap();
    watcher.check();
    assert_eq!(tls.fingerprint(), first, "half of a pair");
    assert!(watcher.complaint().unwrap().contains("does not match"));
    fs::rename(new_key, &key).unwrap();
    watcher.check();
    assert_ne!(tls.fingerprint(), first);
    assert_eq!(watcher.complaint(), None);

    let second = tls.fingerprint();
    fs::remove_file(&key).unwrap();
    watcher.check();
    assert!(watcher.complaint().unwrap().contains("cannot read"));
    folder.write("one.pem", "");
    folder.write("one.key", "");
    watcher.check();
    assert!(watcher.complaint().unwrap().contains("no certificate"));
    assert_eq!(tls.fingerprint(), second);
    assert!(is_trusted_as(&tls, "localhost"));
    folder.pair("one");
    watcher.check();
    assert_ne!(tls.fingerprint(), second);
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_name() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let write = |name: &str, text: &str| folder.write(name, text);
    let ((certificate, key), (_, other_key)) = (folder.pair("one"), folder.pair("other"));
    let empty = write("empty", "");
    let text = write("text", "no block at all\n");
    let cut = write("cut", "-----BEGIN CERTIFICATE-----\nMIIB\n");
    let junk = write("junk", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let junk_key =
        write("junk.key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    let big = write("big", &"x".repeat((1 << 20) + 1));
    let missing = folder.0.path().join("missing");

    assert!(Tls::from_files(&certificate, &key).is_ok());
    for (certificate, key, part, named) in [
        (&missing, &key, "cannot read", "missing"),
        (&certificate, &missing, "cannot read", "missing"),
        (&empty, &key, "contains no certificate", "empty"),
        (&text, &key, "contains no certificate", "text"),
        (&key, &key, "contains no certificate", "one.key"),
        (&certificate, &empty, "contains no private key", "empty"),
        (&certificate, &certificate, "contains no private key", "one.pem"),
        (&cut, &key, "not valid PEM", "cut"),
        (&junk, &key, "certificate in", "junk"),
        (&certificate, &junk_key, "private key in", "junk.key"),
        (&certificate, &other_key, "does not match", "other.key"),
        (&certificate, &other_key, "does not match", "one.pem"),
        (&big, &key, "larger than 1048576 bytes", "big"),
    ] {
        let error = Tls::from_files(certificate, key).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert!(
            error.contains(&*folder.0.path().join(named).to_string_lossy()),
            "{named}: {error}"
        );
    }
}
