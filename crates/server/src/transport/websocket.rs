//! Plain WebSocket: each message is the data of one event. Messages from the client are published to a topic.
//!
//! A notice would look like data, and data like a notice, so the reader learns everything else at the end: from a
//! close code, and from a reason with the position to continue from.
//!
//! With the subprotocol `anemone.events` each message is `{"position":P,"time":…,"data":…}`, and the first one is
//! `{"position":P}`, where reading begins. Notices (`{"gap":{…}}`, `{"skipped":N}`) precede the events after them.

use std::sync::Arc;

use anemone_hub::{Gap, Topic};
use anemone_wire::{EndReason, Item, Mode};
use anemone_ws::Error;
use anemone_ws::proto::handshake::HandshakeResponse;
use anemone_ws::proto::{CloseCode, CloseFrame, Message, MisuseError, Prepared, Sender};
use anemone_ws::reactor::{Handler, SendWaker};
use tokio::time::Instant;

use crate::clients::permits::ConnectionPermit;
use crate::exchange::handoff::Successor;
use crate::exchange::read_request::ReadRequest;
use crate::exchange::upgrade::{HandshakeRoute, HandshakeTransport};
use crate::exchange::visit::Visit;
use crate::limits::LimitsTable;
use crate::local::Local;
use crate::publish::{Inbox, PublishRefusal, Writer};
use crate::read::fan::{Fan, ItemEncoding, Subscription};
use crate::read::reader::{Page, Reader};
use crate::site::Site;
use crate::stream::{EndlessPart, EndlessReply};
use crate::transport_name::TransportName;
use crate::{Kind, Problem};

/// Events are missing, for a reader that gets only data; the reason describes the gap.
const GAP: CloseCode = own_code(4000);
/// The topic of such a reader was deleted.
const DELETED: CloseCode = own_code(4001);

/// Returns a code for private use (RFC 6455 section 7.4.2).
const fn own_code(code: u16) -> CloseCode {
    match CloseCode::new(code) {
        Some(code) => code,
        None => CloseCode::NORMAL,
    }
}

pub(super) static TRANSPORT: HandshakeTransport = HandshakeTransport {
    name: TransportName::new(&"websocket"),
    subprotocols: &[Item::SUBPROTOCOL],
    limits: LimitsTable::Websocket,
    route: HandshakeRoute::Topic(take_over),
};

/// The encoding of data alone.
static DATA: ItemEncoding = ItemEncoding {
    append: |item, out| {
        if let Item::Event { data, .. } = item {
            out.push_str(data);
        }
    },
};
/// The encoding with positions.
static POSITIONS: ItemEncoding = ItemEncoding { append: |item, out| item.write(out) };

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
    let encoding = if response.subprotocol.is_some() { &POSITIONS } else { &DATA };
    let reader = read.open_stream(TRANSPORT.name)?;
    let topic = reader.topic();
    // A refusal is reported only to clients that write, since all may read.
    let writing = read.permit().map(|permit| Box::new(Writer::new(permit, topic, &site.limits)));
    let subscriber = Subscriber { reader, encoding, writing };
    Ok(Successor::new(|local, permit, visit| Events::new(subscriber, local, permit, visit)))
}

/// A reader that sends its topic's events, from its position on, as fast as they can be written.
#[derive(Debug)]
struct Events {
    reply: EndlessReply,
    encoding: &'static ItemEncoding,
    fan: Fan,
    subscription: Option<Subscription>,
    inbox: Inbox,
    /// The most bytes that wait when the server stops.
    rest_bytes_max: usize,
    visit: Visit,
    _permit: ConnectionPermit,
}

impl Events {
    fn new(subscriber: Subscriber, local: &Local, permit: ConnectionPermit, visit: Visit) -> Self {
        let Subscriber { reader, encoding, writing } = subscriber;
        let inbox = Inbox::new(writing, &local.site.memory);
        let reader = reader.with_access_line(visit.access().clone());
        let (reply, fan) = (EndlessReply::new(reader, Instant::now()), local.fan.clone());
        let stream_bytes_max = local.site.limits.stream_bytes_max;
        let rest_bytes_max = usize::try_from(stream_bytes_max).unwrap_or(usize::MAX);
        let subscription = None;
        Self { reply, encoding, fan, subscription, inbox, rest_bytes_max, visit, _permit: permit }
    }

    /// Queues the next part. Events wait in the socket's output, and until that is written, no more are read: a slow
    /// reader is only a position.
    fn send_next(&mut self, sender: &mut Sender) -> Result<(), MisuseError> {
        let Some(subscription) = &self.subscription else { return Ok(()) };
        let encoding = self.encoding;
        let encode = |page: &Page| messages(page, encoding);
        match self.reply.next(|reader| subscription.read(reader, encoding, encode)) {
            EndlessPart::Page(page) => match page.gap.as_ref().filter(|_| self.ends_at_gaps()) {
                Some(gap) => self.close_with(&interrupted(gap), sender),
                None => self.visit.counted(sender, |sender| {
                    page.messages.iter().try_for_each(|message| sender.send_prepared(message))
                }),
            },
            EndlessPart::Item(item) => self.send_item(&item, sender),
            EndlessPart::Ended(notice) => {
                self.send_item(&notice, sender)?;
                self.close_with(&CloseFrame::new(CloseCode::NORMAL, "the run has ended"), sender)
            }
            EndlessPart::Failed { notice, problem } => {
                self.visit.record_refusal(&problem, &self.path());
                let frame = self.last_frame(notice.as_ref(), &problem);
                notice.iter().try_for_each(|item| self.send_item(item, sender))?;
                self.close_with(&frame, sender)
            }
            EndlessPart::Nothing | EndlessPart::Over => Ok(()),
        }
    }

