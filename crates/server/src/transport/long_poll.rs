//! Long poll: answers once there is an event (RFC 7240 section 4.3).

use anemone_hub::Start;
use http::{HeaderValue, header};
use tokio::time::timeout;

use crate::exchange::page_reply::{page_reply, page_representation};
use crate::exchange::read_request::ReadRequest;
use crate::exchange::read_transport::{LaterAnswer, ReadAnswer, ReadTransport};
use crate::request::query::Need;
use crate::stop::Stop;
use crate::transport_name::TransportName;

pub(super) static TRANSPORT: ReadTransport = ReadTransport {
    name: TransportName::new(&"long-poll"),
    representation: page_representation(Some(Need::Wait)),
    answer: ReadAnswer::Later(answer),
};

/// Waits for an event after the position, or until the time is over, the server stops or the client has ended its
/// side; then the page is empty.
fn answer(read: &ReadRequest, mut stop: Stop) -> LaterAnswer<'_> {
    Box::pin(async move {
        let wait = read.query.wait.unwrap_or_default();
        let mut reader = read.open_waiting(TRANSPORT.name, Start::Newest)?;
        tokio::select! {
            _ = timeout(wait.duration, reader.ready()) => {}
            () = stop.interrupted() => {}
        }
        let mut response = page_reply(read, &reader.read_page()?, "no-store");
        if wait.is_preference || wait.is_cut {
            let applied = HeaderValue::try_from(format!("wait={}", wait.duration.as_secs_f64()));
            if let Ok(applied) = applied {
                response.headers_mut().insert("preference-applied", applied);
            }
        }
        if wait.is_preference {
            response.headers_mut().append(header::VARY, HeaderValue::from_static("Prefer"));
        }
        Ok(response)
    })
}
