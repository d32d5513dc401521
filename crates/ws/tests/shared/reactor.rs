//! The loop with handlers of whole messages, over real sockets.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::time::Duration;

use anemone_testing::PATIENCE;
use anemone_ws::proto::{CloseCode, CloseFrame, Header, MaskKey, Message, Opcode, Output, Sender};
use anemone_ws::reactor::{Handler, Opening, Reactor, SendWaker, StreamHandler};
use anemone_ws::{Memory, Negotiated};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Builder;

/// Answers each message with itself, once it is whole.
struct Echo;

impl Handler for Echo {
    fn on_message(&mut self, message: Message<'_>, sender: &mut Sender) {
        sender.send(message).unwrap();
    }
}

/// Serves for as long as `client` runs with the address.
fn serve<T: Send + 'static>(
    accept: impl FnOnce(&Reactor) -> Box<dyn FnMut(TcpStream)>,
    client: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> T {
    let runtime = Builder::new_current_thread().enable_all().build_local(Default::default());
    runtime.unwrap().block_on(async {
        let reactor = Reactor::start(Memory::default()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        reactor.listen(listener, accept(&reactor));
        tokio::task::spawn_blocking(move || {
            let stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            client(stream)
        })
        .await
        .unwrap()
    })
}

fn frame(mask: Option<MaskKey>, opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Header { mask, ..Header::new(opcode, payload.len() as u64) }.encode(&mut bytes);
    let begin = bytes.len();
    bytes.extend_from_slice(payload);
    if let Some(key) = mask {
        key.apply(&mut bytes[begin..]);
    }
    bytes
}

#[test]
fn large_messages_are_collected_whole_whatever_follows_them() {
    let sizes = [300_000, 5, 1 << 20, 65_536, 0, 3 << 20, 70_001];
    let payloads: Vec<Vec<u8>> = sizes
        .iter()
        .map(|&len| (0..len).map(|i: usize| (i * 31 + i / 251) as u8).collect())
        .collect();
    let send: Vec<u8> = payloads
        .iter()
        .flat_map(|payload| frame(Some(MaskKey([9, 8, 7, 6])), Opcode::Binary, payload))
        .collect();
    let expected: Vec<u8> =
        payloads.iter().flat_map(|payload| frame(None, Opcode::Binary, payload)).collect();
    let len = expected.len();
    let reply = serve(
        |reactor| {
            let reactor = reactor.clone();
            Box::new(move |stream| reactor.adopt(stream, Negotiated::default(), Echo))
        },
        move |mut stream| {
            let mut writer = stream.try_clone().unwrap();
            let write = std::thread::spawn(move || writer.write_all(&send).unwrap());
            let mut reply = vec![0; len];
            stream.read_exact(&mut reply).unwrap();
            write.join().unwrap();
            reply
        },
    );
    assert!(reply == expected, "what came back differs");
}

/// Sends `first` and reads to the end, with an opening that waits `timeout` and decides by `decide`.
fn open(
    first: &'static [u8],
    timeout: Duration,
    decide: impl Fn(&[u8]) -> Opening + Clone + 'static,
) -> Vec<u8> {
    serve(
        move |reactor| {
            let reactor = reactor.clone();
            Box::new(move |stream| reactor.adopt_opening(stream, timeout, decide.clone()))
        },
        move |mut stream| {
            stream.write_all(first).unwrap();
            let mut reply = Vec::new();
            stream.read_to_end(&mut reply).unwrap();
            reply
        },
    )
}

#[test]
fn an_opening_becomes_a_websocket_that_begins_with_what_came_after_it() {
    let reply = open(b"hello\x88\x80\0\0\0\0", PATIENCE, |first| {
        let negotiated = Negotiated { first: first[5..].to_vec(), ..Negotiated::default() };
        Opening::web_socket(b"welcome".to_vec(), negotiated, Echo)
    });
    assert_eq!(reply, b"welcome\x88\x00");
}

#[test]
fn an_opening_can_leave_the_loop_with_its_stream() {
    let reply = open(b"hello", PATIENCE, |first| {
        let first = first.to_vec();
        Opening::elsewhere(move |mut stream| stream.write_all(&first).unwrap())
    });
    assert_eq!(reply, b"hello");
}

/// Sends each line back, until an empty one.
fn lines(bytes: &[u8]) -> Opening {
    match bytes.iter().position(|&byte| byte == b'\n') {
        Some(0) => Opening::refuse(b"bye".to_vec()),
        Some(end) => Opening::answered(end + 1, bytes[..=end].to_vec(), lines),
        None => Opening::more(100, lines),
    }
}

#[test]
fn an_opening_answers_request_by_request_however_they_are_cut() {
    let words = b"a\nbc\ndef\n\n";
    for len in 1..=words.len() {
        let reply = serve(
            |reactor| {
                let reactor = reactor.clone();
                Box::new(move |stream| reactor.adopt_opening(stream, PATIENCE, lines))
            },
            move |mut stream| {
                stream.set_nodelay(true).unwrap();
                for piece in words.chunks(len) {
                    stream.write_all(piece).unwrap();
                    std::thread::yield_now();
                }
                let mut reply = String::new();
                stream.read_to_string(&mut reply).unwrap();
                reply
            },
        );
        assert_eq!(reply, "a\nbc\ndef\nbye", "in pieces of {len}");
    }
    let many = serve(
        |reactor| {
            let reactor = reactor.clone();
            Box::new(move |stream| reactor.adopt_opening(stream, PATIENCE, lines))
        },
        |mut stream| {
            // More than one read takes, with lines across the reads.
            let words = "some words\n".repeat(100_000) + "\n";
            let mut writer = stream.try_clone().unwrap();
            let writing = std::thread::spawn(move || writer.write_all(words.as_bytes()));
            let mut reply = String::new();
            stream.read_to_string(&mut reply).unwrap();
            writing.join().unwrap().unwrap();
            reply
        },
    );
    assert!(many == "some words\n".repeat(100_000) + "bye", "what came back differs");
}

/// Waits for a line, within `bytes_max`, and sends it back.
fn line_within(bytes_max: usize) -> impl Fn(&[u8]) -> Opening + Clone + 'static {
    move |first| match first.split(|&byte| byte == b'\n').next() {
        Some(line) if line.len() < first.len() => Opening::refuse(line.to_vec()),
        _ => Opening::more(bytes_max, line_within(bytes_max)),
    }
}

