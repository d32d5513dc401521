//! `/broadcast`: passes each message to all members, including its sender.
//!
//! It is not a topic: messages have no position, and are kept only for members that are a little behind. A message
//! goes to every thread once, and from there to the thread's members.

use std::sync::Arc;

use anemone_ws::Error;
use anemone_ws::proto::{CloseCode, CloseFrame, Message, Sender};
use anemone_ws::reactor::{Broadcast, DeliverError, Handler, Member, SendWaker};

use crate::Problem;
use crate::clients::permits::ConnectionPermit;
use crate::everyone::Everyone;
use crate::exchange::handoff::Successor;
use crate::exchange::upgrade::{HandshakeRoute, HandshakeTransport};
use crate::exchange::visit::Visit;
use crate::limits::LimitsTable;
use crate::local::Local;
use crate::request::own_path::OwnPath;
use crate::site::Site;
use crate::transport_name::TransportName;

pub(super) static TRANSPORT: HandshakeTransport = HandshakeTransport {
    name: TransportName::new(&"websocket"),
    subprotocols: &[],
    limits: LimitsTable::Websocket,
    route: HandshakeRoute::Path {
        path: OwnPath::Broadcast,
        is_offered: |site| site.broadcast.is_some(),
        take_over: |site, _, _| take_over(site),
        post: None,
    },
};

fn take_over(site: &Site) -> Result<Successor, Problem> {
    let everyone = site.broadcast.clone().ok_or_else(|| Problem::nothing_at(PATH))?;
    Ok(Successor::new(|local, permit, visit| Participant::new(everyone, local, permit, visit)))
}

/// A member.
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
    fn on_open(&mut self, waker: SendWaker, _sender: &mut Sender) {
        self.member = Some(self.members.join(waker));
    }

    fn on_message(&mut self, message: Message<'_>, _sender: &mut Sender) {
        self.everyone.post(&message.into());
    }

    fn on_ready(&mut self, sender: &mut Sender) {
        let Some(member) = &mut self.member else { return };
        match self.visit.counted(sender, |sender| member.deliver(sender)) {
            Ok(()) => {}
            Err(error @ DeliverError::Missed { .. }) => {
                let frame = CloseFrame::new(CloseCode::POLICY_VIOLATION, &error.to_string());
                let (reason, limit) = (error.to_string(), "limits.broadcast_bytes_max");
                self.visit.limited(frame.code, &reason, Some(limit), PATH);
                // Fails if the connection is closing already.
                let _ = sender.close(Some(&frame));
            }
            Err(error) => tracing::debug!(%error, "nothing more can be sent"),
        }
    }

    fn on_error(&mut self, error: &Error) {
        self.visit.failed(error, PATH);
    }

    fn on_close(&mut self, frame: Option<&CloseFrame>) {
        self.visit.over(frame);
    }
}
