//! NDJSON: an endless reply, one JSON object a line.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hyper::body::Incoming;

use super::link::{Link, Reading};
use crate::Error;
use crate::http::{Ask, Http};
use crate::wire::lines::Lines;
use crate::wire::{Wire, item};

struct Ndjson {
    http: Http,
    body: Incoming,
    lines: Lines,
}

pub(super) async fn open(reading: &Reading) -> Result<impl Link + use<>, Error> {
    const TYPE: &str = "application/x-ndjson";
    let mut http = Http::new(Arc::clone(&reading.address), Arc::clone(&reading.options));
    let answer = http.send(&Ask::get(reading.target(), TYPE)).await?;
    let body = http.expect(answer, TYPE).await?;
    Ok(Ndjson { http, body, lines: Lines::new(reading.options.limits.event_bytes_max) })
}

impl Link for Ndjson {
    fn read<'a>(&'a mut self, wires: &'a mut Vec<Wire>) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let piece = self.http.piece(&mut self.body).await?.ok_or(Error::Ended)?;
            self.lines.receive(&piece, |line| {
                if !line.is_empty() {
                    wires.extend(item::parse_bytes(line)?);
                }
                Ok(())
            })?;
            Ok(())
        })
    }
}
