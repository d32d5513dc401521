//! A server on a free port, with two threads and the topic `wind`.

use std::io::BufReader;
use std::net::{SocketAddr, TcpStream};
use std::num::NonZero;
use std::sync::Arc;
use std::time::SystemTime;

use anemone_hub::{Data, Epoch, Hub, Retention, Topic};
use anemone_server::{Limits, Options, Running, Server};
use anemone_ws::proto::DeflateConfig;
use anemone_ws::proto::handshake::{ClientHandshake, Nonce};

use crate::http::{Reply, send};
use crate::websocket::Socket;
use crate::{PATIENCE, page};

pub struct Fixture {
    pub hub: Hub,
    pub wind: Arc<Topic>,
    pub address: SocketAddr,
    running: Option<Running>,
}

impl Fixture {
    pub fn start() -> Self {
        Self::with(|_| {}, Retention::default())
    }

    pub fn with(change: impl FnOnce(&mut Options), retention: Retention) -> Self {
        Self::of(Hub::new(Epoch::from_bits(1234)), change, retention)
    }

    /// With the topics of this hub.
    pub fn of(hub: Hub, change: impl FnOnce(&mut Options), retention: Retention) -> Self {
        let wind = hub.ensure("wind".parse().unwrap(), retention).unwrap();
        let mut options = Options::new("127.0.0.1:0".parse().unwrap());
        options.threads = NonZero::new(2);
        options.tcp = Some("127.0.0.1:0".parse().unwrap());
        (options.echo, options.broadcast) = (true, true);
        options.fallback = Some(page::fallback());
        change(&mut options);
        let running = Server::bind(options, hub.clone()).unwrap().start().unwrap();
        Self { hub, wind, address: running.local_addr().unwrap(), running: Some(running) }
    }

    pub fn with_limits(change: impl FnOnce(&mut Limits)) -> Self {
        Self::with(|options| change(&mut options.limits), Retention::default())
    }

    /// Publishes the numbers `from..=to` and returns the position of the last.
    pub fn publish(&self, numbers: std::ops::RangeInclusive<u64>) -> String {
        let mut last = String::new();
        for number in numbers {
            let data = Data::json(&serde_json::json!({ "n": number })).unwrap();
            last = self.wind.publish(SystemTime::now().into(), data).unwrap().to_string();
        }
        last
    }

    /// The bytes that the server counts as held for its clients.
    pub fn held_bytes(&self) -> usize {
        self.running.as_ref().unwrap().held_bytes()
    }

    /// Whether there is a topic of this name, and not only a pattern that lets it come.
    pub fn has(&self, topic: &str) -> bool {
        self.hub.topic(&topic.parse().unwrap()).is_some()
    }

    pub fn tcp(&self) -> SocketAddr {
        self.running.as_ref().unwrap().tcp_addr().unwrap()
    }

    pub fn tcp_echo(&self) -> SocketAddr {
        self.running.as_ref().unwrap().tcp_echo_addr().unwrap()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    pub fn get(&self, target: &str, fields: &[(&str, &str)]) -> Reply {
        self.request("GET", target, fields)
    }

    pub fn request(&self, method: &str, target: &str, fields: &[(&str, &str)]) -> Reply {
        let mut stream = self.connect();
        send(&mut stream, method, target, fields);
        Reply::read(&mut BufReader::new(stream), method)
    }

    pub fn stop(&mut self) {
        self.running.take().unwrap().stop_blocking();
    }

    /// A handshake with these fields beside the required ones.
    pub fn websocket(
        &self,
        target: &str,
        subprotocols: &[&str],
        fields: &[(&str, &str)],
    ) -> Socket {
        let handshake = ClientHandshake::new(Nonce([7; 16]), subprotocols);
        self.open(target, handshake, fields)
    }

    /// The same with permessage-deflate (RFC 7692), which compresses every message.
    pub fn compressed(&self, target: &str) -> Socket {
        let config = DeflateConfig { compress_bytes_min: 0, ..DeflateConfig::default() };
        let handshake = ClientHandshake::new(Nonce([7; 16]), &[]).with_deflate(config);
        self.open(target, handshake, &[])
    }

    fn open(&self, target: &str, handshake: ClientHandshake, fields: &[(&str, &str)]) -> Socket {
        Socket::open(self.connect(), &self.address.to_string(), target, handshake, fields).unwrap()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop_blocking();
        }
    }
}
