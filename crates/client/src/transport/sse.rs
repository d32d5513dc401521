//! Server-sent events.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hyper::body::Incoming;

use super::link::{Link, Reading};
use crate::Error;
use crate::http::{Ask, Http};
use crate::wire::Wire;
use crate::wire::sse::EventStream;

struct Sse {
    http: Http,
    body: Incoming,
    stream: EventStream,
}

pub(super) async fn open(reading: &Reading) -> Result<impl Link + use<>, Error> {
    const TYPE: &str = "text/event-stream";
    let mut http = Http::new(Arc::clone(&reading.address), Arc::clone(&reading.options));
    let answer = http.send(&Ask::get(reading.target(), TYPE)).await?;
    let body = http.expect(answer, TYPE).await?;
    Ok(Sse { http, body, stream: EventStream::new(reading.options.limits.event_bytes_max) })
}

impl Link for Sse {
    fn read<'a>(&'a mut self, wires: &'a mut Vec<Wire>) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let piece = self.http.piece(&mut self.body).await?.ok_or(Error::Ended)?;
            self.stream.receive(&piece, |block| {
                wires.extend(block.parse()?);
                Ok(())
            })?;
            Ok(())
        })
    }
}
