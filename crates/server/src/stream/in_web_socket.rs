//! An endless reply on a plain WebSocket: each message is the data of one event.
//!
//! A notice would look like data, and data like a notice, so the reader learns everything else at the end: from a
//! close code, and from a reason with the position to continue from.
//!
//! With the subprotocol `anemone.events` each message is `{"position":P,"time":…,"data":…}`, and the first one is
//! `{"position":P}`, where reading begins. Notices (`{"gap":{…}}`, `{"skipped":N}`) precede the events after them.

use std::sync::Arc;

use anemone_hub::{Gap, Topic};
use anemone_wire::{EndReason, Item, Mode};
use anemone_ws::proto::handshake::HandshakeResponse;
use anemone_ws::proto::{CloseCode, CloseFrame, Message, MisuseError, Sender};
use anemone_ws::reactor::SendWaker;
use tokio::time::Instant;

use super::{EndlessPart, EndlessReply};
use crate::Problem;
use crate::clients::connections::described::Described;
use crate::exchange::visit::Visit;
use crate::read::fan::{Fan, Subscription};
use crate::read::pages::ItemEncoding;
use crate::read::reader::Reader;
use crate::transport_name::TransportName;

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

static DATA: ItemEncoding = ItemEncoding::Messages(|item, out| {
    if let Item::Event { data, .. } = item {
        out.push_str(data);
    }
});
static POSITIONS: ItemEncoding = ItemEncoding::Messages(|item, out| item.write(out));

/// Returns the encoding that a handshake has chosen by its subprotocol.
pub(crate) fn encoding(response: &HandshakeResponse) -> &'static ItemEncoding {
    if response.subprotocol.is_some() { &POSITIONS } else { &DATA }
}

/// A reply that sends events, from a position on, as fast as they can be written.
#[derive(Debug)]
pub(crate) struct InWebSocket {
    reply: EndlessReply,
    encoding: &'static ItemEncoding,
    /// Set once the connection is open.
    subscription: Option<Subscription>,
}

impl InWebSocket {
    pub(crate) fn new(reader: Reader, encoding: &'static ItemEncoding) -> Self {
        Self { reply: EndlessReply::new(reader, Instant::now()), encoding, subscription: None }
    }

    /// Sends the beginning; the connection is woken when there is more.
    pub(crate) fn open(&mut self, fan: &Fan, waker: SendWaker, visit: &Visit, sender: &mut Sender) {
        self.subscription = Some(fan.subscribe(self.topic(), waker));
        let begin = self.reply.begin();
        // Fails only if the connection is closing, when nobody reads any more.
        let _ = self.send_item(&begin, visit, sender);
        self.send_next(visit, sender);
    }

    /// Queues the next part. Events wait in the socket's output, and until that is written, no more are read: a slow
    /// reader is only a position.
    pub(crate) fn send_next(&mut self, visit: &Visit, sender: &mut Sender) {
        if let Err(error) = self.try_next(visit, sender) {
            tracing::debug!(%error, "nothing more can be sent");
        }
    }

    fn try_next(&mut self, visit: &Visit, sender: &mut Sender) -> Result<(), MisuseError> {
        let Some(subscription) = &self.subscription else { return Ok(()) };
        let encoding = self.encoding;
        match self.reply.next(|reader| subscription.read(reader, encoding)) {
            EndlessPart::Page(page) => match page.gap.as_ref().filter(|_| self.ends_at_gaps()) {
                Some(gap) => close_with(&interrupted(gap), visit, sender),
                None => visit.counted(sender, |sender| {
                    page.encoded
                        .messages()
                        .iter()
                        .try_for_each(|message| sender.send_prepared(message))
                }),
            },
            EndlessPart::Item(item) => self.send_item(&item, visit, sender),
            EndlessPart::Ended(notice) => {
                self.send_item(&notice, visit, sender)?;
                let frame = CloseFrame::new(CloseCode::NORMAL, "the run has ended");
                close_with(&frame, visit, sender)
            }
            EndlessPart::Failed { notice, problem } => {
                visit.record_refusal(&problem, &self.path());
                let frame = self.last_frame(notice.as_ref(), &problem);
                notice.iter().try_for_each(|item| self.send_item(item, visit, sender))?;
                close_with(&frame, visit, sender)
            }
            EndlessPart::Nothing | EndlessPart::Over => Ok(()),
        }
    }

    /// Sends the rest of a run, which was cancelled before, unless that is more than `bytes_max`.
    pub(crate) fn finish_run(&mut self, bytes_max: u64, visit: &Visit, sender: &mut Sender) {
        let is_run = self.reply.reader().readable().is_run();
        while is_run && !sender.is_closing() && (sender.queued_bytes() as u64) < bytes_max {
            let before = self.reply.reader().position();
            self.send_next(visit, sender);
            if self.reply.reader().position() == before {
                return;
            }
        }
    }

    pub(crate) fn describe(&self, visit: &Visit, transport: TransportName) -> Described {
        let subprotocol = (!self.is_data_only()).then_some(Item::SUBPROTOCOL);
        let described = visit.describe(transport, "").reading(self.reply.reader().describe());
        Described { subprotocol, ..described }
    }

    /// Completes the line in the access log.
    pub(crate) fn end(&mut self) {
        self.reply.end("closed");
    }

    pub(crate) fn path(&self) -> String {
        self.reply.reader().readable().path_in_log()
    }

    pub(crate) fn topic(&self) -> &Arc<Topic> {
        self.reply.reader().topic()
    }

    fn send_item(
        &self,
        item: &Item<'_>,
        visit: &Visit,
        sender: &mut Sender,
    ) -> Result<(), MisuseError> {
        if self.is_data_only() {
            return Ok(());
        }
        let text = self.encoding.one(item);
        visit.counted(sender, |sender| sender.send(Message::Text(&text)))
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
                (code, problem.detail().to_owned())
            }
            None => (CloseCode::INTERNAL_ERROR, problem.to_json()),
        };
        CloseFrame::new(code, &words)
    }
}

/// Closes a WebSocket with this frame, and records that.
pub(crate) fn close_with(
    frame: &CloseFrame,
    visit: &Visit,
    sender: &mut Sender,
) -> Result<(), MisuseError> {
    visit.record_close(frame);
    sender.close(Some(frame))
}

/// Returns the close frame that tells a reader of data alone that events are missing.
fn interrupted(gap: &Gap) -> CloseFrame {
    CloseFrame::new(GAP, &format!("gap: {}", gap.in_words()))
}
