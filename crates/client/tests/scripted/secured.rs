//! TLS: a certificate that is not trusted does not get better.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anemone_client::rustls::crypto::aws_lc_rs;
use anemone_client::rustls::pki_types::PrivateKeyDer;
use anemone_client::rustls::server::{ClientHello, ResolvesServerCert};
use anemone_client::rustls::sign::CertifiedKey;
use anemone_client::rustls::{ClientConfig, RootCertStore, ServerConfig};
use anemone_client::{After, Error, Subscribe, Via};

use crate::fake::{Fake, Log};
use crate::{SOON, events, told};

/// A server's configuration, and that of a client that trusts it, or that trusts another one.
fn configs(is_trusted: bool) -> (ServerConfig, Arc<ClientConfig>) {
    let certified = || rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (own, other) = (certified(), certified());
    let provider = Arc::new(aws_lc_rs::default_provider());
    let trusted = if is_trusted { &own } else { &other };
    let mut roots = RootCertStore::empty();
    roots.add(trusted.cert.der().clone()).unwrap();
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (server, Arc::new(client))
}

fn subscribe(fake: &Fake, tls: Arc<ClientConfig>) -> Subscribe {
    let url = format!("https://{}/topics/x", fake.address());
    Subscribe::new(url).after(After::Earliest).retry(SOON).tls(tls)
}

#[tokio::test]
async fn transports_work_over_tls_and_break_there_too() {
    for via in [Via::WebSocket, Via::Sse, Via::LongPoll] {
        let (server, client) = configs(true);
        let fake = Fake::secured(server, move |number, conn| {
            Log::of(9).serve(via, &mut conn.cut_after(130 + 250 * number))
        });
        let mut told = told(&mut subscribe(&fake, client).via(via).start().unwrap(), 9).await;
        told.retain(|item| !item.starts_with("at"));
        assert_eq!(told, events(1..=9), "{via}");
    }
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_an_error_at_once() {
    let (server, client) = configs(false);
    let fake = Fake::secured(server, |_, mut conn| conn.wait());
    let error = subscribe(&fake, client).start().unwrap().next().await.unwrap_err();
    assert!(matches!(error, Error::Connect(_)) && error.is_permanent(), "{error}");
    assert_eq!(fake.connections(), 1);
}

/// A certificate that is trusted for the first connection and from the fifth on, and another one between.
#[derive(Debug)]
struct Intercepted {
    own: Arc<CertifiedKey>,
    other: Arc<CertifiedKey>,
    connections: AtomicUsize,
}

impl ResolvesServerCert for Intercepted {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let is_other = (1..4).contains(&self.connections.fetch_add(1, Ordering::SeqCst));
        Some(Arc::clone(if is_other { &self.other } else { &self.own }))
    }
}

#[tokio::test]
async fn a_network_that_shows_its_own_certificate_in_the_middle_is_waited_out() {
    for via in [Via::WebSocket, Via::Mux, Via::Sse, Via::Ndjson, Via::LongPoll, Via::Poll] {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let certified = || rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let (own, other) = (certified(), certified());
        let mut roots = RootCertStore::empty();
        roots.add(own.cert.der().clone()).unwrap();
        let key = |certified: &rcgen::CertifiedKey<rcgen::KeyPair>| {
            let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
            let chain = vec![certified.cert.der().clone()];
            Arc::new(CertifiedKey::from_der(chain, key, &provider).unwrap())
        };
        let connections = AtomicUsize::new(0);
        let resolver = Intercepted { own: key(&own), other: key(&other), connections };
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(resolver));
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let fake = Fake::secured(server, move |number, mut conn| {
            let last = if number == 0 { 2 } else { 4 };
            Log::of(last).serve_for(via, &mut conn, number > 0)
        });
        let mut subscription = subscribe(&fake, Arc::new(client)).via(via).start().unwrap();
        let mut told = told(&mut subscription, 4).await;
        told.retain(|item| !item.starts_with("at"));
        assert_eq!(told, events(1..=4), "{via}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_one_too() {
    let fake = Fake::start(|_, mut conn| conn.answer("400 Bad Request", "", ""));
    let (_, client) = configs(true);
    let error = subscribe(&fake, client).start().unwrap().next().await.unwrap_err();
    assert!(error.is_permanent(), "{error}");
}
