//! A transport is one file, and one line in the list of all.

pub(super) mod toy;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZero;
use std::time::Duration;

use anemone_hub::{Data, Epoch, Hub, Retention, UnixTime};

use crate::{Options, Running, Server};

/// A server with one thread and an empty topic, `wind`.
fn start() -> (Hub, Running, SocketAddr) {
    let hub = Hub::new(Epoch::from_bits(9));
    hub.create("wind".parse().unwrap(), Retention::default()).unwrap();
    let mut options = Options::new("127.0.0.1:0".parse().unwrap());
    options.threads = NonZero::new(1);
    let running = Server::bind(options, hub.clone()).unwrap().start().unwrap();
    let address = running.local_addr().unwrap();
    (hub, running, address)
}

fn get(address: SocketAddr, path: &str, fields: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
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
    assert_eq!(toy::events_encoded(), 2, "both in the loop share a page");
    running.stop_blocking();
}
