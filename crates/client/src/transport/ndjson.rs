//! NDJSON: an endless reply, one JSON object a line.

use std::sync::Arc;

use anemone_wire::{Item, Lines};
use futures_util::future::BoxFuture;
use hyper::body::Incoming;

use super::link::{Link, Reading};
use crate::http::{Ask, Http};
use crate::wire::Wire;
use crate::{Error, Malformed};

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
            let mut bytes = &piece[..];
            while let Some(line) = self.lines.decode(&mut bytes).map_err(Malformed::from)? {
                if !line.is_empty() {
                    let line = str::from_utf8(line).map_err(Malformed::from)?;
                    wires.extend(Item::parse(line)?.map(Item::into_owned));
                }
            }
            Ok(())
        })
    }
}
