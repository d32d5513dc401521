//! TCP: each message of `anemone.v1` follows its length.

use std::any::Any;
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anemone_wire::framing::{self, Decoder};
use anemone_wire::multiplexed::SUBPROTOCOL;
use anemone_ws::proto::{Config, Output};
use anemone_ws::reactor::{Opening, SendWaker, StreamHandler};
use tokio::time::Instant;

use super::Outlet;
use super::multiplexer::{Carrier, Multiplexer};
use super::sending::send_failure;
use crate::alarms::{Alarm, Alarms};
use crate::clients::access::{AccessLine, CLIENT_GONE};
use crate::clients::connections::closed::{Cause, EndedBy};
use crate::clients::connections::described::{Described, WireProtocol};
use crate::clients::permits::ConnectionPermit;
use crate::exchange::tcp_transport::TcpTransport;
use crate::local::Local;
use crate::peer::Peer;
use crate::request::client::Client;
use crate::transport_name::{TransportName, TransportWords};
use crate::{Kind, Problem};

pub(crate) static TRANSPORT: TcpTransport =
    TcpTransport { name: "tcp", address: |options| options.tcp, adopt, refusal };

static CARRIER: Carrier = Carrier {
    name: TransportName::new(&TransportWords { name: "tcp", why: "a connection to the TCP port" }),
    endpoint: "the TCP port",
};

/// Serves a connection in the loop. Its first bytes must come within the time for a request's header.
fn adopt(local: &Rc<Local>, stream: TcpStream, peer: Peer, permit: ConnectionPermit) {
    let client = Client::of_connection(peer, &local.site.proxies).settled();
    let guest = Rc::clone(local);
    let decide = move |first: &[u8]| {
        let connection = TcpConnection::new(&guest, client, permit);
        Opening::stream(first.to_vec(), guest.site.limits.multiplexed.idle_timeout, connection)
    };
    local.reactor.adopt_opening(stream, local.site.limits.header_timeout, decide);
}

/// Returns the message for a refused client.
fn refusal(problem: &Problem) -> Vec<u8> {
    let mut output = Output::default();
    send_failure(None, problem, &AccessLine::default(), &mut Framed(&mut output));
    output.as_slice().unwrap_or_default().to_vec()
}

#[derive(Debug)]
struct TcpConnection {
    decoder: Decoder,
    config: Arc<Config>,
    alarms: Alarms,
    /// Set once the connection is open.
    waker: Option<SendWaker>,
    /// The alarm for the end of an incomplete message's time.
    message_due: Option<Alarm>,
    multiplexer: Multiplexer,
    is_over: bool,
    _permit: ConnectionPermit,
}

impl TcpConnection {
    fn new(local: &Local, client: Client, permit: ConnectionPermit) -> Self {
        let config = Arc::clone(&local.site.limits.multiplexed);
        Self {
            decoder: decoder(&config),
            config,
            alarms: local.alarms.clone(),
            waker: None,
            message_due: None,
            multiplexer: Multiplexer::new(local, client, &CARRIER),
            is_over: false,
            _permit: permit,
        }
    }

    fn described(&self) -> Described {
        let client = self.multiplexer.client().address();
        let described = Described::new(client, (CARRIER.name, WireProtocol::Tcp), None);
        self.multiplexer.describe(Described { subprotocol: Some(SUBPROTOCOL), ..described })
    }

    fn record_end(&self, cause: Cause) {
        self.multiplexer.site().closed.add(&self.described(), None, cause);
    }

    /// Sends the problem, and ends the connection.
    fn give_up(&mut self, problem: &Problem, output: &mut Output) {
        self.record_end(Cause::new(EndedBy::Server, problem.detail().to_owned()));
        send_failure(None, problem, &AccessLine::default(), &mut Framed(output));
        self.is_over = true;
        // Nothing more is read, so an incomplete message is dropped.
        self.decoder = decoder(&self.config);
        self.message_due = None;
    }

