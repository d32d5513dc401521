//! Server-sent events.

use std::sync::Arc;

use anemone_wire::EventStream;
use futures_util::future::BoxFuture;
use hyper::body::Incoming;

use super::link::{Link, Reading};
use crate::Error;
use crate::http::{Ask, Http};
use crate::item::ServerItem;

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
    fn read<'a>(&'a mut self, items: &'a mut Vec<ServerItem>) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let piece = self.http.piece(&mut self.body).await?.ok_or(Error::Ended)?;
            let mut bytes = &piece[..];
            while let Some(item) = self.stream.decode(&mut bytes)? {
                items.push(item);
            }
            Ok(())
        })
    }
}
