//! The address of a server, and the clients that connect to it.

use std::io::BufReader;
use std::net::{SocketAddr, TcpStream};

use anemone_ws::proto::DeflateConfig;
use anemone_ws::proto::handshake::{ClientHandshake, Nonce};

use crate::server::event_stream::EventStream;
use crate::server::http::{Reply, connect, request, send};
use crate::server::websocket::Socket;

pub struct Endpoint {
    pub address: SocketAddr,
}

impl Endpoint {
    pub fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    pub fn get(&self, target: &str, fields: &[(&str, &str)]) -> Reply {
        self.request("GET", target, fields)
    }

    pub fn request(&self, method: &str, target: &str, fields: &[(&str, &str)]) -> Reply {
        let mut stream = self.connect();
        send(&mut stream, method, target, fields);
        Reply::read(&mut BufReader::new(stream), method)
    }

    /// A reader of server-sent events.
    pub fn events(&self, target: &str, fields: &[(&str, &str)]) -> EventStream {
        let fields = [&[("Accept", "text/event-stream")], fields].concat();
        let request = request(self.address, "GET", target, &fields);
        EventStream::over(self.connect(), &request).unwrap()
    }

    /// A WebSocket whose handshake has these fields beside the required ones.
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
