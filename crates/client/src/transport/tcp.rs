//! `anemone.v1` on bare TCP, with one reader on it.

use anemone_ws::ClientStream;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::link::{Link, Reading};
use crate::Error;
use crate::wire::frames::{Frames, frame};
use crate::wire::{Wire, mux};

struct Stream {
    stream: ClientStream,
    frames: Frames,
    buffer: Vec<u8>,
}

pub(super) async fn open(reading: &Reading) -> Result<impl Link + use<>, Error> {
    const BUFFER_BYTES: usize = 16 << 10;
    let (_, target) = reading.multiplexed()?;
    let url = reading.address.web_socket("/");
    let mut stream = reading.options.connect(url).open_stream().await?;
    let request = mux::request("GET", mux::READER, &target, b"");
    stream.write_all(&frame(&request)).await?;
    stream.flush().await?;
    let frames = Frames::new(reading.options.limits.event_bytes_max);
    Ok(Stream { stream, frames, buffer: vec![0; BUFFER_BYTES] })
}

impl Link for Stream {
    fn read<'a>(&'a mut self, wires: &'a mut Vec<Wire>) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let read = self.stream.read(&mut self.buffer).await?;
            if read == 0 {
                return Err(Error::Ended);
            }
            let mut refused = None;
            self.frames.receive(&self.buffer[..read], |message| {
                match mux::reading(message) {
                    Ok(wire) => wires.extend(wire),
                    Err(Error::Malformed(error)) => return Err(error),
                    Err(error) => refused = refused.take().or(Some(error)),
                }
                Ok(())
            })?;
            refused.map_or(Ok(()), Err)
        })
    }
}
