//! NDJSON: an endless reply with one JSON object per line.

use std::sync::Arc;

use anemone_wire::{Item, Lines};
use futures_util::future::BoxFuture;
use hyper::body::Incoming;

use super::link::{Link, Reading};
use crate::Error;
use crate::http::{Ask, Http};
use crate::item::ServerItem;

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
    fn read<'a>(&'a mut self, items: &'a mut Vec<ServerItem>) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let piece = self.http.piece(&mut self.body).await?.ok_or(Error::Ended)?;
            let mut bytes = &piece[..];
            while let Some(line) = self.lines.decode(&mut bytes)? {
                if !line.is_empty() {
                    items.extend(Item::parse(line)?.map(Item::into_owned));
                }
            }
            Ok(())
        })
    }
}
