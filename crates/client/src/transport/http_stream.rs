//! An endless reply over HTTP: server-sent events or NDJSON.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hyper::body::Incoming;

use super::link::{Link, Reading};
use crate::http::{Ask, Http};
use crate::item::ServerItem;
use crate::{Error, Malformed};

struct HttpStream<D> {
    http: Http,
    body: Incoming,
    decoder: D,
    decode: Decode<D>,
}

/// Takes the next item from the bytes of the body.
pub(super) type Decode<D> = fn(&mut D, &mut &[u8]) -> Result<Option<ServerItem>, Malformed>;

pub(super) async fn open<D: Send>(
    reading: &Reading,
    content_type: &'static str,
    decoder: D,
    decode: Decode<D>,
) -> Result<impl Link + use<D>, Error> {
    let mut http = Http::new(Arc::clone(&reading.address), Arc::clone(&reading.options));
    let answer = http.send(&Ask::get(reading.target(), content_type)).await?;
    let body = http.expect(answer, content_type).await?;
    Ok(HttpStream { http, body, decoder, decode })
}

impl<D: Send> Link for HttpStream<D> {
    fn read<'a>(&'a mut self, items: &'a mut Vec<ServerItem>) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let piece = self.http.piece(&mut self.body).await?.ok_or(Error::Ended)?;
            let mut bytes = &piece[..];
            while let Some(item) = (self.decode)(&mut self.decoder, &mut bytes)? {
                items.push(item);
            }
            Ok(())
        })
    }
}
