//! The server's side of the opening handshake on a bare stream, without an HTTP server (RFC 6455 section 4.2).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anemone_proto::handshake::{Answered, HandshakeError, ServerHandshake};
use anemone_proto::{Config, DeflateConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::WebSocket;
use crate::linger::{Linger, REFUSED_LINGER};

/// The time that a client has for its request by default.
const TIMEOUT: Duration = Duration::from_secs(10);

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

/// Options for accepting connections. One value serves many connections.
///
/// It does not check the request's path and `Origin`. If not every page may connect, an HTTP server in front has to
/// check them (section 10.2).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use anemone_ws::{Accept, Connect};
///
/// let accept = Accept::default().subprotocols(["chat"]);
/// let (ours, theirs) = tokio::io::duplex(4096); // any byte stream, such as a `TcpStream`
/// let client = Connect::new("ws://localhost/room").subprotocols(["chat"]).connect_over(theirs);
/// let (accepted, _client) = tokio::join!(accept.accept(ours), client);
/// let accepted = accepted?;
/// assert_eq!(accepted.target, "/room");
/// assert_eq!(accepted.socket.subprotocol(), Some("chat"));
/// # Ok(())
/// # }
/// ```
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
    /// The open connection.
    pub socket: WebSocket<S>,
    /// The request's target, such as `/chat?room=1`.
    pub target: String,
}

impl Default for Accept {
    fn default() -> Self {
        Self { subprotocols: Vec::new(), config: Arc::default(), deflate: None, timeout: TIMEOUT }
    }
}

impl Accept {
    /// Sets the supported subprotocols. The connection uses the first of the client's subprotocols that is among
    /// them, or else none. Default: none.
    #[must_use]
    pub fn subprotocols(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.subprotocols = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the limits and timeouts of the open connection. Default: [`Config::default`].
    #[must_use]
    pub fn config(mut self, config: impl Into<Arc<Config>>) -> Self {
        self.config = config.into();
        self
    }

    /// Accepts offers of permessage-deflate (RFC 7692). Default: declines them.
    #[must_use]
    pub fn deflate(mut self, config: DeflateConfig) -> Self {
        self.deflate = Some(config);
        self
    }

    /// Sets the time limit for the request and its response together. Default: 10 seconds.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Answers the opening handshake on `stream`: TCP, an accepted TLS stream, or a pipe in memory.
    ///
    /// A client whose request is refused gets the reason, and a second to read it.
    ///
    /// # Errors
    /// [`AcceptError`] says why the handshake failed; the stream is dropped.
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
            Ok(Answered { target, response, rest }) => {
                let socket = WebSocket::server(stream, Arc::clone(&self.config), rest)
                    .negotiated(response.subprotocol, response.deflate.as_ref());
                Ok(Accepted { socket, target })
            }
            Err(error) => {
                if let Some(response) = error.response() {
                    // The result does not depend on whether the client reads the refusal.
                    let refused = Linger::new(stream, REFUSED_LINGER).finish(response.as_bytes());
                    let _ = timeout(REFUSED_LINGER, refused).await;
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
                stream.write_all(answered.response.head().as_bytes()).await?;
                stream.flush().await?;
                return Ok(answered);
            }
        }
    }
}

/// An error of accepting a connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// The request was refused, and the client was told.
    #[error("handshake refused")]
    Refused(#[from] HandshakeError),
    /// The request was not complete in time, and the client was told.
    #[error("no complete request within {limit:?}")]
    TimedOut {
        /// [`Accept::timeout`].
        limit: Duration,
    },
    /// The client ended the stream before its request was complete.
    #[error("stream ended before the request was complete")]
    Ended,
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl AcceptError {
    /// Returns the response for the client, if it may still be there.
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
