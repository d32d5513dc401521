//! `/broadcast`: what one sends, everyone who is connected gets, the sender too.
//!
//! No topic: nothing is kept but for those who are a little behind, nothing has a position. A message goes to
//! every thread once, and from there to the thread's members.

use std::rc::Rc;
use std::sync::Arc;

use anemone_ws::Error;
use anemone_ws::proto::{CloseCode, CloseFrame, Message, Prepared, Sender};
use anemone_ws::reactor::{Broadcast, DeliverError, Handler, Member, Waker};
use http::Request;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender as Channel};

use crate::connection::Local;
use crate::handshake;
use crate::routes::{Destination, Handover, Reply};
use crate::{Limits, Problem};

/// Messages on their way to a thread; one that is further behind misses some.
const MESSAGES_MAX: usize = 256;

/// A message on its way to the threads.
#[derive(Clone, Debug)]
pub(crate) enum Posted {
    Text(Arc<str>),
    Binary(Arc<[u8]>),
}

impl From<Message<'_>> for Posted {
    fn from(message: Message<'_>) -> Self {
        match message {
            Message::Text(text) => Self::Text(text.into()),
            Message::Binary(bytes) => Self::Binary(bytes.into()),
        }
    }
}

impl Posted {
    fn prepare(&self) -> Prepared {
        Prepared::new(match self {
            Self::Text(text) => Message::Text(text),
            Self::Binary(bytes) => Message::Binary(bytes),
        })
    }
}

/// From each thread to all.
pub(crate) fn channel() -> Channel<Posted> {
    Channel::new(MESSAGES_MAX)
}

/// Has a thread's members get what comes, until the server is gone.
pub(crate) async fn relay(mut messages: Receiver<Posted>, members: Broadcast) {
    loop {
        match messages.recv().await {
            Ok(message) => members.send(Rc::new(message.prepare())),
            Err(RecvError::Lagged(missed)) => members.skip(missed),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Answers a handshake.
pub(crate) fn accept<B>(request: &Request<B>, limits: &Limits) -> Result<Reply, Problem> {
    let accepted = handshake::accept(request, &[], limits.deflate.as_ref())?;
    let handover = Some(Handover { to: Destination::Broadcast, deflate: accepted.deflate.clone() });
    Ok(Reply { response: handshake::switching_protocols(accepted), handover })
}

/// One who is connected.
#[derive(Debug)]
pub(crate) struct Participant {
    everyone: Channel<Posted>,
    members: Broadcast,
    member: Option<Member>,
    _permit: OwnedSemaphorePermit,
}

impl Participant {
    pub(crate) fn new(local: &Local, permit: OwnedSemaphorePermit) -> Self {
        let (everyone, members) = (local.site.broadcast.clone(), local.broadcast.clone());
        Self { everyone, members, member: None, _permit: permit }
    }
}

impl Handler for Participant {
    fn open(&mut self, waker: Waker, _sender: &mut Sender) {
        self.member = Some(self.members.join(waker));
    }

    fn message(&mut self, message: Message<'_>, _sender: &mut Sender) {
        // Refused when nobody listens, but this thread does.
        let _ = self.everyone.send(message.into());
    }

    fn ready(&mut self, sender: &mut Sender) {
        let Some(member) = &mut self.member else { return };
        match member.deliver(sender) {
            Ok(()) => {}
            Err(error @ DeliverError::Missed { .. }) => {
                let frame = CloseFrame::new(CloseCode::POLICY_VIOLATION, &error.to_string());
                // Refused when it is closing already.
                let _ = sender.close(Some(&frame));
            }
            Err(error) => tracing::debug!(%error, "nothing more can be sent"),
        }
    }

    fn error(&mut self, error: &Error) {
        tracing::debug!(error = error as &dyn std::error::Error, "WebSocket connection failed");
    }
}
