//! `/ws`: each WebSocket message is one of `anemone.v1`.

use std::any::Any;

use anemone_wire::multiplexed::SUBPROTOCOL;
use anemone_ws::Error;
use anemone_ws::proto::handshake::HandshakeResponse;
use anemone_ws::proto::{CloseFrame, Message, Sender};
use anemone_ws::reactor::{Handler, SendWaker};

use super::Outlet;
use super::multiplexer::{Carrier, Multiplexer};
use crate::clients::connections::described::Described;
use crate::clients::permits::ConnectionPermit;
use crate::exchange::handoff::Successor;
use crate::exchange::upgrade::{HandshakeRoute, HandshakeTransport};
use crate::exchange::visit::Visit;
use crate::limits::LimitsTable;
use crate::local::Local;
use crate::request::client::Client;
use crate::transport_name::{TransportName, TransportWords};
use crate::{Kind, Problem};

pub(crate) static TRANSPORT: HandshakeTransport = HandshakeTransport {
    name: TransportName::WEBSOCKET,
    subprotocols: &[SUBPROTOCOL],
    limits: LimitsTable::Multiplexed,
    route: HandshakeRoute::Path {
        path: PATH,
        is_offered: |_| true,
        take_over: |_, client, response| take_over(client, response),
        post: None,
    },
};

/// The name of its requests in lists of readers and in the access log.
static CARRIER: Carrier = Carrier {
    name: TransportName::new(&TransportWords {
        name: "multiplexed",
        why: "a WebSocket handshake at /ws, with anemone.v1",
    }),
    endpoint: PATH,
};

fn take_over(client: Client, response: &HandshakeResponse) -> Result<Successor, Problem> {
    if response.subprotocol.is_none() {
        let detail =
            format!("Sec-WebSocket-Protocol must offer {SUBPROTOCOL}, the protocol of this path");
        return Err(Problem::new(Kind::BadHandshake, detail));
    }
    let client = client.settled();
    Ok(Successor::new(move |local, permit, visit| Socket::new(local, client, permit, visit)))
}

/// A connection over a WebSocket.
#[derive(Debug)]
pub(crate) struct Socket {
    multiplexer: Multiplexer,
    visit: Visit,
    _permit: ConnectionPermit,
}

const PATH: &str = "/ws";

impl Socket {
    pub(crate) fn new(
        local: &Local,
        client: Client,
        permit: ConnectionPermit,
        visit: Visit,
    ) -> Self {
        let multiplexer = Multiplexer::new(local, client, &CARRIER);
        Self { multiplexer, visit, _permit: permit }
    }

    fn described(&self) -> Described {
        let described = self.visit.describe(CARRIER.name, PATH);
        self.multiplexer.describe(Described { subprotocol: Some(SUBPROTOCOL), ..described })
    }
}

impl Handler for Socket {
    fn on_open(&mut self, waker: SendWaker, _sender: &mut Sender) {
        self.multiplexer.open(waker);
    }

    fn on_message(&mut self, message: Message<'_>, sender: &mut Sender) {
        let multiplexer = &mut self.multiplexer;
        self.visit.counted(sender, |sender| multiplexer.receive(message.as_bytes(), sender));
    }

    fn has_worked(&mut self) -> bool {
        self.multiplexer.has_worked()
    }

    fn on_ready(&mut self, sender: &mut Sender) {
        let multiplexer = &mut self.multiplexer;
        self.visit.counted(sender, |sender| multiplexer.ready(sender));
    }

    fn on_end(&mut self, sender: &mut Sender) -> bool {
        let multiplexer = &mut self.multiplexer;
        self.visit.counted(sender, |sender| multiplexer.on_end(sender))
    }

    fn on_shutdown(&mut self, sender: &mut Sender) {
        let multiplexer = &mut self.multiplexer;
        self.visit.counted(sender, |sender| multiplexer.finish(sender));
    }

    fn open_bytes(&self) -> usize {
        self.multiplexer.open_bytes()
    }

    /// Closes at once, since the last messages may wait for long.
    fn on_close(&mut self, frame: Option<&CloseFrame>) {
        let described = self.described();
        self.multiplexer.close();
        self.visit.record_end(frame, &described);
    }

    fn describe(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(self.described()))
    }

    fn on_error(&mut self, error: &Error) {
        self.visit.record_error(error, PATH);
    }
}

impl Outlet for Sender {
    fn put(&mut self, message: &str) {
        // Fails once the connection is closing, when nobody reads any more.
        let _ = self.send(Message::Text(message));
    }

    fn put_bytes(&mut self, message: &[u8]) {
        match str::from_utf8(message) {
            Ok(text) => self.put(text),
            Err(_) => drop(self.send(Message::Binary(message))),
        }
    }

    fn queued_bytes(&self) -> usize {
        Self::queued_bytes(self)
    }
}
