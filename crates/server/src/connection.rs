//! One connection: HTTP requests, and what becomes of it after a WebSocket handshake.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use anemone_ws::reactor::Reactor;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use crate::fan::Fan;
use crate::routes::{self, Handover, Site, Stop};
use crate::transport::{echo, websocket};
use crate::write_deadline::WriteDeadline;

/// What the connections of one thread share.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) site: Arc<Site>,
    pub(crate) reactor: Reactor,
    pub(crate) fan: Fan,
}

impl Local {
    /// Starts the thread's loop.
    pub(crate) fn start(site: Arc<Site>) -> io::Result<Self> {
        let reactor = Reactor::start()?;
        let fan = Fan::new(reactor.clone());
        Ok(Self { site, reactor, fan })
    }
}

/// Serves a connection until it ends, or until the thread's loop has taken it over.
pub(crate) async fn serve(
    local: Rc<Local>,
    stream: TcpStream,
    mut stop: Stop,
    permit: OwnedSemaphorePermit,
) {
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
        return;
    }
    let parts = http.into_parts();
    let stream = parts.io.into_inner().into_inner();
    let Some(handover) = handover.take() else { return shut_down(stream).await };
    let first = parts.read_buf.to_vec();
    if let Err(error) = hand_over(&local, stream, first, handover, permit) {
        tracing::debug!(%error, "connection lost in its handshake");
    }
}

/// Gives a connection whose handshake is done to the thread's loop.
fn hand_over(
    local: &Local,
    stream: TcpStream,
    first: Vec<u8>,
    handover: Handover,
    permit: OwnedSemaphorePermit,
) -> io::Result<()> {
    let (stream, limits) = (stream.into_std()?, &local.site.limits);
    match handover {
        Handover::Events(handover) => {
            let handler = websocket::Events::new(handover, local, permit);
            local.reactor.adopt(stream, Arc::clone(&limits.websocket), first, handler);
        }
        Handover::Echo => {
            local.reactor.adopt(stream, Arc::clone(&limits.echo), first, echo::Echo::new(permit));
        }
    }
    Ok(())
}

/// Ends our side politely; nothing more is expected from the client.
async fn shut_down(mut stream: TcpStream) {
    // The client may be gone already.
    let _ = stream.shutdown().await;
}