/// Sends `first` byte by byte, each in its own packet, and reads to the end.
fn drip(first: &'static [u8], timeout: Duration, bytes_max: usize) -> Vec<u8> {
    serve(
        move |reactor| {
            let reactor = reactor.clone();
            let decide = line_within(bytes_max);
            Box::new(move |stream| reactor.adopt_opening(stream, timeout, decide.clone()))
        },
        move |mut stream| {
            stream.set_nodelay(true).unwrap();
            for byte in first {
                // One that is refused is not there for the rest.
                if stream.write_all(&[*byte]).is_err() {
                    break;
                }
                std::thread::yield_now();
            }
            let mut reply = Vec::new();
            match stream.read_to_end(&mut reply) {
                Ok(_) => reply,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Vec::new(),
                Err(error) => panic!("{error}"),
            }
        },
    )
}

#[test]
fn an_opening_in_pieces_is_decided_once_it_is_whole() {
    assert_eq!(drip(b"hello\n", PATIENCE, 100), b"hello");
    assert_eq!(open(b"hello\n", PATIENCE, line_within(100)), b"hello", "in one piece, too");
}

#[test]
fn an_opening_in_pieces_has_so_many_bytes_and_no_more() {
    // The last byte decides, and need not be kept.
    assert_eq!(drip(b"hello\n", PATIENCE, 5), b"hello");
    assert_eq!(drip(b"hello", PATIENCE, 4), b"");
    assert_eq!(open(b"hello", PATIENCE, line_within(4)), b"", "in one piece, too");
}

