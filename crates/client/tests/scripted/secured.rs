//! TLS: a certificate that is not trusted does not get better.

use std::sync::Arc;

use anemone_client::rustls::crypto::aws_lc_rs;
use anemone_client::rustls::pki_types::PrivateKeyDer;
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

#[tokio::test]
async fn a_server_without_tls_is_one_too() {
    let fake = Fake::start(|_, mut conn| conn.answer("400 Bad Request", "", ""));
    let (_, client) = configs(true);
    let error = subscribe(&fake, client).start().unwrap().next().await.unwrap_err();
    assert!(error.is_permanent(), "{error}");
}
