//! Long poll: a poll that is answered once there is something to tell (RFC 7240 section 4.3).

use anemone_hub::Start;
use http::{HeaderValue, Response, header};
use tokio::time::timeout;

use super::page_response;
use crate::Problem;
use crate::exchange::read_request::ReadRequest;
use crate::reply::body::Body;
use crate::request::query::Wait;
use crate::stop::Stop;

/// Waits for an event after the position, or until the time is up, the server stops or the client has ended its
/// side: then the page is empty.
pub(crate) async fn answer(
    read: &ReadRequest,
    wait: Wait,
    mut stop: Stop,
) -> Result<Response<Body>, Problem> {
    let mut reader = read.open_waiting(Start::Newest)?;
    tokio::select! {
        _ = timeout(wait.duration, reader.ready()) => {}
        () = stop.over() => {}
    }
    let mut response = page_response(read, &reader.read()?, "no-store");
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
}
