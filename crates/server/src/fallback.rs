//! A service for all paths except the server's own: pages, or the routes of the program that contains the server.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use hyper::upgrade::OnUpgrade;
use tower_service::Service;

use crate::reply::body::{Body, BoxError, boxed};
use crate::{Kind, Problem};

type ResponseFuture = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// A service that answers requests for all paths except the server's own ([`OWN_PATHS`](crate::OWN_PATHS)) and those
/// of files of a [`StaticDir`](crate::StaticDir).
///
/// It gets a request only after the server's checks: the host is one of the server's own names, and the origin, if
/// the request has one, is allowed. [`ClientAddress`](crate::ClientAddress) is among its extensions. The reply gets
/// the protective fields of every reply, unless it sets them itself.
///
/// It cannot take over a connection: `Upgrade` in a request is for the server's own WebSockets.
#[derive(Clone)]
pub struct Fallback {
    answer: Arc<dyn Fn(Request<Body>) -> ResponseFuture + Send + Sync>,
    is_public: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

impl Fallback {
    /// Creates a fallback from an axum `Router`, or any other `tower::Service`. An error of the service becomes a
    /// reply with status 500, and is logged.
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
                answered.await.map_or_else(|error| failed(error.into()), |reply| reply.map(boxed))
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
    pub(crate) async fn answer(&self, mut request: Request<Body>) -> Response<Body> {
        request.extensions_mut().remove::<OnUpgrade>();
        (self.answer)(request).await
    }
}

impl fmt::Debug for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fallback").finish_non_exhaustive()
    }
}

fn failed(error: BoxError) -> Response<Body> {
    tracing::error!(error = &*error as &dyn Error, "the service beside the topics failed");
    Problem::new(Kind::Internal, "the service at this path failed").into_response()
}
