//! Plain WebSocket: each message is one event's data and nothing else.
//!
//! With the subprotocol `anemone.events` each message is `{"position":P,"time":…,"data":…}`, the first one
//! `{"position":P}`, where reading begins. On both, a gap is `{"gap":{…}}` before the events after it.

use anemone_hub::Page;
use anemone_ws::Error;
use anemone_ws::proto::{CloseCode, CloseFrame, DeflateConfig, Message, MisuseError, Sender};
use anemone_ws::reactor::{Handler, Waker};
use http::Request;
use tokio::sync::OwnedSemaphorePermit;

use crate::connection::Local;
use crate::fan::{Fan, Subscription};
use crate::reading::Reader;
use crate::routes::{Destination, Handover, Read, Reply};
use crate::{Problem, encode, handshake};

/// The subprotocol whose messages carry positions.
const EVENTS: &str = "anemone.events";

/// A reader to be, once the handshake's response is written.
#[derive(Debug)]
pub(crate) struct Subscriber {
    reader: Reader,
    with_positions: bool,
}

/// Answers the handshake. Without `after`, the messages are what comes from now on.
pub(crate) fn answer<B>(
    request: &Request<B>,
    read: Read,
    deflate: Option<&DeflateConfig>,
) -> Result<Reply, Problem> {
    let accepted = handshake::accept(request, &[EVENTS], deflate)?;
    let with_positions = accepted.subprotocol.is_some();
    let reader = read.open_stream()?;
    let to = Destination::Events(Subscriber { reader, with_positions });
    let handover = Some(Handover { to, deflate: accepted.deflate.clone() });
    Ok(Reply { response: handshake::switching_protocols(accepted), handover })
}

/// One reader: sends its topic's events from its position on, whenever they can be written.
#[derive(Debug)]
pub(crate) struct Events {
    reader: Reader,
    with_positions: bool,
    fan: Fan,
    place: Option<Subscription>,
    _permit: OwnedSemaphorePermit,
}

impl Events {
    pub(crate) fn new(subscriber: Subscriber, local: &Local, permit: OwnedSemaphorePermit) -> Self {
        let Subscriber { reader, with_positions } = subscriber;
        Self { reader, with_positions, fan: local.fan.clone(), place: None, _permit: permit }
    }

    /// Queues the next page. What was read waits in the socket's output, and while it does nothing
    /// more is read: a slow reader is only a position.
    fn send_page(&mut self, sender: &mut Sender) -> Result<(), MisuseError> {
        let page = match self.reader.read() {
            Ok(page) => page,
            Err(problem) => {
                return sender
                    .close(Some(&CloseFrame::new(CloseCode::INTERNAL_ERROR, &problem.to_json())));
            }
        };
        send(sender, &page, self.with_positions)?;
        if self.reader.is_cut(&page)
            && let Some(place) = &self.place
        {
            place.wake();
        }
        Ok(())
    }
}

impl Handler for Events {
    fn open(&mut self, waker: Waker, sender: &mut Sender) {
        self.place = Some(self.fan.subscribe(self.reader.topic(), waker));
        if self.with_positions {
            let opening = format!(r#"{{"position":"{}"}}"#, self.reader.position());
            // Nothing was sent before, so nothing can refuse this.
            let _ = sender.send(Message::Text(&opening));
        }
        self.ready(sender);
    }

    fn message(&mut self, _message: Message<'_>, sender: &mut Sender) {
        let frame = CloseFrame::new(CloseCode::POLICY_VIOLATION, "this topic takes no messages");
        // Refused when it is closing already.
        let _ = sender.close(Some(&frame));
    }

    fn ready(&mut self, sender: &mut Sender) {
        if let Err(error) = self.send_page(sender) {
            tracing::debug!(%error, "nothing more can be sent");
        }
    }

    fn error(&mut self, error: &Error) {
        tracing::debug!(error = error as &dyn std::error::Error, "WebSocket connection failed");
    }
}

fn send(sender: &mut Sender, page: &Page, with_positions: bool) -> Result<(), MisuseError> {
    if let Some(gap) = &page.gap {
        sender.send(Message::Text(&encode::gap_notice(gap)))?;
    }
    for event in &page.events {
        if with_positions {
            sender.send(Message::Text(&encode::positioned_event(page, event)))?;
        } else {
            sender.send(Message::Text(event.data.as_str()))?;
        }
    }
    Ok(())
}
