//! The server's opening on a bare stream (RFC 6455 section 4.2), without an HTTP server around it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anemone_proto::handshake::{Answered, HandshakeError, ServerHandshake};
use anemone_proto::{Config, DeflateConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::{Linger, WebSocket};

/// The time that a client may take for its request without being told otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The time that a refused client may take to read the refusal and end its side.
const LINGER: Duration = Duration::from_secs(1);

/// Answers the opening handshake on `stream`, with the defaults of [`Accept`].
///
/// # Errors
/// As [`Accept::accept`].
///
/// # Cancel safety
/// Dropping the future drops the stream.
pub async fn accept<S>(stream: S) -> Result<Accepted<S>, AcceptError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    Accept::default().accept(stream).await
}

/// The options by which connections are accepted. One value serves many connections.
///
/// The request's path and `Origin` are not judged: what any page may not do, an HTTP server in front
/// has to refuse (section 10.2).
#[derive(Clone, Debug)]
pub struct Accept {
    subprotocols: Vec<String>,
    pub(crate) config: Arc<Config>,
    pub(crate) deflate: Option<DeflateConfig>,
    timeout: Duration,
}

/// An accepted connection.
#[derive(Debug)]
#[non_exhaustive]
pub struct Accepted<S> {
    /// The connection, open.
    pub socket: WebSocket<S>,
    /// The request's target, as `/chat?room=1`.
    pub target: String,
}

impl Default for Accept {
    fn default() -> Self {
        Self { subprotocols: Vec::new(), config: Arc::default(), deflate: None, timeout: TIMEOUT }
    }
}

impl Accept {
    /// Subprotocols that can be spoken. The first of the client's that is among them is chosen, and
    /// none if none is. Default: none.
    #[must_use]
    pub fn subprotocols(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.subprotocols = names.into_iter().map(Into::into).collect();
        self
    }

    /// Limits and times of the connection, once it is open. Default: [`Config::default`].
    #[must_use]
    pub fn config(mut self, config: impl Into<Arc<Config>>) -> Self {
        self.config = config.into();
        self
    }

    /// Accepts offers of permessage-deflate (RFC 7692). Default: they are declined.
    #[must_use]
    pub fn deflate(mut self, config: DeflateConfig) -> Self {
        self.deflate = Some(config);
        self
    }

    /// Sets the time that the request and the response to it may take. Default: 10 seconds.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Answers the opening handshake on `stream`: TCP, TLS that is accepted already, a pipe in memory.
    ///
    /// A request that cannot be accepted is answered with its reason, and the client given a second
    /// to read it.
    ///
    /// # Errors
    /// [`AcceptError`] says why there is no connection; the stream is dropped then.
    ///
    /// # Cancel safety
    /// Dropping the future drops the stream.
    pub async fn accept<S>(&self, mut stream: S) -> Result<Accepted<S>, AcceptError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let answering = timeout(self.timeout, self.answer(&mut stream)).await;
        let answered = answering.unwrap_or(Err(AcceptError::TimedOut { limit: self.timeout }));
        match answered {
            Ok(Answered { target, accepted, rest }) => {
                let socket = WebSocket::server(stream, Arc::clone(&self.config), rest)
                    .agreed(accepted.subprotocol, accepted.deflate.as_ref());
                Ok(Accepted { socket, target })
            }
            Err(error) => {
                if let Some(response) = error.response() {
                    // Whether the client reads it or not, it is refused.
                    let refused = Linger::new(stream, LINGER).finish(response.as_bytes());
                    let _ = timeout(LINGER, refused).await;
                }
                Err(error)
            }
        }
    }

    pub(crate) fn supported(&self) -> Vec<&str> {
        self.subprotocols.iter().map(String::as_str).collect()
    }

    async fn answer<S>(&self, stream: &mut S) -> Result<Answered, AcceptError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let supported = self.supported();
        let mut handshake = ServerHandshake::default();
        if let Some(deflate) = &self.deflate {
            handshake = handshake.with_deflate(deflate.clone());
        }
        let mut buffer = [0; 4096];
        loop {
            let len = stream.read(&mut buffer).await?;
            if len == 0 {
                return Err(AcceptError::Ended);
            }
            if let Some(answered) = handshake.receive(&buffer[..len], &supported)? {
                stream.write_all(answered.accepted.response().as_bytes()).await?;
                stream.flush().await?;
                return Ok(answered);
            }
        }
    }
}

/// Why a connection was not accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// The request is not one that can be accepted; the client was told.
    #[error("handshake refused")]
    Refused(#[from] HandshakeError),
    /// No whole request came in time; the client was told.
    #[error("no complete request within {limit:?}")]
    TimedOut {
        /// [`Accept::timeout`].
        limit: Duration,
    },
    /// The client ended the stream before its request was whole.
    #[error("stream ended before the request was complete")]
    Ended,
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl AcceptError {
    /// The refusal that the client is told, if it may still be there.
    fn response(&self) -> Option<String> {
        match self {
            Self::Refused(error) => Some(ServerHandshake::refusal(error)),
            Self::TimedOut { .. } => Some(
                "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    .to_owned(),
            ),
            Self::Ended | Self::Io(_) => None,
        }
    }
}
