//! Messages that are taken in pieces.

use anemone_proto::MessageKind;
use futures_util::FutureExt;

use super::*;

/// A pair whose server takes pieces, and whose pipe holds a piece.
fn pair(config: Config) -> (Peer, WebSocket<DuplexStream>) {
    let (peer, server) = Peer::pair(config, READ_BYTES_MAX);
    (peer, server.with_pieces())
}

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

async fn next(server: &mut WebSocket<DuplexStream>) -> IncomingPiece {
    server.recv_piece().await.unwrap().unwrap()
}

/// The pieces up to the last of a message, put together.
async fn whole(server: &mut WebSocket<DuplexStream>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in 0.. {
        let piece = next(server).await;
        assert_eq!(piece.is_first, number == 0);
        assert!(piece.bytes.len() <= READ_BYTES_MAX);
        bytes.extend(piece.bytes);
        if piece.is_last {
            break;
        }
    }
    bytes
}

#[tokio::test(start_paused = true)]
async fn a_large_message_is_handed_out_while_it_comes() {
    let (mut peer, mut server) = pair(Config::default());
    let sent = payload(1 << 20);
    let (received, ()) = tokio::join!(whole(&mut server), peer.send(Message::Binary(&sent)));
    assert!(received == sent);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_came_whole_is_one_piece() {
    let (mut peer, mut server) = pair(Config::default());
    peer.send(Message::Text("one")).await;
    peer.send(Message::Binary(b"")).await;
    let piece = |kind, bytes: &[u8]| IncomingPiece {
        kind,
        bytes: bytes.to_vec(),
        is_first: true,
        is_last: true,
    };
    assert_eq!(next(&mut server).await, piece(MessageKind::Text, b"one"));
    assert_eq!(next(&mut server).await, piece(MessageKind::Binary, b""));
}

#[tokio::test(start_paused = true)]
async fn fragments_are_pieces_and_a_ping_between_them_is_answered() {
    // RFC 6455 section 5.4
    let (mut peer, mut server) = pair(Config::default());
    // "é" is cut in its middle.
    peer.stream.write_all(b"\x01\x81\0\0\0\0\xc3").await.unwrap();
    let first = next(&mut server).await;
    assert_eq!(
        (first.bytes.as_slice(), first.is_first, first.is_last),
        (&b"\xc3"[..], true, false)
    );
    peer.stream.write_all(b"\x89\x81\0\0\0\0p\x80\x81\0\0\0\0\xa9").await.unwrap();
    let last = next(&mut server).await;
    assert_eq!((last.bytes.as_slice(), last.is_first, last.is_last), (&b"\xa9"[..], false, true));
    assert_eq!(last.kind, MessageKind::Text);
    server.flush().await.unwrap();
    assert_eq!(peer.event().await, "Pong { payload: [112], round_trip: None }");
}

#[tokio::test(start_paused = true)]
async fn text_that_is_not_utf_8_ends_in_an_error_and_no_last_piece() {
    // section 8.1
    let (mut peer, mut server) = pair(Config::default());
    peer.stream.write_all(b"\x01\x81\0\0\0\0\xc3\x80\x81\0\0\0\0x").await.unwrap();
    assert!(!next(&mut server).await.is_last);
    drop(peer);
    let error = server.recv_piece().await.unwrap_err();
    assert!(matches!(error, Error::Protocol(ProtocolError::TextNotUtf8)), "{error:?}");
    assert_eq!(server.recv_piece().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn the_limit_on_messages_holds_for_pieces() {
    let config = Config { message_bytes_max: 2, ..Config::default() };
    for (second, is_fine) in [(&b"\x80\x81\0\0\0\0b"[..], true), (b"\x80\x82\0\0\0\0bc", false)] {
        let (mut peer, mut server) = pair(config.clone());
        peer.stream.write_all(b"\x02\x81\0\0\0\0a").await.unwrap();
        peer.stream.write_all(second).await.unwrap();
        drop(peer);
        assert!(next(&mut server).await.is_first);
        assert_eq!(server.recv_piece().await.is_ok(), is_fine);
    }
}

#[tokio::test(start_paused = true)]
async fn messages_can_still_be_received_whole() {
    let (mut peer, mut server) = pair(Config::default());
    let text = "é".repeat(50_000);
    let (received, ()) = tokio::join!(server.recv(), peer.send(Message::Text(&text)));
    assert!(received.unwrap() == Some(Incoming::from(text)));
}

#[tokio::test(start_paused = true)]
async fn what_an_abandoned_recv_has_collected_is_the_first_piece() {
    let (mut peer, mut server) = pair(Config::default());
    let sent = payload(50_000);
    peer.stream.write_all(b"\x02\x83\0\0\0\0abc").await.unwrap();
    assert!(server.recv().now_or_never().is_none());
    peer.stream.write_all(b"\x80\x81\0\0\0\0d").await.unwrap();
    assert_eq!(whole(&mut server).await, b"abcd");
    let (received, ()) = tokio::join!(whole(&mut server), peer.send(Message::Binary(&sent)));
    assert!(received == sent);
}

#[tokio::test(start_paused = true)]
async fn recv_passes_over_the_rest_of_a_message_begun_in_pieces() {
    let (mut peer, mut server) = pair(Config::default());
    peer.stream.write_all(b"\x02\x83\0\0\0\0abc").await.unwrap();
    assert_eq!(next(&mut server).await.bytes, b"abc");
    peer.stream.write_all(b"\x80\x81\0\0\0\0d").await.unwrap();
    peer.send(Message::Text("next")).await;
    assert_eq!(server.recv().await.unwrap(), Some(Incoming::Text("next".into())));
}

#[tokio::test(start_paused = true)]
async fn a_half_takes_pieces_too() {
    let (mut peer, server) = pair(Config::default());
    let (_sending, mut receiving) = server.split();
    let sent = payload(40_000);
    let collect = async {
        let mut bytes = Vec::new();
        while let Some(piece) = receiving.recv_piece().await.unwrap() {
            bytes.extend(piece.bytes);
            if piece.is_last {
                break;
            }
        }
        bytes
    };
    let (received, ()) = tokio::join!(collect, peer.send(Message::Binary(&sent)));
    assert!(received == sent);
}
