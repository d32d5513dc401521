//! Long poll: answers once there is an event (RFC 7240 section 4.3).

use anemone_hub::Start;
use http::{HeaderMap, HeaderValue, Response, header};
use tokio::time::{Instant, timeout, timeout_at};

use crate::Problem;
use crate::exchange::many_request::{ManyReading, ManyRequest};
use crate::exchange::page_reply::{page_reply, page_representation};
use crate::exchange::read_request::ReadRequest;
use crate::exchange::read_transport::{LaterAnswer, ReadAnswer, ReadTransport};
use crate::reply::body::Body;
use crate::request::methods::Wanted;
use crate::request::query::{Need, Wait};
use crate::stop::Stop;
use crate::transport_name::{TransportName, TransportWords};

pub(super) static TRANSPORT: ReadTransport = ReadTransport {
    name: TransportName::new(&TransportWords {
        name: "long-poll",
        why: "a request with Prefer: wait or wait=",
    }),
    representation: page_representation(Some(Need::Wait)),
    answer: ReadAnswer::Later(answer),
    many,
};

/// Waits for an event of one of several topics.
fn many<'a>(read: &'a ManyRequest, _: &'a HeaderMap, mut stop: Stop) -> LaterAnswer<'a> {
    Box::pin(async move {
        let wait = read.query.wait.unwrap_or_default();
        let until = Instant::now() + wait.duration;
        let mut reader = read.open(ManyReading::Waiting(TRANSPORT.name))?;
        let has_news = async {
            // A change of the index alone, which nobody asked for, is no news.
            while !reader.has_news()? {
                reader.ready().await;
            }
            Ok::<_, Problem>(())
        };
        tokio::select! {
            news = timeout_at(until, has_news) => news.unwrap_or(Ok(()))?,
            () = stop.interrupted() => {}
        }
        let mut response = read.page_reply(&mut reader, Wanted::All)?;
        acknowledge(wait, &mut response);
        Ok(response)
    })
}

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
        let mut response = page_reply(read, &reader.read_page()?, Wanted::All, "no-store");
        acknowledge(wait, &mut response);
        Ok(response)
    })
}

/// Says how long the reply has waited at most, where a client must be told.
fn acknowledge(wait: Wait, response: &mut Response<Body>) {
    if wait.is_preference || wait.is_cut {
        let applied = HeaderValue::try_from(format!("wait={}", wait.duration.as_secs_f64()));
        if let Ok(applied) = applied {
            response.headers_mut().insert("preference-applied", applied);
        }
    }
    if wait.is_preference {
        response.headers_mut().append(header::VARY, HeaderValue::from_static("Prefer"));
    }
}
