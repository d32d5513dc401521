//! The stream below a connection of [`connect`](super::connect()).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
#[cfg(feature = "tls")]
use tokio_rustls::client::TlsStream;

/// TCP, TLS over it, or a Unix socket.
#[derive(Debug)]
pub struct ClientStream(Inner);

#[derive(Debug)]
enum Inner {
    Plain(TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream<TcpStream>>),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl ClientStream {
    pub(super) fn plain(stream: TcpStream) -> Self {
        Self(Inner::Plain(stream))
    }

    #[cfg(feature = "tls")]
    pub(super) fn tls(stream: TlsStream<TcpStream>) -> Self {
        Self(Inner::Tls(Box::new(stream)))
    }

    #[cfg(unix)]
    pub(super) fn unix(stream: UnixStream) -> Self {
        Self(Inner::Unix(stream))
    }
}

/// Calls a function of the inner stream.
macro_rules! delegate {
    ($outer:expr, $function:ident($($argument:expr),*)) => {
        match &mut $outer.get_mut().0 {
            Inner::Plain(stream) => Pin::new(stream).$function($($argument),*),
            #[cfg(feature = "tls")]
            Inner::Tls(stream) => Pin::new(stream.as_mut()).$function($($argument),*),
            #[cfg(unix)]
            Inner::Unix(stream) => Pin::new(stream).$function($($argument),*),
        }
    };
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        delegate!(self, poll_read(cx, buffer))
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        delegate!(self, poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, poll_shutdown(cx))
    }
}
