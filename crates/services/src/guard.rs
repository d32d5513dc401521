//! A hook before the methods of a resource: it lets requests in, or refuses them.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::request::Parts;
use http::{Request, Response};
use tower_service::Service;

use crate::service::refusal;
use crate::{ReplyBody, ResourceError};

/// A service around another one that answers the requests which a rule lets in: for authorisation.
///
/// The rule sees the head of a request with its extensions, such as what the server knows about the client. The reply to
/// a request that it refuses is the problem of its error.
#[derive(Clone)]
pub struct Guard<S> {
    inner: S,
    rule: Arc<Rule>,
}

type Rule = dyn Fn(&Parts) -> Result<(), ResourceError> + Send + Sync;

impl<S> Guard<S> {
    /// Puts a rule before a service.
    pub fn new(
        inner: S,
        rule: impl Fn(&Parts) -> Result<(), ResourceError> + Send + Sync + 'static,
    ) -> Self {
        Self { inner, rule: Arc::new(rule) }
    }
}

impl<S: fmt::Debug> fmt::Debug for Guard<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, B> Service<Request<B>> for Guard<S>
where
    S: Service<Request<B>, Response = Response<ReplyBody>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (head, body) = request.into_parts();
        match (self.rule)(&head) {
            Ok(()) => Box::pin(self.inner.call(Request::from_parts(head, body))),
            Err(error) => Box::pin(async move { Ok(refusal(error.details())) }),
        }
    }
}
