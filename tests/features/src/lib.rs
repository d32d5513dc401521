//! What a `wss://` URL is told where the program has not switched on all that it needs.
#![cfg(test)]

use anemone_ws::ConnectError;

#[cfg(not(feature = "tls"))]
#[tokio::test]
async fn without_the_feature_tls_is_refused() {
    let refused = anemone_ws::connect("wss://127.0.0.1:1/").await.unwrap_err();
    assert!(matches!(refused, ConnectError::TlsUnavailable), "{refused:?}");
}

#[cfg(all(feature = "tls", not(feature = "aws-lc-rs")))]
#[tokio::test]
async fn without_cryptography_nothing_is_connected() {
    let refused = anemone_ws::connect("wss://127.0.0.1:1/").await.unwrap_err();
    assert!(matches!(refused, ConnectError::TlsProviderMissing), "{refused:?}");
}
