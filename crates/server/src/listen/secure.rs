//! A connection that begins with TLS.

use std::rc::Rc;

use anemone_ws::Linger;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use crate::clients::connections::described::WireProtocol;
use crate::clients::permits::ConnectionPermit;
use crate::cost::TLS_BYTES;
use crate::listen::connection;
use crate::listen::http2;
use crate::local::Local;
use crate::peer::Peer;
use crate::socket::LINGER;
use crate::socket::ahead::SeesEnd;
use crate::socket::write_deadline::WriteDeadline;
use crate::stop::Stop;
use crate::tls::{ALPN_HTTP2, Tls};
use crate::{Kind, Problem};

/// A socket with a time limit for writes.
type Guarded = WriteDeadline<TcpStream>;

impl<S: SeesEnd> SeesEnd for Box<TlsStream<S>> {
    fn sees_end(&self) -> bool {
        self.get_ref().0.sees_end()
    }
}

/// Serves a connection until it ends: the TLS handshake, then the negotiated HTTP version.
///
/// Each part has its own allocation, which is freed when the part is over.
pub(crate) async fn serve(
    local: Rc<Local>,
    stream: TcpStream,
    peer: Peer,
    tls: Tls,
    stop: Stop,
    permit: ConnectionPermit,
) {
    let limits = &local.site.limits;
    let limit = limits.tls_handshake_timeout;
    let _held = local.site.memory.reserve(TLS_BYTES);
    // The deadline is below TLS, which buffers output and sends close_notify.
    let stream = WriteDeadline::new(stream, limits.write_timeout, &local.site.memory).counting();
    let stream = match Box::pin(timeout(limit, shake_hands(stream, &tls))).await {
        // Boxed, because it is large and would enlarge every future that holds it.
        Ok(Some(stream)) => Box::new(stream),
        Ok(None) => return,
        Err(_) => {
            tracing::debug!("a TLS handshake took longer than {limit:?}");
            return;
        }
    };
    if stream.get_ref().1.alpn_protocol() == Some(ALPN_HTTP2) {
        return Box::pin(http2::serve(local, stream, peer, stop, permit)).await;
    }
    let from = (peer, WireProtocol::Http1Tls);
    let requests = connection::requests(&local, stream, from, None, stop.clone());
    let requests = Box::pin(requests).await;
    if let Some((mut stream, first, handoff)) = requests {
        // A WebSocket has its own timeouts.
        stream.get_mut().0.lift();
        handoff.in_task(&local, first, permit, (stream, stop, WireProtocol::Http1Tls)).await;
    }
}

/// Returns `None` if it failed; the client has then been told.
async fn shake_hands(stream: Guarded, tls: &Tls) -> Option<TlsStream<Guarded>> {
    let mut begin = [0];
    // A client whose first byte is a letter uses plain HTTP; every TLS handshake begins with 22.
    if matches!(stream.get_ref().peek(&mut begin).await, Ok(1)) && begin[0].is_ascii_uppercase() {
        let detail = "this port speaks TLS; use https:// or wss://";
        turn_away(stream, Problem::new(Kind::TlsRequired, detail).to_http1().as_bytes()).await;
        return None;
    }
    match tls.acceptor().accept(stream).into_fallible().await {
        Ok(stream) => Some(stream),
        Err((error, stream)) => {
            tracing::debug!(%error, "TLS handshake failed");
            turn_away(stream, &[]).await;
            None
        }
    }
}

/// Sends a last message and closes the connection.
async fn turn_away(stream: Guarded, last: &[u8]) {
    // Fails if the client is gone.
    let _ = Linger::new(stream, LINGER).finish(last).await;
}
