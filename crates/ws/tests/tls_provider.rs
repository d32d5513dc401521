//! The cryptography of `wss://` is the caller's, else the program's, else our own.
//!
//! One test, since an installed provider applies to the whole process.
#![cfg(feature = "aws-lc-rs")]
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use anemone_ws::{Connect, ConnectError, Step};
use tokio::net::TcpListener;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::crypto::aws_lc_rs::{self, cipher_suite};
use tokio_rustls::rustls::server::Acceptor;
use tokio_rustls::rustls::{CipherSuite, ClientConfig, RootCertStore, SupportedCipherSuite};

async fn offered(configure: impl FnOnce(Connect) -> Connect) -> Vec<CipherSuite> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let connect = configure(Connect::new(format!("wss://{}/", listener.local_addr().unwrap())));
    let server = async {
        let (stream, _) = listener.accept().await.unwrap();
        let hello = LazyConfigAcceptor::new(Acceptor::default(), stream).await.unwrap();
        hello.client_hello().cipher_suites().to_vec()
    };
    let (offered, connected) = tokio::join!(server, connect.connect());
    let refused = connected.unwrap_err();
    assert!(matches!(refused, ConnectError::Stream { step: Step::Tls, .. }), "{refused:?}");
    // A value that only means that secure renegotiation is supported.
    offered
        .into_iter()
        .filter(|suite| *suite != CipherSuite::TLS_EMPTY_RENEGOTIATION_INFO_SCSV)
        .collect()
}

fn only(suite: SupportedCipherSuite) -> CryptoProvider {
    CryptoProvider { cipher_suites: vec![suite], ..aws_lc_rs::default_provider() }
}

#[tokio::test]
async fn the_cryptography_is_the_callers_or_the_programs() {
    only(cipher_suite::TLS13_CHACHA20_POLY1305_SHA256).install_default().unwrap();
    let of_program = offered(|connect| connect).await;
    assert_eq!(of_program, [CipherSuite::TLS13_CHACHA20_POLY1305_SHA256]);

    let provider = Arc::new(only(cipher_suite::TLS13_AES_128_GCM_SHA256));
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let of_caller = offered(|connect| connect.tls(Arc::new(config))).await;
    assert_eq!(of_caller, [CipherSuite::TLS13_AES_128_GCM_SHA256]);
}
