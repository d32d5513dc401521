//! A service for all paths except the server's own: pages, or the routes of the program that contains the server.

mod caught;
mod download;
mod upload;

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anemone_ws::Memory;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use tower_service::Service;

use self::caught::Caught;
use crate::reply::body::{Body, BoxError, boxed};
use crate::stop::Stop;
use crate::{Kind, Limits, Problem};

type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

/// A service that answers requests for all paths except the server's own ([`OWN_PATHS`](crate::OWN_PATHS)) and those
/// of files of a [`StaticDir`](crate::StaticDir).
///
/// It gets a request only after the server's checks: the host is one of the server's own names, and the origin, if
/// the request has one, is allowed. [`ClientAddress`](crate::ClientAddress) is among its extensions. The reply gets
/// the protective fields of every reply, unless it sets them itself.
///
/// It cannot take over a connection: `Upgrade` in a request is for the server's own WebSockets, and a status of 1xx
/// becomes 500.
///
/// # Threads
/// Handlers run on the threads that serve the readers of topics. A handler must not block: while it does, nobody else
/// on its thread is served, and the server cannot stop that thread. Use tokio's `spawn_blocking` for work that blocks
/// or computes for long. `block_in_place` panics, since the runtime of each thread has only that thread.
///
/// # Clients that leave
/// A handler and its reply are dropped at once when the connection breaks. A client that has only ended its side may
/// still read, and gets its answer. But if nothing of the answer comes for [`Limits::write_timeout`], the handler and
/// its reply are dropped, too.
///
/// # Limits
/// If nothing of a request's body comes for [`Limits::body_timeout`], the handler gets an error from the body, and the
/// client gets 408 whatever the handler answers. A body that goes on may take long, and may be as long as the handler
/// allows; axum's extractors have a limit. The pieces of a body, and those of a reply that the client has not taken,
/// count in [`Limits::memory_max`] until they are dropped, but copies made by the handler do not. Above that limit, an
/// incomplete body gets 503.
#[derive(Clone)]
pub struct Fallback {
    answer: Arc<dyn Fn(Request<Body>) -> ResponseFuture + Send + Sync>,
    is_public: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

impl Fallback {
    /// Creates a fallback from an axum `Router`, or any other `tower::Service`. If the service fails or panics, the
    /// reply has status 500. The log has each failure, also that of a reply's body.
    pub fn new<S, B>(service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let answer = move |request: Request<Body>| -> ResponseFuture {
            let mut service = service.clone();
            Box::pin(async move {
                let answered = async {
                    poll_fn(|cx| service.poll_ready(cx)).await?;
                    service.call(request).await
                };
                Ok(answered.await.map_err(Into::into)?.map(boxed))
            })
        };
        Self { answer: Arc::new(answer), is_public: Arc::new(|_| false) }
    }

    /// Sets the paths whose `GET` and `HEAD` are answered whatever the `Origin` of the request. Default: none.
    ///
    /// Use it for the files of a page. A browser requests them with an `Origin` that cannot match if a proxy changes
    /// `Host`. No page of another origin may read the reply.
    #[must_use]
    pub fn public_at(self, is_public: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self { is_public: Arc::new(is_public), ..self }
    }

    /// Returns true if a path is answered whatever the origin.
    pub(crate) fn is_public(&self, path: &str) -> bool {
        (self.is_public)(path)
    }

    /// Answers a request.
    ///
    /// # Errors
    /// When the service fails, the body does not come, or the client is gone before there is a reply.
    pub(crate) async fn answer(
        &self,
        mut request: Request<Body>,
        limits: &Limits,
        memory: &Memory,
        mut stop: Stop,
    ) -> Result<Response<Body>, Problem> {
        request.extensions_mut().remove::<OnUpgrade>();
        let (request, fault) = upload::watched(request, limits.body_timeout, memory);
        let (reply_stop, grace) = (stop.clone(), limits.write_timeout);
        let answered = tokio::select! {
            biased;
            answered = Caught((self.answer)(request)) => answered,
            () = stop.gone(grace) => return Err(gone(grace)),
        };
        if let Some(fault) = fault.get() {
            return Err(fault.clone());
        }
        match answered.unwrap_or_else(|panicked| Err(panicked.into())) {
            Ok(reply) if reply.status().is_informational() => {
                Err(failed(&Informational(reply.status())))
            }
            Ok(reply) => Ok(reply.map(|body| download::watched(body, memory, reply_stop, grace))),
            Err(error) => Err(failed(&*error)),
        }
    }
}

impl fmt::Debug for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fallback").finish_non_exhaustive()
    }
}

fn failed(error: &(dyn Error + 'static)) -> Problem {
    tracing::error!(error, "the service beside the topics failed");
    Problem::new(Kind::Internal, "the service at this path failed")
}

/// The problem for a client that has ended its side, if it still reads.
fn gone(grace: Duration) -> Problem {
    let detail = format!("there was no answer within {grace:?} after the client ended its side");
    Problem::new(Kind::Internal, detail).status(StatusCode::GATEWAY_TIMEOUT)
}

/// A service answered without a final status.
#[derive(Debug, thiserror::Error)]
#[error("it answered with the informational status {0}")]
struct Informational(StatusCode);
