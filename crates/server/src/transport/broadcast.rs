//! `/broadcast`: what one sends, everyone who is connected gets, the sender too.
//!
//! No topic: nothing is kept but for those who are a little behind, nothing has a position. A message goes to
//! every thread once, and from there to the thread's members.

use std::sync::Arc;

use anemone_ws::Error;
use anemone_ws::proto::{CloseCode, CloseFrame, Message, Sender};
use anemone_ws::reactor::{Broadcast, DeliverError, Handler, Member, Waker};

use crate::clients::permits::ConnectionPermit;
use crate::everyone::Everyone;
use crate::exchange::handover::{Successor, Upgrade};
use crate::exchange::visit::Visit;
use crate::limits::LimitsTable;
use crate::local::Local;
use crate::request::fields::Fields;
use crate::request::handshake::Head;
use crate::{Limits, Problem};

/// Answers a handshake.
pub(crate) fn accept<F: Fields + ?Sized>(
    head: &Head<'_, F>,
    everyone: &Arc<Everyone>,
    limits: &Limits,
) -> Result<Upgrade, Problem> {
    let accepted = head.accept(&[], limits.deflate.as_ref())?;
    let everyone = Arc::clone(everyone);
    let make = |local: &Local, permit, visit| Participant::new(everyone, local, permit, visit);
    Ok(Upgrade { accepted, successor: Successor::new(LimitsTable::Websocket, make) })
}

/// One who is connected.
#[derive(Debug)]
pub(crate) struct Participant {
    everyone: Arc<Everyone>,
    members: Broadcast,
    member: Option<Member>,
    visit: Visit,
    _permit: ConnectionPermit,
}

const PATH: &str = "/broadcast";

impl Participant {
    pub(crate) fn new(
        everyone: Arc<Everyone>,
        local: &Local,
        permit: ConnectionPermit,
        visit: Visit,
    ) -> Self {
        Self { everyone, members: local.broadcast.clone(), member: None, visit, _permit: permit }
    }
}

impl Handler for Participant {
    fn open(&mut self, waker: Waker, _sender: &mut Sender) {
        self.member = Some(self.members.join(waker));
    }

    fn message(&mut self, message: Message<'_>, _sender: &mut Sender) {
        self.everyone.post(&message.into());
    }

    fn ready(&mut self, sender: &mut Sender) {
        let Some(member) = &mut self.member else { return };
        match self.visit.counted(sender, |sender| member.deliver(sender)) {
            Ok(()) => {}
            Err(error @ DeliverError::Missed { .. }) => {
                let frame = CloseFrame::new(CloseCode::POLICY_VIOLATION, &error.to_string());
                let (reason, limit) = (error.to_string(), "limits.broadcast_bytes_max");
                self.visit.gives_up(frame.code, &reason, Some(limit), PATH);
                // Refused when it is closing already.
                let _ = sender.close(Some(&frame));
            }
            Err(error) => tracing::debug!(%error, "nothing more can be sent"),
        }
    }

    fn error(&mut self, error: &Error) {
        self.visit.failed(error, PATH);
    }

    fn close(&mut self, frame: Option<&CloseFrame>) {
        self.visit.over(frame);
    }
}
