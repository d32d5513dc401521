//! One connection: HTTP requests, and what becomes of it after a WebSocket handshake.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use anemone_ws::Agreed;
use anemone_ws::proto::{CloseCode, CloseFrame};
use anemone_ws::reactor::{Handler, Reactor, drive};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::fan::Fan;
use crate::routes::{self, Destination, Handover, Site, Stop};
use crate::transport::{echo, websocket};
use crate::write_deadline::WriteDeadline;

/// What the connections of one thread share.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) site: Arc<Site>,
    pub(crate) reactor: Reactor,
    pub(crate) fan: Fan,
    /// One for each connection there is room for; all threads share them.
    pub(crate) permits: Arc<Semaphore>,
}

impl Local {
    /// Starts the thread's loop.
    pub(crate) fn start(site: Arc<Site>, permits: Arc<Semaphore>) -> io::Result<Self> {
        let reactor = Reactor::start()?;
        Ok(Self { site, reactor, fan: Fan::default(), permits })
    }
}

/// Serves a plain connection until it ends, or until the thread's loop has taken it over.
pub(crate) async fn serve(
    local: Rc<Local>,
    stream: TcpStream,
    stop: Stop,
    permit: OwnedSemaphorePermit,
) {
    if let Some((stream, first, handover)) = requests(&local, stream, stop.clone()).await {
        hand_over(&local, stream, first, handover, stop, permit).await;
    }
}

/// Answers the requests of HTTP/1.1 until the connection ends. After a WebSocket handshake it goes on: the
/// stream, the bytes that came after the handshake, and what is to become of it.
pub(crate) async fn requests<S: AsyncRead + AsyncWrite + Unpin>(
    local: &Local,
    stream: S,
    mut stop: Stop,
) -> Option<(S, Vec<u8>, Handover)> {
    let limits = &local.site.limits;
    let handover = Rc::new(Cell::new(None));
    let service = {
        let (site, stop, handover) = (Arc::clone(&local.site), stop.clone(), Rc::clone(&handover));
        service_fn(move |request| {
            let (site, stop, handover) = (Arc::clone(&site), stop.clone(), Rc::clone(&handover));
            Box::pin(async move {
                let reply = routes::answer(&site, request, stop).await;
                handover.set(reply.handover);
                Ok::<_, Infallible>(reply.response)
            })
        })
    };
    let io = TokioIo::new(WriteDeadline::new(stream, limits.write_timeout));
    let mut http = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(limits.header_bytes_max)
        .max_headers(limits.header_fields_max)
        .serve_connection(io, service);
    // The stream comes back in this very task once the handshake's response is written.
    let mut is_stopping = false;
    let ended = loop {
        tokio::select! {
            ended = std::future::poll_fn(|cx| http.poll_without_shutdown(cx)) => break ended,
            () = stop.stopped(), if !is_stopping => {
                is_stopping = true;
                Pin::new(&mut http).graceful_shutdown();
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "HTTP connection ended");
        return None;
    }
    let parts = http.into_parts();
    let stream = parts.io.into_inner().into_inner();
    let Some(handover) = handover.take() else {
        shut_down(stream).await;
        return None;
    };
    Some((stream, parts.read_buf.to_vec(), handover))
}

/// Has a WebSocket served whose handshake is done.
pub(crate) async fn hand_over<S: Carrier>(
    local: &Local,
    stream: S,
    first: Vec<u8>,
    handover: Handover,
    stop: Stop,
    permit: OwnedSemaphorePermit,
) {
    let (limits, deflate) = (&local.site.limits, handover.deflate);
    match handover.to {
        Destination::Events(subscriber) => {
            let agreed = Agreed { config: Arc::clone(&limits.websocket), deflate, first };
            stream
                .carry(local, agreed, websocket::Events::new(subscriber, local, permit), stop)
                .await;
        }
        Destination::Echo => {
            let agreed = Agreed { config: Arc::clone(&limits.echo), deflate, first };
            stream.carry(local, agreed, echo::Echo::new(permit), stop).await;
        }
    }
}

/// A stream that can carry a WebSocket, and how.
pub(crate) trait Carrier {
    /// Returns once it is over, or somebody else has taken it.
    async fn carry<H: Handler + 'static>(
        self,
        local: &Local,
        agreed: Agreed,
        handler: H,
        stop: Stop,
    );
}

/// In the thread's loop.
impl Carrier for TcpStream {
    async fn carry<H: Handler + 'static>(
        self,
        local: &Local,
        agreed: Agreed,
        handler: H,
        _stop: Stop,
    ) {
        match self.into_std() {
            Ok(stream) => local.reactor.adopt(stream, agreed, handler),
            Err(error) => tracing::debug!(%error, "connection lost in its handshake"),
        }
    }
}

/// A stream whose WebSocket is served by the task that is here.
pub(crate) struct InTask<S>(pub(crate) S);

impl<S: AsyncRead + AsyncWrite + Unpin> Carrier for InTask<S> {
    async fn carry<H: Handler + 'static>(
        self,
        _local: &Local,
        agreed: Agreed,
        handler: H,
        mut stop: Stop,
    ) {
        let farewell = async {
            stop.stopped().await;
            going_away()
        };
        drive(self.0, agreed, handler, farewell).await;
    }
}

/// What every WebSocket is told when the server stops.
pub(crate) fn going_away() -> CloseFrame {
    CloseFrame::new(CloseCode::GOING_AWAY, "the server stops")
}

/// Ends our side politely; nothing more is expected from the client.
async fn shut_down(mut stream: impl AsyncWrite + Unpin) {
    // The client may be gone already.
    let _ = stream.shutdown().await;
}
