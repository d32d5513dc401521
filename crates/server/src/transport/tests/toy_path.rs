//! A WebSocket of the tests alone, at a path of its own: the message to each visitor says how many came before.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anemone_ws::proto::{Message, Sender};
use anemone_ws::reactor::{Handler, SendWaker};

use crate::clients::permits::ConnectionPermit;
use crate::exchange::handoff::Successor;
use crate::exchange::upgrade::{HandshakeRoute, HandshakeTransport};
use crate::limits::LimitsTable;
use crate::transport_name::{TransportName, TransportWords};

pub(crate) static TRANSPORT: HandshakeTransport = HandshakeTransport {
    name: TransportName::new(&TransportWords { name: "toy", why: "a test" }),
    subprotocols: &[],
    limits: LimitsTable::Websocket,
    route: HandshakeRoute::Path {
        path: "/toy",
        is_offered: |options| options.broadcast,
        take_over: |site, _, _| {
            let Visitors(count) = site.state(Visitors::default);
            let before = count.fetch_add(1, Ordering::Relaxed);
            Ok(Successor::new(move |_, permit, _| Toy { before, _permit: permit }))
        },
        post: None,
    },
};

#[derive(Clone, Default)]
struct Visitors(Arc<AtomicUsize>);

struct Toy {
    before: usize,
    _permit: ConnectionPermit,
}

impl Handler for Toy {
    fn on_open(&mut self, _waker: SendWaker, sender: &mut Sender) {
        sender.send(Message::Text(&self.before.to_string())).unwrap();
    }

    fn on_message(&mut self, _message: Message<'_>, _sender: &mut Sender) {}
}
