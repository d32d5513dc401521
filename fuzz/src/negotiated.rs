//! Configurations, and connections whose handshake has agreed on compression.

use std::cell::Cell;

use anemone_proto::handshake::{ClientHandshake, Nonce, ServerHandshake};
use anemone_proto::{Codecs, CompressionLevel, DeflateConfig, NegotiatedDeflate, WindowBits};
use arbitrary::{Result, Unstructured};

thread_local! {
    static CODECS: Cell<Codecs> = const { Cell::new(Codecs::new()) };
}

/// Lends the codecs of this thread.
pub(crate) fn exchange(codecs: Codecs) -> Codecs {
    CODECS.replace(codecs)
}

/// Drops the codecs, so that each message creates its own.
pub(crate) fn forget(_: Codecs) -> Codecs {
    Codecs::new()
}

/// Has an input see nothing of the one before it.
pub(crate) fn reset_codecs() {
    drop(CODECS.take());
}

/// Any configuration of compression: two bytes.
pub(crate) fn deflate_config(u: &mut Unstructured<'_>) -> Result<DeflateConfig> {
    let [flags, windows]: [u8; 2] = u.arbitrary()?;
    let window = |bits: u8| WindowBits::new(15 - bits % 7).unwrap_or(WindowBits::MAX);
    Ok(DeflateConfig {
        own_context_takeover: flags & 1 != 0,
        peer_context_takeover: flags & 2 != 0,
        compress_bytes_min: if flags & 4 == 0 { 0 } else { 100 },
        level: CompressionLevel::new(1 + (flags >> 3) % 9).unwrap_or(CompressionLevel::FASTEST),
        own_window_bits: window(windows & 0x0f),
        peer_window_bits: window(windows >> 4),
    })
}

/// Negotiates between a client and a server with these configurations; returns the result of each.
pub(crate) fn negotiate(
    client: &DeflateConfig,
    server: &DeflateConfig,
) -> (NegotiatedDeflate, NegotiatedDeflate) {
    let mut opening = ClientHandshake::new(Nonce([7; 16]), &[]).with_deflate(client.clone());
    let mut accepting = ServerHandshake::default().with_deflate(server.clone());
    let request = opening.request("localhost", "/", &[]);
    let Ok(Some(answered)) = accepting.receive(request.as_bytes(), &[]) else {
        panic!("our own request is not accepted: {request}");
    };
    let response = answered.response.head();
    let Ok(Some(established)) = opening.receive(response.as_bytes()) else {
        panic!("our own response is not accepted: {response}");
    };
    let (Some(for_client), Some(for_server)) = (established.deflate, answered.response.deflate)
    else {
        panic!("two ends of ours do not agree on compression: {request}{response}");
    };
    assert_eq!(for_client.to_string(), for_server.to_string());
    // An end that keeps a compressor needs a peer that keeps an inflater.
    assert!(!for_client.own_context_takeover() || for_server.peer_context_takeover());
    assert!(!for_server.own_context_takeover() || for_client.peer_context_takeover());
    (for_client, for_server)
}
