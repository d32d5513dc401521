//! Plain WebSocket: each message is one event's data and nothing else.
//!
//! With the subprotocol `anemone.events` each message is `{"position":P,"time":…,"data":…}`, the first one
//! `{"position":P}`, where reading begins. On both, a gap is `{"gap":{…}}` before the events after it.

use anemone_hub::{After, Page};
use anemone_ws::proto::handshake::{self, Accepted, Fields, Offer};
use anemone_ws::proto::{CloseCode, CloseFrame, Message, Sender};
use anemone_ws::{Error, Turn, WebSocket};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version, header};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::body::{Body, full};
use crate::reading::Reader;
use crate::routes::{Read, Stop};
use crate::{Kind, Problem, encode};

/// The subprotocol whose messages carry positions.
const EVENTS: &str = "anemone.events";

/// What is to be done with the connection once the handshake's response is written.
#[derive(Debug)]
pub(crate) struct Handover {
    reader: Reader,
    with_positions: bool,
}

/// Whether the request asks for a WebSocket.
pub(crate) fn is_asked<B>(request: &Request<B>) -> bool {
    let upgrade = request.headers().get(header::UPGRADE);
    upgrade.is_some_and(|value| {
        value.as_bytes().to_ascii_lowercase().windows(9).any(|part| part == b"websocket")
    })
}

/// Answers the handshake. Without `after`, the messages are what comes from now on.
pub(crate) fn answer<B>(
    request: &Request<B>,
    read: Read,
) -> Result<(Response<Body>, Handover), Problem> {
    let offer = Offer {
        method: request.method().as_str(),
        is_http_1_1: request.version() >= Version::HTTP_11,
        fields: &Headers(request.headers()),
    };
    let accepted = handshake::respond(offer, &[EVENTS]).map_err(refusal)?;
    let with_positions = accepted.subprotocol.is_some();
    let reader = read.open(After::Latest)?;
    Ok((switching_protocols(accepted), Handover { reader, with_positions }))
}

struct Headers<'a>(&'a HeaderMap);

impl Fields for Headers<'_> {
    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.0.get_all(name).into_iter().map(HeaderValue::as_bytes)
    }
}

fn switching_protocols(accepted: Accepted) -> Response<Body> {
    let mut response = Response::new(full(""));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    let fields = [
        (header::SEC_WEBSOCKET_ACCEPT, Some(accepted.accept)),
        (header::SEC_WEBSOCKET_PROTOCOL, accepted.subprotocol),
    ];
    for (name, value) in fields {
        // Base64 and a token are always values of a field.
        if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
            headers.insert(name, value);
        }
    }
    response
}

fn refusal(error: handshake::HandshakeError) -> Problem {
    let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_REQUEST);
    let problem = Problem::new(Kind::BadHandshake, error.to_string()).status(status);
    error.fields().iter().fold(problem, |problem, (name, value)| {
        problem.field(name, HeaderValue::from_static(value))
    })
}

/// Sends the topic's events until either end closes.
pub(crate) async fn serve<S>(
    mut socket: WebSocket<S>,
    handover: Handover,
    mut stop: Stop,
) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Handover { mut reader, with_positions } = handover;
    if with_positions {
        let opening = format!(r#"{{"position":"{}"}}"#, reader.position());
        socket.sender().send(Message::Text(&opening))?;
    }
    loop {
        // What was read from the log waits in the socket's output; while it does, nothing more is
        // read: a slow reader is only a position.
        let is_writable = socket.sender().queued_bytes() == 0 && !socket.sender().is_closing();
        let close = tokio::select! {
            turn = socket.turn() => match turn? {
                Turn::Message(_) => Some(CloseFrame::new(CloseCode::POLICY_VIOLATION, "this topic takes no messages")),
                Turn::Drained => None,
                Turn::Closed => return Ok(()),
            },
            () = reader.ready(), if is_writable => match reader.read() {
                Ok(page) => {
                    send(socket.sender(), &page, with_positions)?;
                    None
                }
                Err(problem) => Some(CloseFrame::new(CloseCode::INTERNAL_ERROR, &problem.to_json())),
            },
            () = stop.stopped(), if !socket.sender().is_closing() => {
                Some(CloseFrame::new(CloseCode::GOING_AWAY, "the server stops"))
            }
        };
        if let Some(frame) = close
            && !socket.sender().is_closing()
        {
            socket.sender().close(Some(&frame))?;
        }
    }
}

fn send(sender: &mut Sender, page: &Page, with_positions: bool) -> Result<(), Error> {
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
