use std::time::Duration;

use anemone_proto::{CloseCode, MaskKey, Message, ProtocolError, Time};
use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::Instant;

use super::driver::{HIGH_MARK_BYTES, READ_BYTES_MAX};
use super::*;
use crate::Lost;

mod fragments;

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
    assert_eq!(server.recv().await.unwrap(), Some(Incoming::Binary(b"two".as_slice().into())));
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
async fn a_peer_amid_a_message_too_big_can_send_all_of_it_before_it_looks() {
    let (mut peer, mut server) = Peer::pair(Config::default(), 1 << 16);
    let client = async {
        peer.send(Message::Binary(&vec![0; (16 << 20) + 1])).await;
        let event = peer.event().await;
        drop(peer);
        event
    };
    let (received, event) = tokio::join!(server.recv(), client);
    let Err(Error::Protocol(ProtocolError::FrameTooBig { .. })) = received else {
        panic!("{received:?}");
    };
    assert!(event.contains("CloseCode(1009)"), "{event}");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_sends_on_after_the_end_is_cut_off_in_time() {
    let (mut peer, mut server) = Peer::pair(Config::default(), 1 << 16);
    peer.stream.write_all(&[0x81, 0x01, b'x']).await.unwrap();
    let begun = Instant::now();
    let client = async {
        while peer.stream.write_all(&[0; 4096]).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let (received, ()) = tokio::join!(
        async {
            let received = server.recv().await;
            drop(server);
            received
        },
        client
    );
    assert!(matches!(received, Err(Error::Protocol(ProtocolError::MaskMissing))), "{received:?}");
    assert_eq!(begun.elapsed().as_secs(), 5, "the close time-out");
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
    let received = server.recv().await;
    assert!(matches!(received, Err(Error::Lost(Lost::CloseUnanswered { millis: 5000 }))));
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

/// Both ends over a pipe that holds this many bytes each way.
fn ends(pipe_bytes: usize) -> (WebSocket<DuplexStream>, WebSocket<DuplexStream>) {
    let (ours, theirs) = duplex(pipe_bytes);
    let client = WebSocket::client(ours, Arc::default(), Vec::new());
    (client, WebSocket::server(theirs, Arc::default(), Vec::new()))
}

async fn echo(mut socket: WebSocket<DuplexStream>) -> Result<(), Error> {
    while let Some(message) = socket.recv().await? {
        socket.send(message).await?;
    }
    Ok(())
}

fn text(text: &str) -> Incoming {
    Incoming::Text(text.into())
}

#[tokio::test(start_paused = true)]
async fn both_ends_send_receive_and_close_alike() {
    let (mut client, server) = ends(64);
    let server = tokio::spawn(echo(server));
    client.send("one").await.unwrap();
    client.send(b"two").await.unwrap();
    assert_eq!(client.recv().await.unwrap(), Some(text("one")));
    assert_eq!(client.recv().await.unwrap(), Some(Incoming::Binary(b"two".as_slice().into())));
    let bye = CloseFrame::new(CloseCode::NORMAL, "bye");
    client.close(Some(&bye)).await.unwrap();
    assert_eq!(client.close_frame().map(|frame| frame.code), Some(CloseCode::NORMAL));
    assert!(matches!(client.recv().await, Ok(None)));
    assert!(matches!(client.send("late").await, Err(Error::Closed)));
    client.flush().await.unwrap();
    client.close(None).await.unwrap();
    server.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_sender_waits_for_room_and_a_send_given_up_sends_nothing() {
    let (mut client, mut server) = ends(1024);
    let message = vec![7; 40_000];
    let mut sent = 0;
    // The last of these is dropped while it waits.
    while let Ok(done) =
        tokio::time::timeout(Duration::from_secs(1), client.send(message.as_slice())).await
    {
        done.unwrap();
        sent += 1;
    }
    assert_eq!(sent, 2, "one below the mark, one that passes it");
    client.sender().close(None).unwrap();
    let receive = async {
        let mut received = 0;
        while server.recv().await.unwrap().is_some() {
            received += 1;
        }
        received
    };
    let (received, ended) = tokio::join!(receive, client.recv());
    assert_eq!(received, sent);
    assert!(matches!(ended, Ok(None)));
}

#[tokio::test(start_paused = true)]
async fn a_receive_given_up_loses_nothing() {
    let (mut client, mut server) = ends(3);
    let send = async {
        for _ in 0..50 {
            client.send("all of it").await.unwrap();
            client.flush().await.unwrap();
        }
        client
    };
    let receive = async {
        let mut received = 0;
        while received < 50 {
            tokio::select! {
                biased;
                message = server.recv() => {
                    assert_eq!(message.unwrap(), Some(text("all of it")));
                    received += 1;
                }
                () = tokio::task::yield_now() => {}
            }
        }
    };
    tokio::join!(send, receive);
}

#[tokio::test(start_paused = true)]
async fn two_ends_that_first_send_something_long_do_not_wait_for_each_other() {
    let (mut client, mut server) = ends(1024);
    let begun = Instant::now();
    let message = vec![7; 1 << 20];
    let exchange = async |socket: &mut WebSocket<_>| {
        socket.send(&message).await.unwrap();
        socket.send(&message).await.unwrap();
        for _ in 0..2 {
            assert_eq!(socket.recv().await.unwrap().unwrap().as_bytes(), message);
        }
        socket.flush().await.unwrap();
    };
    tokio::join!(exchange(&mut client), exchange(&mut server));
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_reads_slowly_is_not_taken_for_dead() {
    let (mut peer, mut server) = Peer::pair(Config::default(), 1024);
    server.send(vec![7; 20_000]).await.unwrap();
    let reader = async {
        let mut buffer = [0; 1024];
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_secs(50)).await;
            peer.stream.read_exact(&mut buffer).await.unwrap();
        }
        Instant::now()
    };
    let begun = Instant::now();
    let (lasted, received) = tokio::join!(reader, server.recv());
    assert_eq!((lasted - begun).as_secs(), 500);
    let Err(Error::Protocol(ProtocolError::IdleTimeout { .. })) = received else {
        panic!("{received:?}");
    };
    assert_eq!(begun.elapsed().as_secs(), 565, "60 s and 5 s after it has stopped");
}

#[tokio::test(start_paused = true)]
async fn a_wait_to_send_ends_when_the_peer_is_given_up() {
    let (_peer, mut server) = Peer::pair(Config::default(), 1024);
    // A long time without a receive, which is not the peer's fault.
    tokio::time::sleep(Duration::from_secs(600)).await;
    let begun = Instant::now();
    server.send(vec![7; 100_000]).await.unwrap();
    assert!(matches!(server.send("more").await, Err(Error::Closed)));
    assert_eq!(begun.elapsed().as_secs(), 60);
    let told = server.recv().await;
    assert!(matches!(told, Err(Error::Protocol(ProtocolError::IdleTimeout { .. }))), "{told:?}");
    assert!(matches!(server.recv().await, Ok(None)));
}

#[tokio::test(start_paused = true)]
async fn a_lost_stream_fails_the_next_send_and_tells_why() {
    let (mut client, server) = ends(1024);
    drop(server);
    client.send("into the void").await.unwrap();
    assert!(matches!(client.send("more").await, Err(Error::Closed)));
    assert!(matches!(client.recv().await, Err(Error::Lost(Lost::Io(_)))));
    assert!(matches!(client.close(None).await, Ok(())), "told once");
}

#[tokio::test(start_paused = true)]
async fn closing_throws_away_what_still_comes_and_says_when_nobody_answers() {
    let (mut peer, mut server) = Peer::pair(Config::default(), 1 << 16);
    peer.send(Message::Text("one")).await;
    peer.send(Message::Text("two")).await;
    let (closed, event) = tokio::join!(server.close(None), peer.event());
    assert_eq!(event, "Close(None)");
    drop(peer);
    assert!(closed.is_ok());
    assert!(matches!(server.recv().await, Ok(None)));

    let (_silent, mut server) = Peer::pair(Config::default(), 1 << 16);
    let closed = server.close(None).await;
    assert!(matches!(closed, Err(Error::Lost(Lost::CloseUnanswered { millis: 5000 }))));
}

#[tokio::test(start_paused = true)]
async fn a_client_lets_the_server_end_the_stream_first() {
    // RFC 6455 section 7.1.1
    let (ours, mut theirs) = duplex(1024);
    let mut client = WebSocket::client(ours, Arc::default(), vec![0x88, 0x00]);
    let server = async {
        let mut frame = [0; 6];
        theirs.read_exact(&mut frame).await.unwrap();
        assert_eq!(frame[..2], [0x88, 0x80]);
        let more = tokio::time::timeout(Duration::from_secs(1), theirs.read(&mut frame)).await;
        assert!(more.is_err(), "the client has not ended its side");
        theirs.shutdown().await.unwrap();
        assert_eq!(theirs.read(&mut frame).await.unwrap(), 0);
    };
    let (ended, ()) = tokio::join!(client.recv(), async {
        server.await;
    });
    assert!(matches!(ended, Ok(None)));
}

#[tokio::test(start_paused = true)]
async fn a_ping_of_our_own_measures_the_round_trip() {
    let (mut client, mut server) = ends(1024);
    client.ping().await.unwrap();
    let delayed = async {
        tokio::time::sleep(Duration::from_micros(1500)).await;
        // Long enough to answer, not to be pinged.
        let _ = tokio::time::timeout(Duration::from_secs(1), server.recv()).await;
        // An unsolicited pong, which must not count.
        server.sender().pong(b"12345678").unwrap();
        server.send("done").await.unwrap();
    };
    let (received, ()) = tokio::join!(client.recv(), delayed);
    assert_eq!(received.unwrap(), Some(text("done")));
    let measured = client.round_trip().unwrap();
    assert!((1500..3000).contains(&measured.as_micros()), "{measured:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pong_of_nobodys_ping_does_not_bring_an_old_measurement_back() {
    let (mut client, mut server) = ends(1024);
    // A keep-alive ping after 20 s, answered late.
    let late = async {
        tokio::time::sleep(Duration::from_millis(20_100)).await;
        let _ = tokio::time::timeout(Duration::from_millis(1), server.recv()).await;
        server.send("one").await.unwrap();
    };
    let (received, ()) = tokio::join!(client.recv(), late);
    assert_eq!(received.unwrap(), Some(text("one")));
    assert_eq!(client.round_trip().unwrap().as_millis(), 100);
    client.ping().await.unwrap();
    let _ = tokio::time::timeout(Duration::from_millis(1), server.recv()).await;
    server.sender().pong(b"12345678").unwrap();
    server.send("two").await.unwrap();
    assert_eq!(client.recv().await.unwrap(), Some(text("two")));
    assert!(client.round_trip().unwrap().as_millis() <= 1, "{:?}", client.round_trip());
}

#[tokio::test(start_paused = true)]
async fn a_peer_is_not_given_up_for_a_time_in_which_nothing_was_awaited() {
    let (mut client, server) = ends(1024);
    let server = tokio::spawn(echo(server));
    tokio::time::sleep(Duration::from_millis(500)).await;
    for seconds in [59, 61, 3600] {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        client.send("q").await.unwrap();
        assert_eq!(client.recv().await.unwrap(), Some(text("q")), "after {seconds} s");
    }
    client.close(None).await.unwrap();
    server.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn halves_work_in_tasks_of_their_own() {
    let (client, server) = ends(100);
    let server = tokio::spawn(echo(server));
    let (mut sender, mut receiver) = client.split();
    let sending = tokio::spawn(async move {
        for number in 0..2000 {
            sender.send(format!("message {number}")).await.unwrap();
        }
        sender.ping().await.unwrap();
        sender.flush().await.unwrap();
        sender
    });
    for number in 0..2000 {
        let message = receiver.recv().await.unwrap();
        assert_eq!(message, Some(text(&format!("message {number}"))));
    }
    let mut sender = sending.await.unwrap();
    let (closed, ended) = tokio::join!(sender.close(None), receiver.recv());
    assert!(closed.is_ok() && matches!(ended, Ok(None)), "{closed:?} {ended:?}");
    assert!(sender.round_trip().is_some());
    assert_eq!(receiver.close_frame(), None);
    server.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn halves_work_on_threads_of_their_own() {
    let (client, server) = ends(1000);
    let server = tokio::spawn(echo(server));
    let (mut sender, mut receiver) = client.split();
    let sending = tokio::spawn(async move {
        for number in 0..5000_u32 {
            sender.send(number.to_be_bytes()).await.unwrap();
        }
        sender.flush().await.unwrap();
    });
    let receiving = tokio::spawn(async move {
        for number in 0..5000_u32 {
            let message = receiver.recv().await.unwrap();
            assert_eq!(message, Some(number.to_be_bytes().to_vec().into()));
        }
    });
    sending.await.unwrap();
    receiving.await.unwrap();
    // Both halves are gone, and the stream with them.
    assert!(matches!(server.await.unwrap(), Err(Error::Lost(_))));
}

#[tokio::test(start_paused = true)]
async fn a_receiving_half_wakes_when_the_sending_half_closes() {
    let (client, _silent) = ends(1024);
    let (mut sender, mut receiver) = client.split();
    let receiving = tokio::spawn(async move { receiver.recv().await });
    tokio::task::yield_now().await;
    let begun = Instant::now();
    let closed = sender.close(None).await;
    let received = receiving.await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 10);
    // One of them gets the reason.
    assert!(closed.is_err() != received.is_err(), "{closed:?} {received:?}");
}

#[tokio::test(start_paused = true)]
async fn without_a_receiving_half_messages_are_thrown_away() {
    let (client, mut server) = ends(1024);
    let (mut sender, receiver) = client.split();
    for _ in 0..3 {
        server.send("unwanted").await.unwrap();
    }
    drop(receiver);
    let (closed, ended) = tokio::join!(sender.close(None), server.recv());
    assert!(closed.is_ok() && matches!(ended, Ok(None)), "{closed:?} {ended:?}");
}

#[tokio::test(start_paused = true)]
async fn streams_and_sinks_forward_with_backpressure_and_close() {
    let (client, server) = ends(1024);
    let echo = tokio::spawn(async move {
        let (sink, stream) = server.split();
        stream.forward(sink).await
    });
    let (mut sink, mut stream) = client.split();
    let payload = vec![7; 10_000];
    let feeding = async {
        for _ in 0..100 {
            sink.feed(payload.as_slice()).await.unwrap();
            assert!(sink.queued_bytes() < HIGH_MARK_BYTES + payload.len() + 14);
        }
        SinkExt::<&[u8]>::flush(&mut sink).await.unwrap();
    };
    let receiving = async {
        for _ in 0..100 {
            let message = stream.next().await.unwrap().unwrap();
            assert_eq!(message.as_bytes(), payload);
        }
    };
    tokio::join!(feeding, receiving);
    let (closed, ended) = tokio::join!(SinkExt::<&[u8]>::close(&mut sink), stream.next());
    closed.unwrap();
    assert!(ended.is_none());
    echo.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_whole_connection_is_a_stream_and_a_sink_too() {
    let (mut client, server) = ends(1024);
    let server = tokio::spawn(echo(server));
    SinkExt::send(&mut client, "one").await.unwrap();
    assert_eq!(client.next().await.unwrap().unwrap(), text("one"));
    SinkExt::<&str>::close(&mut client).await.unwrap();
    assert!(client.next().await.is_none());
    server.await.unwrap().unwrap();
}
