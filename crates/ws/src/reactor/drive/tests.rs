use std::cell::{Cell, RefCell};
use std::time::Duration;

use std::sync::Arc;

use anemone_proto::handshake::{Fields, Offer, respond_with};
use anemone_proto::{
    CloseCode, Config, Connection, DeflateConfig, Event, Header, MaskKey, Message,
    NegotiatedDeflate, Sender,
};
use futures_util::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::LocalSet;
use tokio::time::Instant;

use super::*;
use crate::{Error, codecs};

/// The calls of a handler, in order.
type Told = Rc<RefCell<Vec<String>>>;

/// Echoes, and sends `woken` when it is.
struct Echo {
    told: Told,
    waker: Rc<RefCell<Option<SendWaker>>>,
}

impl Handler for Echo {
    fn on_open(&mut self, waker: SendWaker, _sender: &mut Sender) {
        self.told.borrow_mut().push("open".to_owned());
        *self.waker.borrow_mut() = Some(waker);
    }

    fn on_message(&mut self, message: Message<'_>, sender: &mut Sender) {
        self.told.borrow_mut().push(format!("message of {} bytes", message.as_bytes().len()));
        sender.send(message).unwrap();
    }

    fn on_ready(&mut self, sender: &mut Sender) {
        self.told.borrow_mut().push("ready".to_owned());
        if self.waker.borrow().is_none() {
            sender.send(Message::Text("woken")).unwrap();
        }
    }

    fn on_error(&mut self, error: &Error) {
        self.told.borrow_mut().push(format!("error: {error}"));
    }

    fn on_pong(&mut self, round_trip: Duration) {
        self.told.borrow_mut().push(format!("pong after {} ms", round_trip.as_millis()));
    }

    fn on_close(&mut self, frame: Option<&CloseFrame>) {
        self.told.borrow_mut().push(format!("close {:?}", frame.map(|frame| frame.code.get())));
    }
}

struct Fixture {
    told: Told,
    waker: Rc<RefCell<Option<SendWaker>>>,
    client: DuplexStream,
    server: tokio::task::JoinHandle<()>,
    say_shutdown: tokio::sync::oneshot::Sender<()>,
}

impl Fixture {
    /// Between the two ends there is room for this many bytes.
    fn start(room: usize, first: &[u8]) -> Self {
        let (client, server) = duplex(room);
        let (told, waker) = (Told::default(), Rc::default());
        let handler = Echo { told: Rc::clone(&told), waker: Rc::clone(&waker) };
        let (say_shutdown, said) = tokio::sync::oneshot::channel();
        let shutdown = async {
            match said.await {
                Ok(()) => CloseFrame::new(CloseCode::GOING_AWAY, ""),
                Err(_) => std::future::pending().await,
            }
        };
        let driven = drive_alone(
            server,
            Negotiated { first: first.to_vec(), ..Negotiated::default() },
            handler,
            shutdown,
        );
        let server = tokio::task::spawn_local(driven);
        Self { told, waker, client, server, say_shutdown }
    }

    fn told(&self) -> Vec<String> {
        self.told.borrow().clone()
    }
}

async fn drive_alone(
    stream: DuplexStream,
    negotiated: Negotiated,
    handler: impl Handler + 'static,
    shutdown: impl Future<Output = CloseFrame>,
) {
    drive(&Memory::default(), stream, negotiated, handler, shutdown).await;
}

fn client() -> Connection {
    let keys = Box::new(|| MaskKey([1, 2, 3, 4]));
    Connection::client(Arc::default(), Time::ZERO, keys)
}

fn bytes_of(queue: impl FnOnce(&mut Sender)) -> Vec<u8> {
    let mut connection = client();
    queue(connection.sender());
    connection.sender().transmit().to_vec()
}

fn message(len: usize) -> Vec<u8> {
    bytes_of(|sender| sender.send(Message::Binary(&vec![7; len])).unwrap())
}

fn close() -> Vec<u8> {
    let frame = CloseFrame::new(CloseCode::NORMAL, "");
    bytes_of(|sender| sender.close(Some(&frame)).unwrap())
}

/// The events that a client takes from all that came, as short texts.
fn events_in(mut bytes: &mut [u8]) -> Vec<String> {
    let (mut client, mut events) = (client(), Vec::new());
    while !bytes.is_empty() {
        let received = client.receive(Time::ZERO, bytes);
        let consumed = received.consumed;
        events.extend(received.event.map(|event| match event {
            Event::Message(message) => format!("message of {} bytes", message.as_bytes().len()),
            Event::Close(frame) => format!("close {:?}", frame.map(|frame| frame.code.get())),
            Event::Ping(_) => "ping".to_owned(),
            other => format!("{other:?}"),
        }));
        bytes = &mut bytes[consumed..];
    }
    events
}

