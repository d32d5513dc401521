//! The fast path in the thread's loop: a whole WebSocket handshake, a whole request for a stream, and a whole `GET` for a
//! service that answers at once are answered where their bytes were read.
//!
//! Its only rules of its own say what it leaves to the HTTP server (`parsed`, `at_once`, `routes/begun`): all that it is
//! not sure of, and all calls while requests are logged or the limits of the two differ. A handshake and a call therefore need no task and no second epoll set, and a stream none of the 16 KiB of
//! buffers that the HTTP server keeps for each connection.

use std::mem::MaybeUninit;
use std::rc::Rc;

use anemone_ws::reactor::Opening;

use crate::clients::permits::ConnectionPermit;
use crate::listen::at_once::{self, AtOnce};
use crate::listen::guest::{FirstRequest, Guest, Guests};
use crate::listen::parsed::{FIELDS_MAX, Request, Unparsed, parse};
use crate::local::Local;
use crate::peer::Peer;
use crate::reply::head::{HEAD_BYTES, write_head};
use crate::routes::{self, LoopStream};
use crate::stream::in_loop::InLoop;

/// A connection in the thread's loop, before it is known what becomes of it.
pub(super) struct Undecided {
    pub(super) local: Rc<Local>,
    pub(super) guests: Guests,
    pub(super) peer: Peer,
    pub(super) permit: ConnectionPermit,
}

impl Undecided {
    /// Passes the connection to the HTTP server, which gets the bytes of its first request again.
    fn go_the_long_way(self: Box<Self>, first: FirstRequest) -> Opening {
        Opening::elsewhere(move |stream| {
            let Self { guests, peer, permit, .. } = *self;
            guests.admit(Guest { stream, peer, permit, first });
        })
    }
}

/// The bytes that are awaited if a request is incomplete.
#[derive(Clone, Copy)]
enum Awaits {
    /// None: the HTTP server waits for the rest.
    Nothing,
    /// The rest of its head.
    Head,
}

pub(super) fn decide(undecided: Box<Undecided>, first: &[u8]) -> Opening {
    decide_on(undecided, first, Awaits::Nothing)
}

fn decide_on(undecided: Box<Undecided>, bytes: &[u8], awaits: Awaits) -> Opening {
    let Undecided { local, peer, .. } = &*undecided;
    let (site, peer) = (&local.site, *peer);
    let mut fields = [MaybeUninit::uninit(); FIELDS_MAX];
    match (parse(&site.limits, bytes, &mut fields), awaits) {
        (Ok(request), _) => match at_once::answer(site, peer, &request) {
            // A read often ends within one of many requests, so the rest of the next one is awaited here, for as long as
            // the HTTP server would wait.
            Some(AtOnce::Reply(reply)) => Opening::answered(request.len, reply, |next| {
                decide_on(undecided, next, Awaits::Head)
            }),
            Some(AtOnce::Begun(begun)) => {
                let first = FirstRequest { bytes: bytes.to_vec(), begun: Some(begun) };
                undecided.go_the_long_way(first)
            }
            None => begin_other(undecided, &request, bytes),
        },
        (Err(Unparsed::Incomplete), Awaits::Head) => {
            let bytes_max = site.limits.header_bytes_max;
            Opening::more(bytes_max, move |bytes| decide_on(undecided, bytes, Awaits::Head))
        }
        (Err(_), _) => undecided.go_the_long_way(bytes.to_vec().into()),
    }
}

/// Begins a WebSocket or a stream, if the request asks for one.
fn begin_other(undecided: Box<Undecided>, request: &Request<'_>, bytes: &[u8]) -> Opening {
    let Request { head, len, .. } = request;
    let (local, peer) = (Rc::clone(&undecided.local), undecided.peer);
    if let Some((response, handoff)) = routes::shake_hands(&local.site, peer, head) {
        return handoff.opening(&local, bytes[*len..].to_vec(), undecided.permit, response);
    }
    // A further request after it would not be answered.
    if *len == bytes.len()
        && let Some(LoopStream { reader, encoding, head, place }) =
            routes::begin_stream(&local.site, peer, head)
    {
        let (mut response, permit) =
            (Vec::with_capacity(HEAD_BYTES), undecided.permit.beside(place));
        write_head(&head, &mut response);
        response.extend_from_slice(b"\r\n");
        let stream = InLoop::new(&local, reader, encoding, permit, &mut response);
        return Opening::reply(response, local.site.limits.write_timeout, stream);
    }
    undecided.go_the_long_way(bytes.to_vec().into())
}
