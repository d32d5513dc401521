//! A transport is one file, and one line in the list of all.

pub(super) mod toy;
pub(super) mod toy_path;
pub(super) mod toy_port;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZero;

use anemone_hub::{Data, Epoch, Hub, Retention, UnixTime};

use super::SHAKING_HANDS;
use crate::exchange::upgrade::HandshakeRoute;
use crate::request::own_path::OwnPath;
use crate::{Options, Running, Server};

/// A server with one thread and an empty topic, `wind`.
fn start() -> (Hub, Running, SocketAddr) {
    let hub = Hub::new(Epoch::from_bits(9));
    hub.create("wind".parse().unwrap(), Retention::default()).unwrap();
    let mut options = Options::new("127.0.0.1:0".parse().unwrap());
    options.threads = NonZero::new(1);
    options.broadcast = true;
    let running = Server::bind(options, hub.clone()).unwrap().start().unwrap();
    let address = running.local_addr().unwrap();
    (hub, running, address)
}

fn get(address: SocketAddr, path: &str, fields: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(anemone_testing::PATIENCE)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    BufReader::new(stream)
}

/// The next line that is a reader's own: no field, and no framing of chunks.
fn next(reader: &mut BufReader<TcpStream>) -> String {
    loop {
        let mut line = String::new();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "the stream has ended");
        if !line.ends_with("\r\n") {
            return line;
        }
    }
}

#[test]
fn a_toy_transport_is_read_through_the_whole_server() {
    let (hub, running, address) = start();
    // An escape in the path leads past the loop.
    let paths = ["/topics/wind", "/topics/wind", "/topics/%77ind"];
    let mut readers = paths.map(|path| get(address, path, "Accept: text/csv\r\n"));
    for reader in &mut readers {
        assert_eq!(next(reader), "begin,9-0\n");
    }
    let mut list = String::new();
    get(address, "/topics/wind/readers", "Connection: close\r\n")
        .read_to_string(&mut list)
        .unwrap();
    assert_eq!(list.matches(r#""transport":"toy""#).count(), 3, "{list}");

    let wind = hub.topic(&"wind".parse().unwrap()).unwrap();
    wind.publish(UnixTime::now(), Data::parse("7").unwrap()).unwrap();
    for reader in &mut readers {
        assert_eq!(next(reader), "event,9-1,7\n");
    }
    assert_eq!(toy::events_encoded(), 1, "the loop and the task of the third share a page");
    running.stop_blocking();
}

#[test]
fn a_toy_at_a_path_of_its_own_has_a_state_for_each_server() {
    let handshake = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for _ in 0..2 {
        let (_hub, running, address) = start();
        for before in [b'0', b'1'] {
            let mut visitor = get(address, "/toy", handshake);
            let (mut head, mut frame) = (String::new(), [0; 3]);
            while !head.ends_with("\r\n\r\n") {
                assert_ne!(visitor.read_line(&mut head).unwrap(), 0, "{head}");
            }
            assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
            visitor.read_exact(&mut frame).unwrap();
            assert_eq!(frame, [0x81, 1, before]);
        }
        running.stop_blocking();
    }
}

#[test]
fn a_toy_has_a_port_of_its_own() {
    let (_hub, running, _) = start();
    let mut stream = TcpStream::connect(running.port("toy").unwrap()).unwrap();
    stream.write_all(b"abc").unwrap();
    assert_eq!(next(&mut BufReader::new(stream)), "3\n");
    running.stop_blocking();
}

#[test]
fn no_file_can_be_at_the_path_of_a_transport() {
    for transport in SHAKING_HANDS.iter().filter(|transport| transport.name.as_str() != "toy") {
        if let HandshakeRoute::Path { path, .. } = transport.route {
            assert!(matches!(OwnPath::at(path), Some((_, None))), "{path}");
        }
    }
}