async fn read_to_end(stream: &mut (impl AsyncRead + Unpin)) -> Vec<String> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    events_in(&mut bytes)
}

#[tokio::test(start_paused = true)]
async fn messages_go_through_a_stream_of_any_room_and_the_handler_hears_of_all() {
    for room in [1, 7, 4096, 1 << 20] {
        LocalSet::new()
            .run_until(async {
                let first = message(3);
                let mut fixture = Fixture::start(room, &first);
                let bytes = [message(0), message(70_000), close()].concat();
                let (mut reader, mut writer) = tokio::io::split(&mut fixture.client);
                let write = async { writer.write_all(&bytes).await.unwrap() };
                let (events, ()) = tokio::join!(read_to_end(&mut reader), write);
                let messages =
                    ["message of 3 bytes", "message of 0 bytes", "message of 70000 bytes"];
                assert_eq!(events[..3], messages, "room {room}");
                assert_eq!(events[3..], ["close Some(1000)"], "room {room}");
                fixture.server.await.unwrap();
                let mut told = fixture.told.take();
                told.retain(|told| told != "ready"); // as often as writing was pending
                assert_eq!(told[0], "open");
                assert_eq!(told[1..4], messages);
                assert_eq!(told[4..], ["close Some(1000)"]);
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_waker_has_the_handler_send() {
    let test = async {
        let mut fixture = Fixture::start(4096, &[]);
        tokio::task::yield_now().await;
        for _ in 0..3 {
            let waker = fixture.waker.take().unwrap();
            waker.wake();
            waker.wake();
            let mut frame = [0; 7];
            fixture.client.read_exact(&mut frame).await.unwrap();
            assert_eq!(&frame[2..], b"woken");
            *fixture.waker.borrow_mut() = Some(waker);
        }
        let ready = fixture.told().iter().filter(|told| *told == "ready").count();
        assert_eq!(ready, 3, "two calls in a row are one");
        let waker = fixture.waker.take().unwrap();
        drop(fixture.client);
        fixture.server.await.unwrap();
        waker.wake(); // of no use, and no harm
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_stream_is_an_error_and_then_a_close_without_a_frame() {
    let test = async {
        let fixture = Fixture::start(4096, &[]);
        drop(fixture.client);
        fixture.server.await.unwrap();
        assert_eq!(fixture.told.take(), ["open", "error: connection lost", "close None"]);
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_is_said_and_its_answer_waited_for() {
    let test = async {
        let mut fixture = Fixture::start(4096, &[]);
        fixture.say_shutdown.send(()).unwrap();
        let mut frame = [0; 4];
        fixture.client.read_exact(&mut frame).await.unwrap();
        assert_eq!(frame, [0x88, 2, 3, 233]);
        assert!(!fixture.server.is_finished());
        fixture.client.write_all(&close()).await.unwrap();
        assert_eq!(read_to_end(&mut fixture.client).await, [""; 0]);
        fixture.server.await.unwrap();
        assert_eq!(fixture.told.take(), ["open", "close Some(1000)"]);
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test(start_paused = true)]
async fn a_quiet_peer_is_pinged_and_then_given_up() {
    let test = async {
        let begun = Instant::now();
        let mut fixture = Fixture::start(4096, &[]);
        let events = read_to_end(&mut fixture.client).await;
        assert_eq!(events.first().map(String::as_str), Some("ping"));
        assert_eq!(events.last().map(String::as_str), Some("close Some(1011)"));
        assert_eq!(begun.elapsed().as_secs(), 60);
        drop(fixture.client);
        fixture.server.await.unwrap();
        assert!(fixture.told.take()[1].starts_with("error: "));
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_is_not_read_from_and_is_given_up() {
    let test = async {
        let fixture = Fixture::start(4096, &[]);
        let (_reader, mut writer) = tokio::io::split(fixture.client);
        let mut taken = 0;
        let write = async {
            let bytes = message(1000);
            while writer.write_all(&bytes).await.is_ok() {
                taken += bytes.len();
            }
        };
        tokio::time::timeout(Duration::from_secs(180), write).await.unwrap();
        assert!(taken < 1 << 20, "{taken} bytes were taken");
        fixture.server.await.unwrap();
        assert_eq!(fixture.told.take().last().map(String::as_str), Some("close None"));
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_told_how_long_a_pong_took() {
    let test = async {
        let mut fixture = Fixture::start(4096, &[]);
        let mut ping = [0; 10];
        fixture.client.read_exact(&mut ping).await.unwrap();
        tokio::time::sleep(Duration::from_millis(34)).await;
        let pong = bytes_of(|sender| sender.pong(&ping[2..]).unwrap());
        fixture.client.write_all(&[pong, close()].concat()).await.unwrap();
        fixture.server.await.unwrap();
        assert_eq!(fixture.told.take(), ["open", "pong after 34 ms", "close Some(1000)"]);
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test(start_paused = true)]
async fn a_message_is_given_up_in_its_time_though_nothing_else_is_due() {
    let test = async {
        let config = Config { message_timeout: Duration::from_secs(1), ..Config::default() };
        let told = Told::default();
        let handler = Echo { told: Rc::clone(&told), waker: Rc::default() };
        let (mut client, server) = duplex(4096);
        let negotiated = Negotiated { config: Arc::new(config), ..Negotiated::default() };
        let server = tokio::task::spawn_local(drive_alone(
            server,
            negotiated,
            handler,
            std::future::pending(),
        ));
        tokio::time::sleep(Duration::from_millis(500)).await;
        let begun = Instant::now();
        client.write_all(&message(1000)[..100]).await.unwrap();
        assert_eq!(read_to_end(&mut client).await, ["close Some(1008)"]);
        assert_eq!(begun.elapsed().as_secs(), 1);
        drop(client);
        server.await.unwrap();
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test(start_paused = true)]
async fn a_close_frame_that_is_not_answered_is_an_error() {
    let test = async {
        let fixture = Fixture::start(4096, &[]);
        let begun = Instant::now();
        fixture.say_shutdown.send(()).unwrap();
        fixture.server.await.unwrap();
        assert_eq!(fixture.told.take(), ["open", "error: connection lost", "close None"]);
        assert!(begun.elapsed() >= Duration::from_secs(5), "the close time-out");
    };
    LocalSet::new().run_until(test).await;
}

/// A client's handshake that offers compression.
struct Asked;

impl Fields for Asked {
    fn values<'a>(&'a self, name: &'static str) -> impl Iterator<Item = &'a [u8]> {
        let value: &[u8] = match name {
            "host" => b"a",
            "upgrade" => b"websocket",
            "connection" => b"Upgrade",
            "sec-websocket-version" => b"13",
            "sec-websocket-key" => b"dGhlIHNhbXBsZSBub25jZQ==",
            "sec-websocket-extensions" => b"permessage-deflate",
            _ => return None.into_iter(),
        };
        Some(value).into_iter()
    }
}

fn compression() -> NegotiatedDeflate {
    let offer = Offer { method: "GET", is_http_1_1: true, fields: &Asked };
    respond_with(offer, &[], Some(&DeflateConfig::default())).unwrap().deflate.unwrap()
}

/// A message of so many zeros, compressed, as a client would send it.
fn compressed(deflate: &NegotiatedDeflate, zeros: usize) -> Vec<u8> {
    let mut sender =
        Connection::server(Arc::default(), Time::ZERO).with_deflate(deflate, codecs::exchange);
    sender.sender().send(Message::Binary(&vec![0; zeros])).unwrap();
    let bytes = sender.sender().transmit().to_vec();
    let (header, len) = Header::decode(&bytes).unwrap().unwrap();
    let mut masked = Vec::new();
    Header { mask: Some(MaskKey([0; 4])), ..header }.encode(&mut masked);
    masked.extend_from_slice(&bytes[len..]);
    masked
}

/// A clock by which a slice is over each time that it is looked at.
fn hasty() -> std::time::Instant {
    thread_local! {
        static NOW: Cell<std::time::Instant> = Cell::new(std::time::Instant::now());
    }
    NOW.set(NOW.get() + FIRST_SLICE);
    NOW.get()
}

#[tokio::test(start_paused = true)]
async fn messages_that_inflate_to_much_have_a_turn_each() {
    let test = async {
        SCRATCH.with_borrow_mut(|scratch| *scratch = Scratch::new(hasty));
        let deflate = compression();
        let first = compressed(&deflate, 1 << 20).repeat(4);
        let told = Told::default();
        let handler = Echo { told: Rc::clone(&told), waker: Rc::default() };
        let (_client, server) = duplex(1 << 16);
        let negotiated = Negotiated { deflate: Some(deflate), first, ..Negotiated::default() };
        let mut driven = Box::pin(drive_alone(server, negotiated, handler, std::future::pending()));
        let messages = || {
            let is_message = |told: &&String| told.starts_with("message of 1048576");
            told.borrow().iter().filter(is_message).count()
        };
        let mut polls = 0;
        while messages() < 4 {
            let before = messages();
            assert!((&mut driven).now_or_never().is_none());
            assert!(messages() <= before + 1);
            polls += 1;
        }
        // A slice is looked at for each piece that is inflated.
        assert!(polls >= 4 * 16, "{polls}");
    };
    LocalSet::new().run_until(test).await;
}
