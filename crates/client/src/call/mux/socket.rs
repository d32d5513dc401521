//! The two carriers of `anemone.v1`: a WebSocket, with one message in each of its messages, and TCP, with a length
//! before each message.
//!
//! Both read while they wait to write. A server that cannot write its replies reads no requests, so a client that only
//! writes would wait forever.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use anemone_wire::framing::{self, Decoder};
use anemone_ws::proto::{CloseCode, CloseFrame, MessageKind};
use anemone_ws::{ClientStream, Turn, WebSocket};
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::error::Foreign;
use crate::web_socket::closed;
use crate::{Error, Malformed};

/// The most bytes that are queued for the connection, apart from the rest of the message being sent.
const QUEUED_BYTES_MAX: usize = 32 << 10;

/// A connection of many calls.
pub(super) enum Socket {
    WebSocket(Box<Fragmented>),
    Tcp(Box<Framed>),
}

impl Socket {
    /// Returns true if another message can be queued.
    pub(super) fn has_room(&self) -> bool {
        match self {
            Self::WebSocket(socket) => socket.outgoing.is_empty(),
            Self::Tcp(stream) => stream.outgoing.len() < QUEUED_BYTES_MAX,
        }
    }

    /// Queues a message, which [`turn`](Self::turn) writes.
    pub(super) fn queue(&mut self, message: Bytes) {
        match self {
            Self::WebSocket(socket) => socket.queue(message),
            Self::Tcp(stream) => stream.queue(&message),
        }
    }

    /// Writes and reads. Returns the next message that arrives, or `None` when another message may have room in the
    /// queue.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn turn(&mut self) -> Result<Option<Bytes>, Error> {
        match self {
            Self::WebSocket(socket) => socket.turn().await,
            Self::Tcp(stream) => poll_fn(|cx| stream.poll_turn(cx)).await,
        }
    }

    /// Ends the connection politely.
    pub(super) async fn close(self) {
        if let Self::WebSocket(mut socket) = self {
            let frame = CloseFrame::new(CloseCode::NORMAL, "");
            // It is over in any case.
            let _ = socket.socket.close(Some(&frame)).await;
        }
    }
}

/// A WebSocket that sends long messages in fragments.
pub(super) struct Fragmented {
    socket: WebSocket<ClientStream>,
    /// The rest of the message that is being sent.
    outgoing: Bytes,
    kind: MessageKind,
}

impl Fragmented {
    pub(super) fn new(socket: WebSocket<ClientStream>) -> Self {
        Self { socket, outgoing: Bytes::new(), kind: MessageKind::Text }
    }

    fn queue(&mut self, message: Bytes) {
        let is_text = std::str::from_utf8(&message).is_ok();
        self.kind = if is_text { MessageKind::Text } else { MessageKind::Binary };
        self.outgoing = message;
    }

    async fn turn(&mut self) -> Result<Option<Bytes>, Error> {
        self.send_fragments()?;
        match self.socket.turn().await.map_err(of_turn)? {
            Turn::Message(message) => Ok(Some(message.into_bytes())),
            Turn::Drained => Ok(None),
            Turn::Closed => Err(closed(self.socket.close_frame())),
        }
    }

    fn send_fragments(&mut self) -> Result<(), anemone_ws::Error> {
        let sender = self.socket.sender();
        while !self.outgoing.is_empty() && sender.queued_bytes() < QUEUED_BYTES_MAX {
            let fragment = self.outgoing.split_to(self.outgoing.len().min(QUEUED_BYTES_MAX));
            sender.send_fragment(self.kind, &fragment, self.outgoing.is_empty())?;
        }
        Ok(())
    }
}

/// Converts an error of the connection. A message above the limit becomes a permanent error, since the next attempt
/// would get a message of the same length.
fn of_turn(error: anemone_ws::Error) -> Error {
    use anemone_ws::proto::ProtocolError::{FrameTooBig, InflatedTooBig, MessageTooBig};
    match error {
        anemone_ws::Error::Protocol(
            FrameTooBig { limit, .. } | MessageTooBig { limit, .. } | InflatedTooBig { limit },
        ) => Malformed::TooLong { limit: usize::try_from(limit).unwrap_or(usize::MAX) }.into(),
        error => error.into(),
    }
}

/// Converts the error about a length above the limit. If a server answers in HTTP, its first bytes are read as such a
/// length.
fn too_long(error: framing::TooLong) -> Error {
    match error.len == u32::from_be_bytes(*b"HTTP") as usize {
        true => Foreign::Http.into(),
        false => Malformed::from(error).into(),
    }
}

pub(super) struct Framed {
    stream: ClientStream,
    decoder: Decoder,
    /// The bytes that have arrived and are not decoded yet.
    incoming: BytesMut,
    outgoing: BytesMut,
}

impl Framed {
    pub(super) fn new(stream: ClientStream, message_bytes_max: usize) -> Self {
        let decoder = Decoder::new(message_bytes_max);
        Self { stream, decoder, incoming: BytesMut::new(), outgoing: BytesMut::new() }
    }

    fn queue(&mut self, message: &[u8]) {
        self.outgoing.extend_from_slice(&framing::length(message.len()));
        self.outgoing.extend_from_slice(message);
    }

    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        loop {
            if let Some(message) = self.decode()? {
                return Poll::Ready(Ok(Some(message)));
            }
            if !self.outgoing.is_empty() && self.poll_write(cx)?.is_ready() {
                return Poll::Ready(Ok(None));
            }
            ready!(self.poll_read(cx))?;
        }
    }

    fn decode(&mut self) -> Result<Option<Bytes>, Error> {
        let mut input = &self.incoming[..];
        let message = self.decoder.decode(&mut input).map_err(too_long)?;
        let message = message.map(Bytes::copy_from_slice);
        let taken = self.incoming.len() - input.len();
        self.incoming.advance(taken);
        Ok(message)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        while !self.outgoing.is_empty() {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, &self.outgoing))? {
                0 => return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into())),
                written => self.outgoing.advance(written),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        const READ_BYTES: usize = 16 << 10;
        let mut bytes = [0; READ_BYTES];
        let mut buffer = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
        match buffer.filled() {
            [] => Poll::Ready(Err(Error::Ended)),
            filled => {
                self.incoming.extend_from_slice(filled);
                Poll::Ready(Ok(()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use anemone_ws::proto::ProtocolError;

    use super::*;

    #[test]
    fn a_message_over_the_limit_names_the_limit() {
        for error in [
            ProtocolError::FrameTooBig { len: 9, limit: 8 },
            ProtocolError::MessageTooBig { len: 9, limit: 8 },
            ProtocolError::InflatedTooBig { limit: 8 },
        ] {
            let error = of_turn(error.into());
            assert!(
                matches!(error, Error::Malformed(Malformed::TooLong { limit: 8 })),
                "{error:?}"
            );
        }
        assert!(matches!(of_turn(anemone_ws::Error::Closed), Error::WebSocket(_)));
    }
}
