//! `/broadcast`: passes each message to all members, including its sender.
//!
//! It is not a topic: messages have no position, and are kept only for members that are a little behind. A message
//! goes to every thread once, and from there to the thread's members.

mod everyone;

use std::any::Any;
use std::sync::Arc;

use anemone_ws::Error;
use anemone_ws::proto::{CloseCode, CloseFrame, Message, Sender};
use anemone_ws::reactor::{Broadcast, DeliverError, Handler, Member, SendWaker};

use self::everyone::Everyone;
use crate::clients::permits::ConnectionPermit;
use crate::exchange::handoff::Successor;
use crate::exchange::upgrade::{HandshakeRoute, HandshakeTransport};
use crate::exchange::visit::Visit;
use crate::limits::LimitsTable;
use crate::local::Local;
use crate::transport_name::TransportName;

pub(super) static TRANSPORT: HandshakeTransport = HandshakeTransport {
    name: TransportName::WEBSOCKET,
    subprotocols: &[],
    limits: LimitsTable::Websocket,
    route: HandshakeRoute::Path {
        path: PATH,
        is_offered: |options| options.broadcast,
        take_over: |_, _, _| Ok(Successor::new(Participant::new)),
        post: None,
    },
};

/// Creates the members of a thread, which get the messages of all threads.
fn members(everyone: &Arc<Everyone>, local: &Local) -> Broadcast {
    let members = Broadcast::new(&local.site.memory, local.site.limits.broadcast_bytes_max);
    local.essentials.spawn(everyone.relay(members.clone()));
    members
}

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
    fn new(local: &Local, permit: ConnectionPermit, visit: Visit) -> Self {
        let bytes_max = local.site.limits.broadcast_bytes_max;
        let everyone = local.site.state(|| Arc::new(Everyone::new(bytes_max)));
        let members = local.state(|| members(&everyone, local));
        Self { everyone, members, member: None, visit, _permit: permit }
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
                self.visit.record_limit(frame.code, &reason, Some(limit), PATH);
                // Fails if the connection is closing already.
                let _ = sender.close(Some(&frame));
            }
            Err(error) => tracing::debug!(%error, "nothing more can be sent"),
        }
    }

    fn describe(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(self.visit.describe(TRANSPORT.name, PATH)))
    }

    fn on_error(&mut self, error: &Error) {
        self.visit.record_error(error, PATH);
    }

    fn on_close(&mut self, frame: Option<&CloseFrame>) {
        let described = self.visit.describe(TRANSPORT.name, PATH);
        self.visit.record_end(frame, &described);
    }
}