    /// Sets the alarm for an incomplete message, unless it is set.
    fn time_message(&mut self) {
        if !self.decoder.is_amid_message() {
            self.message_due = None;
        } else if self.message_due.is_none()
            && let Some(waker) = self.waker.clone()
        {
            let due = Instant::now() + self.config.message_timeout;
            self.message_due = Some(self.alarms.set(due, waker));
        }
    }

    /// Ends the connection if a message takes too long.
    fn give_up_late(&mut self, output: &mut Output) {
        if self.message_due.as_ref().is_some_and(|alarm| alarm.due() <= Instant::now()) {
            let limit = self.config.message_timeout;
            let detail = format!("a message took longer than {limit:?}");
            self.give_up(&Problem::new(Kind::BodyTimeout, detail), output);
        }
    }
}

impl StreamHandler for TcpConnection {
    fn on_open(&mut self, waker: SendWaker) {
        self.waker = Some(waker.clone());
        self.multiplexer.open(waker);
    }

    /// Returns after each answer that takes time.
    fn on_bytes(&mut self, bytes: &[u8], output: &mut Output) -> usize {
        let mut rest = bytes;
        while !self.is_over && !self.multiplexer.has_worked() {
            match self.decoder.decode(&mut rest) {
                Ok(Some(message)) => {
                    // The next message has its own time.
                    self.message_due = None;
                    self.multiplexer.receive(message, &mut Framed(output));
                }
                Ok(None) => break,
                Err(error) => {
                    self.give_up(&Problem::new(Kind::BadMessage, error.to_string()), output);
                }
            }
        }
        if !self.is_over {
            self.time_message();
            self.give_up_late(output);
        }
        if self.is_over { bytes.len() } else { bytes.len() - rest.len() }
    }

    /// About a hundred of the shortest requests.
    fn receive_bytes_max(&self) -> usize {
        2048
    }

    fn held_bytes(&self) -> usize {
        self.decoder.held_bytes()
    }

    fn open_bytes(&self) -> usize {
        self.multiplexer.open_bytes()
    }

    /// The alarm wakes the connection whether or not anything comes.
    fn on_ready(&mut self, output: &mut Output) {
        self.give_up_late(output);
        if !self.is_over {
            self.multiplexer.ready(&mut Framed(output));
        }
    }

    /// An incomplete message does not delay the end.
    fn on_end(&mut self, output: &mut Output) -> bool {
        self.message_due = None;
        !self.is_over && self.multiplexer.on_end(&mut Framed(output))
    }

    fn on_close(&mut self, output: &mut Output) {
        self.give_up_late(output);
        if self.is_over {
            return;
        }
        self.multiplexer.finish(&mut Framed(output));
        self.give_up(&Problem::new(Kind::Stopping, "the server is stopping"), output);
    }

    fn linger(&self) -> Option<Duration> {
        self.is_over.then_some(self.config.close_timeout)
    }

    fn describe(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(self.described()))
    }
}

impl Drop for TcpConnection {
    fn drop(&mut self) {
        if !self.is_over {
            self.record_end(Cause::of_stream(CLIENT_GONE));
        }
    }
}

/// Creates a decoder, which refuses other protocols at once, whatever the limit.
fn decoder(config: &Config) -> Decoder {
    let limit = usize::try_from(config.message_bytes_max).unwrap_or(usize::MAX);
    Decoder::new(limit.min(framing::MESSAGE_BYTES_MAX))
}

/// Messages with their lengths.
struct Framed<'a>(&'a mut Output);

impl Outlet for Framed<'_> {
    fn put(&mut self, message: &str) {
        self.put_bytes(message.as_bytes());
    }

    fn put_bytes(&mut self, message: &[u8]) {
        self.0.extend_from_slice(&framing::length(message.len()));
        self.0.extend_from_slice(message);
    }

    fn queued_bytes(&self) -> usize {
        self.0.len()
    }
}
