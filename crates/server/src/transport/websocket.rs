//! Plain WebSocket at the path of a topic or a run. Messages from the client are published to the topic.

use std::any::Any;

use anemone_wire::Item;
use anemone_ws::Error;
use anemone_ws::proto::handshake::HandshakeResponse;
use anemone_ws::proto::{CloseCode, CloseFrame, Message, Sender};
use anemone_ws::reactor::{Handler, SendWaker};

use crate::clients::connections::described::Described;
use crate::clients::permits::ConnectionPermit;
use crate::exchange::handoff::Successor;
use crate::exchange::read_request::ReadRequest;
use crate::exchange::upgrade::{HandshakeRoute, HandshakeTransport};
use crate::exchange::visit::Visit;
use crate::limits::LimitsTable;
use crate::local::Local;
use crate::publish::{Inbox, PublishRefusal, Writer};
use crate::read::fan::Fan;
use crate::read::pages::ItemEncoding;
use crate::read::reader::Reader;
use crate::site::Site;
use crate::stream::in_web_socket::{InWebSocket, close_with, encoding};
use crate::transport_name::TransportName;
use crate::{Kind, Problem};

pub(super) static TRANSPORT: HandshakeTransport = HandshakeTransport {
    name: TransportName::WEBSOCKET,
    subprotocols: &[Item::SUBPROTOCOL],
    limits: LimitsTable::Websocket,
    route: HandshakeRoute::Topic(take_over),
};

/// A future reader, once the handshake's response is written.
#[derive(Debug)]
struct Subscriber {
    reader: Reader,
    encoding: &'static ItemEncoding,
    writing: Result<Box<Writer>, PublishRefusal>,
}

/// Without `after`, sends the future events of a topic, or all of a run.
fn take_over(
    site: &Site,
    read: &ReadRequest,
    response: &HandshakeResponse,
) -> Result<Successor, Problem> {
    let reader = read.open_stream(TRANSPORT.name)?;
    let topic = reader.topic();
    // A refusal is reported only to clients that write, since all may read.
    let writing = read.permit().map(|permit| Box::new(Writer::new(permit, topic, &site.limits)));
    let subscriber = Subscriber { reader, encoding: encoding(response), writing };
    Ok(Successor::new(|local, permit, visit| Events::new(subscriber, local, permit, visit)))
}

/// A connection that gets events, and publishes.
#[derive(Debug)]
struct Events {
    reply: InWebSocket,
    fan: Fan,
    inbox: Inbox,
    /// The most bytes that wait when the server stops.
    rest_bytes_max: u64,
    visit: Visit,
    _permit: ConnectionPermit,
}

impl Events {
    fn new(subscriber: Subscriber, local: &Local, permit: ConnectionPermit, visit: Visit) -> Self {
        let Subscriber { reader, encoding, writing } = subscriber;
        let inbox = Inbox::new(writing, &local.site.memory);
        let reader = reader.with_access_line(visit.access().clone());
        let (reply, fan) = (InWebSocket::new(reader, encoding), local.fan.clone());
        let rest_bytes_max = local.site.limits.stream_bytes_max;
        Self { reply, fan, inbox, rest_bytes_max, visit, _permit: permit }
    }

    fn described(&self) -> Described {
        self.reply.describe(&self.visit, TRANSPORT.name)
    }

    /// Refuses a message of the client; no later one is published.
    fn refuse(&self, problem: &Problem, sender: &mut Sender) {
        self.visit.record_refusal(problem, &self.reply.path());
        // Fails if the connection is closing already.
        let _ = close_with(&refusal(problem), &self.visit, sender);
    }
}

impl Handler for Events {
    fn on_open(&mut self, waker: SendWaker, sender: &mut Sender) {
        self.inbox.open(waker.clone());
        self.reply.open(&self.fan, waker, &self.visit, sender);
    }

    fn on_message(&mut self, message: Message<'_>, sender: &mut Sender) {
        // Messages after a refused one are not published either.
        if sender.is_closing() {
            return;
        }
        if let Err(problem) = self.inbox.publish(message, self.reply.topic().name()) {
            self.refuse(&problem, sender);
        }
    }

    fn on_ready(&mut self, sender: &mut Sender) {
        if let Some(problem) = self.inbox.take_problem() {
            return self.refuse(&problem, sender);
        }
        self.reply.send_next(&self.visit, sender);
    }

    fn on_shutdown(&mut self, sender: &mut Sender) {
        self.reply.finish_run(self.rest_bytes_max, &self.visit, sender);
    }

    fn describe(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(self.described()))
    }

    fn on_error(&mut self, error: &Error) {
        self.visit.record_error(error, &self.reply.path());
    }

    fn on_close(&mut self, frame: Option<&CloseFrame>) {
        let described = self.described();
        self.visit.record_end(frame, &described);
        self.reply.end();
    }
}

/// Returns the close frame for a message that was not published, since there is no other reply.
fn refusal(problem: &Problem) -> CloseFrame {
    let code = match problem.kind() {
        Kind::EventTooBig | Kind::BodyTooBig => CloseCode::MESSAGE_TOO_BIG,
        Kind::StorageFull | Kind::StorageFailed | Kind::Stopping => CloseCode::TRY_AGAIN_LATER,
        Kind::Internal => CloseCode::INTERNAL_ERROR,
        _ => CloseCode::POLICY_VIOLATION,
    };
    CloseFrame::new(code, problem.detail())
}
