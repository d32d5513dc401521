//! The loop with handlers that want whole messages, over real sockets.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use anemone_ws::Agreed;
use anemone_ws::proto::{Header, MaskKey, Message, Opcode, Sender};
use anemone_ws::reactor::{Handler, Opening, Reactor};
use tokio::runtime::Builder;

const PATIENCE: Duration = Duration::from_secs(20);

/// Answers each message with itself, once it is whole.
struct Echo;

impl Handler for Echo {
    fn message(&mut self, message: Message<'_>, sender: &mut Sender) {
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
        let reactor = Reactor::start().unwrap();
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
            Box::new(move |stream| reactor.adopt(stream, Agreed::default(), Echo))
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
        let agreed = Agreed { first: first[5..].to_vec(), ..Agreed::default() };
        Opening::web_socket(b"welcome".to_vec(), agreed, Echo)
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

#[test]
fn an_opening_without_a_word_is_closed_in_time() {
    let reply = open(b"", Duration::from_millis(10), |_| unreachable!("nothing came"));
    assert_eq!(reply, b"");
}
