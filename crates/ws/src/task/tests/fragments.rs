//! Messages in fragments.

use super::*;

#[tokio::test(start_paused = true)]
async fn fragments_become_one_message_and_a_ping_between_them_is_answered() {
    // RFC 6455 section 5.4
    let (mut peer, mut server) = Peer::pair(Config::default(), READ_BYTES_MAX);
    // "é" is cut in its middle.
    peer.stream.write_all(b"\x01\x81\0\0\0\0\xc3").await.unwrap();
    assert!(server.recv().now_or_never().is_none());
    peer.stream.write_all(b"\x89\x81\0\0\0\0p\x80\x81\0\0\0\0\xa9").await.unwrap();
    assert_eq!(server.recv().await.unwrap(), Some(Incoming::Text("é".into())));
    server.flush().await.unwrap();
    assert_eq!(peer.event().await, "Pong { payload: [112], round_trip: None }");
}

#[tokio::test(start_paused = true)]
async fn a_text_larger_than_a_read_is_received_whole() {
    let (mut peer, mut server) = Peer::pair(Config::default(), READ_BYTES_MAX);
    let text = "é".repeat(50_000);
    let (received, ()) = tokio::join!(server.recv(), peer.send(Message::Text(&text)));
    assert!(received.unwrap() == Some(Incoming::from(text)));
}

#[tokio::test(start_paused = true)]
async fn the_limit_on_messages_holds_for_fragments() {
    let config = Config { message_bytes_max: 2, ..Config::default() };
    for (second, is_fine) in [(&b"\x80\x81\0\0\0\0b"[..], true), (b"\x80\x82\0\0\0\0bc", false)] {
        let (mut peer, mut server) = Peer::pair(config.clone(), READ_BYTES_MAX);
        peer.stream.write_all(b"\x02\x81\0\0\0\0a").await.unwrap();
        peer.stream.write_all(second).await.unwrap();
        drop(peer);
        assert_eq!(server.recv().await.is_ok(), is_fine);
    }
}

#[tokio::test(start_paused = true)]
async fn a_text_that_is_not_utf_8_ends_in_an_error() {
    // section 8.1
    let (mut peer, mut server) = Peer::pair(Config::default(), READ_BYTES_MAX);
    peer.stream.write_all(b"\x01\x81\0\0\0\0\xc3\x80\x81\0\0\0\0x").await.unwrap();
    drop(peer);
    let error = server.recv().await.unwrap_err();
    assert!(matches!(error, Error::Protocol(ProtocolError::TextNotUtf8)), "{error:?}");
    assert_eq!(server.recv().await.unwrap(), None);
}