#[test]
fn an_opening_in_pieces_is_closed_in_the_time_that_it_has_from_its_beginning() {
    let begun = std::time::Instant::now();
    let timeout = Duration::from_millis(300);
    let reply = serve(
        move |reactor| {
            let reactor = reactor.clone();
            let decide = line_within(usize::MAX);
            Box::new(move |stream| reactor.adopt_opening(stream, timeout, decide.clone()))
        },
        |mut stream| {
            // Bytes that arrive meanwhile do not extend the time.
            let mut writer = stream.try_clone().unwrap();
            let dripping = std::thread::spawn(move || {
                while writer.write_all(b"x").is_ok() {
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
            let mut reply = Vec::new();
            let _ = stream.read_to_end(&mut reply); // ended or reset
            dripping.join().unwrap();
            reply
        },
    );
    assert_eq!(reply, b"");
    assert!(begun.elapsed() >= timeout, "not before");
}

#[test]
fn a_handshake_in_two_reads_becomes_a_websocket() {
    use anemone_ws::proto::handshake::{HANDSHAKE_BYTES_MAX, ServerHandshake};

    fn decide(first: &[u8]) -> Opening {
        match ServerHandshake::default().receive(first, &[]) {
            Ok(None) => Opening::more(HANDSHAKE_BYTES_MAX, decide),
            Ok(Some(answered)) => {
                let negotiated = Negotiated { first: answered.rest, ..Negotiated::default() };
                Opening::web_socket(answered.response.head().into_bytes(), negotiated, Echo)
            }
            Err(error) => Opening::refuse(ServerHandshake::refusal(&error).into_bytes()),
        }
    }
    let adopt = |reactor: &Reactor| -> Box<dyn FnMut(TcpStream)> {
        let reactor = reactor.clone();
        Box::new(move |stream| reactor.adopt_opening(stream, PATIENCE, decide))
    };
    let request = "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    for at in [1, 20, request.len() - 1] {
        let status = serve(adopt, move |mut stream| {
            stream.set_nodelay(true).unwrap();
            let (one, two) = request.split_at(at);
            stream.write_all(one.as_bytes()).unwrap();
            // The loop has read it when it answers a later client.
            let mut other = TcpStream::connect(stream.peer_addr().unwrap()).unwrap();
            other.write_all(b"nonsense\r\n\r\n").unwrap();
            let mut refusal = String::new();
            other.read_to_string(&mut refusal).unwrap();
            assert!(refusal.starts_with("HTTP/1.1 400 "), "{refusal}");
            let frames = [two.as_bytes(), b"\x81\x80\0\0\0\0\x88\x80\0\0\0\0"].concat();
            stream.write_all(&frames).unwrap();
            let mut reply = Vec::new();
            stream.read_to_end(&mut reply).unwrap();
            assert!(reply.ends_with(b"\r\n\r\n\x81\x00\x88\x00"), "{reply:?}");
            reply[..12].to_vec()
        });
        assert_eq!(status, b"HTTP/1.1 101", "cut at {at}");
    }
    // At the limit: a head of 16 KiB is accepted, a longer one refused.
    for (len, status) in [(HANDSHAKE_BYTES_MAX, "101"), (HANDSHAKE_BYTES_MAX + 1, "431")] {
        let reply = serve(adopt, move |mut stream| {
            let padding = "x".repeat(len - request.len() - "X: \r\n".len());
            let request = request.replace("\r\n\r\n", &format!("\r\nX: {padding}\r\n\r\n"));
            assert_eq!(request.len(), len);
            let (one, two) = request.split_at(len / 2);
            stream.write_all(one.as_bytes()).unwrap();
            stream.write_all(two.as_bytes()).unwrap();
            let mut reply = [0; 12];
            stream.read_exact(&mut reply).unwrap();
            String::from_utf8_lossy(&reply).into_owned()
        });
        assert!(reply.ends_with(status), "{len} bytes: {reply}");
    }
}

#[test]
fn an_opening_without_a_word_is_closed_in_time() {
    let reply = open(b"", Duration::from_millis(10), |_| unreachable!("nothing came"));
    assert_eq!(reply, b"");
}

/// Echoes messages, sends `ready` and `closed`, and ends after `end`.
#[derive(Default)]
struct Talker {
    waker: Option<SendWaker>,
    is_over: bool,
}

impl StreamHandler for Talker {
    fn on_open(&mut self, waker: SendWaker) {
        self.waker = Some(waker);
    }

    fn on_bytes(&mut self, bytes: &[u8], output: &mut Output) -> usize {
        output.extend_from_slice(bytes);
        if bytes.ends_with(b"wake") {
            self.waker.iter().for_each(SendWaker::wake);
        }
        self.is_over |= bytes.windows(3).any(|word| word == b"end");
        bytes.len()
    }

    fn on_ready(&mut self, output: &mut Output) {
        output.extend_from_slice(b" ready");
    }

    fn on_close(&mut self, output: &mut Output) {
        output.extend_from_slice(b" closed");
        self.is_over = true;
    }

    fn linger(&self) -> Option<Duration> {
        self.is_over.then_some(PATIENCE)
    }
}

fn read_exactly(stream: &mut TcpStream, expected: &str) {
    let mut bytes = vec![0; expected.len()];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(String::from_utf8_lossy(&bytes), expected);
}

/// Talks to a stream that is taken over at once, or after its first bytes.
fn talk(is_opening: bool, client: impl FnOnce(TcpStream) + Send + 'static) {
    serve(
        move |reactor| {
            let reactor = reactor.clone();
            Box::new(move |stream| {
                if is_opening {
                    reactor.adopt_opening(stream, PATIENCE, |first| {
                        Opening::stream(first.to_vec(), PATIENCE, Talker::default())
                    });
                } else {
                    reactor.adopt_stream(stream, PATIENCE, Talker::default());
                }
            })
        },
        client,
    );
}

#[test]
fn a_stream_that_is_woken_sends_on_its_own_account() {
    for is_opening in [false, true] {
        talk(is_opening, |mut stream| {
            stream.write_all(b"wake").unwrap();
            read_exactly(&mut stream, "wake ready");
            stream.write_all(b"more wake").unwrap();
            read_exactly(&mut stream, "more wake ready");
        });
    }
}

#[test]
fn a_stream_that_ends_is_written_to_the_last_byte_though_its_peer_sends_on() {
    for is_opening in [false, true] {
        talk(is_opening, |mut stream| {
            let message = [&[b'x'; 200_000][..], b"end"].concat();
            stream.write_all(&message).unwrap();
            let mut writer = stream.try_clone().unwrap();
            writer.write_all(&[b'y'; 100_000]).unwrap();
            let mut reply = Vec::new();
            stream.read_to_end(&mut reply).unwrap();
            assert!(reply.starts_with(&message), "{} bytes came back", reply.len());
        });
    }
}

#[test]
fn a_stream_that_is_woken_now_and_then_is_not_idle() {
    struct Pulse(Talker);
    impl StreamHandler for Pulse {
        fn on_open(&mut self, waker: SendWaker) {
            self.0.on_open(waker.clone());
            tokio::task::spawn_local(async move {
                for _ in 0..10 {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    waker.wake();
                }
            });
        }

        fn on_bytes(&mut self, bytes: &[u8], output: &mut Output) -> usize {
            self.0.on_bytes(bytes, output)
        }

        fn on_ready(&mut self, output: &mut Output) {
            self.0.on_ready(output);
        }
    }
    let reply = serve(
        |reactor| {
            let reactor = reactor.clone();
            // Longer than a machine holds up the thread that wakes it.
            let idle_timeout = Duration::from_secs(1);
            Box::new(move |stream| {
                reactor.adopt_stream(stream, idle_timeout, Pulse(Talker::default()));
            })
        },
        |mut stream| {
            let mut reply = String::new();
            stream.read_to_string(&mut reply).unwrap();
            reply
        },
    );
    assert_eq!(reply, " ready".repeat(10), "and is closed once nobody wakes it");
}

#[test]
fn a_stream_has_its_last_words_when_the_loop_closes_its_connections() {
    let runtime = Builder::new_current_thread().enable_all().build_local(Default::default());
    runtime.unwrap().block_on(async {
        let reactor = Reactor::start(Memory::default()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let (stream, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        reactor.adopt_stream(stream, PATIENCE, Talker::default());
        let reader = tokio::task::spawn_blocking(move || {
            let mut words = String::new();
            client.read_to_string(&mut words).unwrap();
            words
        });
        reactor.close_all(CloseFrame::new(CloseCode::GOING_AWAY, "")).await;
        assert_eq!(reader.await.unwrap(), " closed");
    });
}

/// Counts its messages, and sends nothing.
struct Count(Rc<Cell<usize>>);

impl Handler for Count {
    fn on_message(&mut self, _message: Message<'_>, _sender: &mut Sender) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn the_runtime_looks_at_its_own_io_beside_floods() {
    // Each byte that one end of a runtime's own connection has from the other takes a look; between two of
    // them floods have a few slices, of 32,768 messages at most.
    const LOOKS: usize = 200;
    const MESSAGES_MAX: usize = 10 * 32_768;
    let runtime = Builder::new_current_thread().enable_all().build_local(Default::default());
    let most = runtime.unwrap().block_on(async {
        let reactor = Reactor::start(Memory::default()).unwrap();
        let counted = Rc::new(Cell::new(0));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        for _ in 0..3 {
            let mut flood = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (stream, _) = listener.accept().unwrap();
            stream.set_nonblocking(true).unwrap();
            reactor.adopt(stream, Negotiated::default(), Count(Rc::clone(&counted)));
            let bytes = frame(Some(MaskKey([0; 4])), Opcode::Binary, b"").repeat(10_000);
            // Until the other end is gone with its runtime.
            std::thread::spawn(move || while flood.write_all(&bytes).is_ok() {});
        }
        let own = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = own.local_addr().unwrap();
        let connect = tokio::net::TcpStream::connect(address);
        let (near, (far, _)) = tokio::try_join!(connect, own.accept()).unwrap();
        let mut ends = [near, far];
        while counted.get() == 0 {
            tokio::task::yield_now().await;
        }
        let mut most = 0;
        for _ in 0..LOOKS / 2 {
            for (from, to) in [(0, 1), (1, 0)] {
                let before = counted.get();
                ends[from].write_all(b"x").await.unwrap();
                ends[to].read_exact(&mut [0]).await.unwrap();
                most = most.max(counted.get() - before);
            }
        }
        most
    });
    assert!(most <= MESSAGES_MAX, "{most} messages of floods between two looks");
}

/// Answers each byte with itself, one at each wake.
#[derive(Default)]
struct Slow {
    waker: Option<SendWaker>,
    left: Vec<u8>,
}

impl StreamHandler for Slow {
    fn on_open(&mut self, waker: SendWaker) {
        self.waker = Some(waker);
    }

    fn on_bytes(&mut self, bytes: &[u8], _output: &mut Output) -> usize {
        self.left.extend_from_slice(bytes);
        bytes.len()
    }

    fn on_ready(&mut self, output: &mut Output) {
        output.extend_from_slice(&[self.left.remove(0)]);
    }

    fn on_end(&mut self, _output: &mut Output) -> bool {
        let waker = self.waker.clone().filter(|_| !self.left.is_empty());
        waker.map(|waker| waker.wake()).is_some()
    }
}

#[test]
fn one_who_has_ended_is_told_what_there_is_to_say_yet() {
    let told = serve(
        |reactor| {
            let reactor = reactor.clone();
            Box::new(move |stream| reactor.adopt_stream(stream, PATIENCE, Slow::default()))
        },
        |mut stream| {
            stream.write_all(b"what was asked").unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut told = String::new();
            stream.read_to_string(&mut told).unwrap();
            told
        },
    );
    assert_eq!(told, "what was asked");
}

#[test]
fn a_panic_in_a_handler_is_told() {
    struct Panicking;
    impl StreamHandler for Panicking {
        fn on_bytes(&mut self, _bytes: &[u8], _output: &mut Output) -> usize {
            std::panic::resume_unwind(Box::new("on purpose"))
        }
    }
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build_local(Default::default()).unwrap().block_on(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let reactor = Reactor::start(Memory::default()).unwrap();
        let adopting = reactor.clone();
        let timeout = std::time::Duration::from_secs(10);
        reactor.listen(listener, move |stream| adopting.adopt_stream(stream, timeout, Panicking));
        let mut client = std::net::TcpStream::connect(address).unwrap();
        std::io::Write::write_all(&mut client, b"x").unwrap();
        reactor.panicked().await;
    });
}