    fn send_item(&self, item: &Item<'_>, sender: &mut Sender) -> Result<(), MisuseError> {
        if self.is_data_only() {
            return Ok(());
        }
        let mut text = String::new();
        (self.encoding.append)(item, &mut text);
        self.visit.counted(sender, |sender| sender.send(Message::Text(&text)))
    }

    fn path(&self) -> String {
        self.reply.reader().readable().path_in_log()
    }

    fn topic(&self) -> &Arc<Topic> {
        self.reply.reader().topic()
    }

    fn close_with(&self, frame: &CloseFrame, sender: &mut Sender) -> Result<(), MisuseError> {
        self.visit.record_close(frame);
        sender.close(Some(frame))
    }

    /// Refuses a message of the client; no later one is published.
    fn refuse(&self, problem: &Problem, sender: &mut Sender) {
        self.visit.record_refusal(problem, &self.path());
        // Fails if the connection is closing already.
        let _ = self.close_with(&refusal(problem), sender);
    }

    fn is_data_only(&self) -> bool {
        std::ptr::eq(self.encoding, &DATA)
    }

    /// Returns true if only the end can report a gap. A reader of the newest event alone is not told about skipped
    /// events, kept or not.
    fn ends_at_gaps(&self) -> bool {
        self.is_data_only() && self.reply.reader().place().mode == Mode::All
    }

    /// Returns the close frame for the end of reading, with what a notice does not say.
    fn last_frame(&self, notice: Option<&Item<'_>>, problem: &Problem) -> CloseFrame {
        let (code, words) = match notice {
            Some(Item::End(EndReason::TooSlow { gap: Some(gap) })) if self.is_data_only() => {
                (CloseCode::POLICY_VIOLATION, format!("too slow: {}", gap.in_words()))
            }
            Some(Item::End(EndReason::TooSlow { .. })) => {
                (CloseCode::POLICY_VIOLATION, problem.detail().to_owned())
            }
            Some(_) => {
                let code = if self.is_data_only() { DELETED } else { CloseCode::NORMAL };
                (code, "the topic was deleted".to_owned())
            }
            None => (CloseCode::INTERNAL_ERROR, problem.to_json()),
        };
        CloseFrame::new(code, &words)
    }
}

/// Returns the close frame that tells a reader of data alone that events are missing.
fn interrupted(gap: &Gap) -> CloseFrame {
    CloseFrame::new(GAP, &format!("gap: {}", gap.in_words()))
}

impl Handler for Events {
    fn on_open(&mut self, waker: SendWaker, sender: &mut Sender) {
        self.inbox.open(waker.clone());
        self.subscription = Some(self.fan.subscribe(self.topic(), waker));
        let begin = self.reply.begin();
        // Nothing was sent before, so this cannot fail.
        let _ = self.send_item(&begin, sender);
        self.on_ready(sender);
    }

    fn on_message(&mut self, message: Message<'_>, sender: &mut Sender) {
        // Messages after a refused one are not published either.
        if sender.is_closing() {
            return;
        }
        if let Err(problem) = self.inbox.publish(message, self.topic().name()) {
            self.refuse(&problem, sender);
        }
    }

    fn on_ready(&mut self, sender: &mut Sender) {
        if let Some(problem) = self.inbox.take_problem() {
            return self.refuse(&problem, sender);
        }
        if let Err(error) = self.send_next(sender) {
            tracing::debug!(%error, "nothing more can be sent");
        }
    }

    /// Sends the rest of a run, which was cancelled before, unless that is too much.
    fn on_shutdown(&mut self, sender: &mut Sender) {
        if !self.reply.reader().readable().is_run() {
            return;
        }
        while !sender.is_closing() && sender.queued_bytes() < self.rest_bytes_max {
            let before = self.reply.reader().position();
            self.on_ready(sender);
            if self.reply.reader().position() == before {
                return;
            }
        }
    }

    fn on_error(&mut self, error: &Error) {
        self.visit.record_error(error, &self.path());
    }

    fn on_close(&mut self, frame: Option<&CloseFrame>) {
        self.visit.record_end(frame);
        self.reply.end("closed");
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

fn messages(page: &Page, encoding: &ItemEncoding) -> Vec<Prepared> {
    let mut text = String::new();
    let messages = page.items().filter_map(|item| {
        text.clear();
        (encoding.append)(&item, &mut text);
        (!text.is_empty()).then(|| Prepared::new(Message::Text(&text)))
    });
    messages.collect()
}
