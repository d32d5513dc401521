//! One connection: HTTP requests, and what becomes of it after a WebSocket handshake.

use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;

use anemone_ws::{Error, WebSocket};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;

use crate::routes::{self, Site, Stop};
use crate::transport::websocket;
use crate::write_deadline::WriteDeadline;

/// Serves a connection to its end.
pub(crate) async fn serve(site: Arc<Site>, stream: TcpStream, mut stop: Stop) {
    let limits = &site.limits;
    let handover = Rc::new(Cell::new(None));
    let service = {
        let (site, stop, handover) = (Arc::clone(&site), stop.clone(), Rc::clone(&handover));
        service_fn(move |request| {
            let (site, stop, handover) = (Arc::clone(&site), stop.clone(), Rc::clone(&handover));
            Box::pin(async move {
                let reply = routes::answer(&site, &request, stop).await;
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
                std::pin::Pin::new(&mut http).graceful_shutdown();
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "HTTP connection ended");
        return;
    }
    let parts = http.into_parts();
    let stream = parts.io.into_inner().into_inner();
    match handover.take() {
        Some(handover) => {
            let first = parts.read_buf.to_vec();
            // Even an empty piece of it would keep the HTTP parser's buffer alive.
            drop(parts.read_buf);
            let socket = WebSocket::server(stream, Arc::clone(&limits.websocket), first);
            serve_websocket(socket, handover, stop).await;
        }
        None => shut_down(stream).await,
    }
}

async fn serve_websocket(socket: WebSocket<TcpStream>, handover: websocket::Handover, stop: Stop) {
    match websocket::serve(socket, handover, stop).await {
        Ok(()) => {}
        Err(Error::Lost(error)) => tracing::debug!(%error, "WebSocket connection lost"),
        Err(error) => {
            tracing::debug!(error = &error as &dyn std::error::Error, "WebSocket connection failed")
        }
    }
}

/// Ends our side politely; nothing more is expected from the client.
async fn shut_down(mut stream: TcpStream) {
    // The client may be gone already.
    let _ = tokio::io::AsyncWriteExt::shutdown(&mut stream).await;
}
