//! `anemone.v1` on bare TCP, with one reader.

use anemone_wire::framing::{self, Decoder};
use anemone_ws::ClientStream;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::link::{self, Link, Reading};
use crate::item::ServerItem;
use crate::{Error, Malformed};

struct Stream {
    stream: ClientStream,
    decoder: Decoder,
    buffer: Vec<u8>,
}

pub(super) async fn open(reading: &Reading) -> Result<impl Link + use<>, Error> {
    const BUFFER_BYTES: usize = 16 << 10;
    let (_, request) = reading.multiplexed()?;
    let url = reading.address.web_socket("/");
    let mut stream = reading.options.connect(url).open_stream().await?;
    stream.write_all(&framing::length(request.len())).await?;
    stream.write_all(&request).await?;
    stream.flush().await?;
    let decoder = Decoder::new(reading.options.limits.event_bytes_max);
    Ok(Stream { stream, decoder, buffer: vec![0; BUFFER_BYTES] })
}

impl Link for Stream {
    fn read<'a>(&'a mut self, items: &'a mut Vec<ServerItem>) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let read = self.stream.read(&mut self.buffer).await?;
            if read == 0 {
                return Err(Error::Ended);
            }
            let mut bytes = &self.buffer[..read];
            while let Some(message) = self.decoder.decode(&mut bytes).map_err(Malformed::from)? {
                items.extend(link::multiplexed_item(message)?);
            }
            Ok(())
        })
    }
}
