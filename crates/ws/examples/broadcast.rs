//! Sends every message to everybody, in one loop on one thread, without an HTTP server:
//! `cargo run --package anemone-ws --example broadcast`

use std::error::Error;
use std::net::TcpListener;
use std::rc::Rc;
use std::time::Duration;

use anemone_ws::proto::handshake::{HANDSHAKE_BYTES_MAX, ServerHandshake};
use anemone_ws::proto::{CloseCode, CloseFrame, Message, Prepared, Sender};
use anemone_ws::reactor::{Broadcast, Handler, Member, Opening, Reactor, SendWaker};
use anemone_ws::{Memory, Negotiated};

/// The time that a client has for its handshake.
const OPENING_TIMEOUT: Duration = Duration::from_secs(10);
/// The newest messages that are kept for those who are slow.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// One connection.
struct Participant {
    everybody: Broadcast,
    member: Option<Member>,
}

impl Handler for Participant {
    fn on_open(&mut self, waker: SendWaker, _sender: &mut Sender) {
        self.member = Some(self.everybody.join(waker));
    }

    fn on_message(&mut self, message: Message<'_>, _sender: &mut Sender) {
        // Encoded once, whoever reads it.
        self.everybody.send(Rc::new(Prepared::new(message)));
    }

    fn on_ready(&mut self, sender: &mut Sender) {
        let delivered = self.member.as_mut().map(|member| member.deliver(sender));
        if let Some(Err(error)) = delivered {
            // It was too slow, or is closing already.
            let _ = sender
                .close(Some(&CloseFrame::new(CloseCode::POLICY_VIOLATION, &error.to_string())));
        }
    }
}

/// Makes a connection a WebSocket, once its handshake is whole.
fn decide(everybody: Broadcast) -> impl FnOnce(&[u8]) -> Opening {
    move |first| match ServerHandshake::default().receive(first, &[]) {
        Ok(None) => Opening::more(HANDSHAKE_BYTES_MAX, decide(everybody)),
        Ok(Some(answered)) => {
            let negotiated = Negotiated { first: answered.rest, ..Negotiated::default() };
            let response = answered.response.head().into_bytes();
            Opening::web_socket(response, negotiated, Participant { everybody, member: None })
        }
        Err(error) => Opening::refuse(ServerHandshake::refusal(&error).into_bytes()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    eprintln!("listening on ws://{}/", listener.local_addr()?);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build_local(Default::default())?.block_on(async {
        let everybody = Broadcast::new(&Memory::default(), KEPT_BYTES_MAX);
        let reactor = Reactor::start(Memory::default())?;
        let adopting = reactor.clone();
        reactor.listen(listener, move |stream| {
            adopting.adopt_opening(stream, OPENING_TIMEOUT, decide(everybody.clone()));
        });
        reactor.panicked().await;
        Err("the loop panicked".into())
    })
}
