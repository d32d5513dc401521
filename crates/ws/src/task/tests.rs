use std::time::Duration;

use anemone_proto::{CloseCode, MaskKey, ProtocolError};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;

/// A client made of the same state machine, over the other end of a pipe.
struct Peer {
    stream: DuplexStream,
    connection: Connection,
}

impl Peer {
    fn pair(config: Config, pipe_bytes: usize) -> (Self, WebSocket<DuplexStream>) {
        let (ours, theirs) = duplex(pipe_bytes);
        let connection =
            Connection::client(Arc::default(), Time::ZERO, Box::new(|| MaskKey([9, 8, 7, 6])));
        let server = WebSocket::server(theirs, Arc::new(config), Vec::new());
        (Self { stream: ours, connection }, server)
    }

    async fn send(&mut self, message: Message<'_>) {
        self.connection.sender().send(message).unwrap();
        self.flush().await;
    }

    async fn flush(&mut self) {
        let bytes = self.connection.sender().transmit().to_vec();
        self.connection.sender().transmitted(bytes.len());
        self.stream.write_all(&bytes).await.unwrap();
    }

    /// The next event, as text.
    async fn event(&mut self) -> String {
        let mut byte = [0];
        loop {
            if self.stream.read(&mut byte).await.unwrap() == 0 {
                return "end of stream".into();
            }
            let event = self.connection.receive(Time::ZERO, &mut byte).event;
            if let Some(text) = event.map(|event| format!("{event:?}")) {
                self.flush().await;
                return text;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn messages_arrive_and_answers_leave() {
    let (mut peer, mut server) = Peer::pair(Config::default(), 1 << 16);
    peer.send(Message::Text("one")).await;
    peer.send(Message::Binary(b"two")).await;
    assert_eq!(server.recv().await.unwrap(), Some(Incoming::Text("one".into())));
    assert_eq!(server.recv().await.unwrap(), Some(Incoming::Binary(b"two".to_vec())));
    server.sender().send(Message::Text("three")).unwrap();
    let (event, _) =
        tokio::join!(peer.event(), tokio::time::timeout(Duration::from_secs(1), server.recv()));
    assert_eq!(event, r#"Message(Text("three"))"#);
}

#[tokio::test(start_paused = true)]
async fn a_closing_handshake_ends_both_streams() {
    let (mut peer, mut server) = Peer::pair(Config::default(), 1 << 16);
    peer.connection.sender().close(Some(&CloseFrame::new(CloseCode::NORMAL, "bye"))).unwrap();
    peer.flush().await;
    let client = async {
        assert!(peer.event().await.starts_with("Close(Some"));
        assert_eq!(peer.event().await, "end of stream");
        drop(peer);
    };
    let (received, ()) = tokio::join!(server.recv(), client);
    assert_eq!(received.unwrap(), None);
    assert_eq!(server.recv().await.unwrap(), None, "and it stays ended");
}

#[tokio::test(start_paused = true)]
async fn a_violation_is_told_to_both_sides() {
    let (mut peer, mut server) = Peer::pair(Config::default(), 1 << 16);
    peer.stream.write_all(&[0x81, 0x01, b'x']).await.unwrap();
    let (received, event) = tokio::join!(server.recv(), async {
        let event = peer.event().await;
        drop(peer);
        event
    });
    assert!(matches!(received, Err(Error::Protocol(ProtocolError::MaskMissing))), "{received:?}");
    assert!(event.contains("CloseCode(1002)"), "{event}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_without_a_close_frame_is_lost() {
    let (peer, mut server) = Peer::pair(Config::default(), 1 << 16);
    drop(peer);
    assert!(matches!(server.recv().await, Err(Error::Lost(Lost::Ended))));
    assert!(matches!(server.recv().await, Ok(None)));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_peer_is_pinged_and_kept_when_it_answers() {
    let (mut peer, mut server) = Peer::pair(Config::default(), 1 << 16);
    let begun = Instant::now();
    let client = async {
        for _ in 0..5 {
            assert!(peer.event().await.starts_with("Ping"));
        }
        peer.send(Message::Text("still here")).await;
    };
    let (received, ()) = tokio::join!(server.recv(), client);
    assert_eq!(received.unwrap(), Some(Incoming::Text("still here".into())));
    assert_eq!(begun.elapsed().as_secs(), 100);
    assert!(server.round_trip().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_dead_peer_is_given_up_within_its_times() {
    let (_peer, mut server) = Peer::pair(Config::default(), 1 << 16);
    let begun = Instant::now();
    let received = server.recv().await;
    assert!(
        matches!(received, Err(Error::Protocol(ProtocolError::IdleTimeout { .. }))),
        "{received:?}"
    );
    assert_eq!(begun.elapsed().as_secs(), 65, "60 s idle time-out and 5 s close time-out");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_answer_a_close_frame_is_waited_for_so_long() {
    let (_peer, mut server) = Peer::pair(Config::default(), 1 << 16);
    let begun = Instant::now();
    server.sender().close(Some(&CloseFrame::new(CloseCode::GOING_AWAY, ""))).unwrap();
    assert!(matches!(server.recv().await, Ok(None)));
    assert_eq!(
        begun.elapsed().as_secs(),
        10,
        "5 s for its close frame, 5 s for the end of its stream"
    );
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_sends_and_never_reads_is_held_back_and_given_up() {
    let (mut peer, mut server) = Peer::pair(Config::default(), 4096);
    let flood = async {
        let ping = [&[0x89, 0xfd, 0, 0, 0, 0][..], &[7; 125]].concat();
        let mut sent = 0_usize;
        while peer.stream.write_all(&ping).await.is_ok() {
            sent += ping.len();
        }
        sent
    };
    let server = async {
        let received = server.recv().await;
        let queued = server.sender().queued_bytes();
        drop(server);
        (received, queued)
    };
    let (sent, (received, queued)) = tokio::join!(flood, server);
    assert!(
        matches!(received, Err(Error::Protocol(ProtocolError::IdleTimeout { .. }))),
        "{received:?}"
    );
    assert!(queued <= HIGH_MARK_BYTES + READ_BYTES_MAX, "{queued} bytes queued");
    assert!(
        sent <= HIGH_MARK_BYTES + 2 * READ_BYTES_MAX + 3 * 4096,
        "{sent} bytes taken from the peer"
    );
}

#[tokio::test(start_paused = true)]
async fn a_sender_learns_when_a_stuck_output_has_drained() {
    let (mut peer, mut server) = Peer::pair(Config::default(), 1024);
    server.sender().send(Message::Binary(&[7; 200_000])).unwrap();
    let (turn, event) = tokio::join!(server.turn(), peer.event());
    assert_eq!(turn.unwrap(), Turn::Drained);
    assert!(event.starts_with("Message(Binary"));
    assert_eq!(server.sender().queued_bytes(), 0);
}
