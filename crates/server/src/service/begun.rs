//! The call of a service whose request has no body, begun where the request was read.
//!
//! The service is called once. If its reply is whole at once, that is all; otherwise its future, or its reply, is carried
//! on by the task of the HTTP server, which polls it anew with its own waker.

use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_util::future::Either;
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::task::unconstrained;

use super::answer::Answer;
use super::caller::Caller;
use super::caught::Caught;
use super::context::ServiceContext;
use super::media_type::MediaType;
use super::mounted::{Answering, Called, Mounted};
use crate::Problem;
use crate::reply::body::Body;
use crate::reply::plain::{PLAIN_BYTES_MAX, is_plain};
use crate::stop::Stop;

/// The first answer of a service.
pub(crate) enum FirstAnswer {
    /// Its plain reply, or its failure.
    Whole(Result<Response<Bytes>, Problem>),
    /// All others.
    Rest(BegunService),
}

/// A service at work for a request.
pub(crate) struct BegunService {
    mount: Arc<Mounted>,
    called: Called,
}

impl Mounted {
    /// Calls the service, and polls it once.
    pub(crate) fn begin_call(
        self: &Arc<Self>,
        request: Request<Body>,
        caller: Caller,
        context: ServiceContext,
    ) -> FirstAnswer {
        let mut called = match self.call_service(request, caller, context) {
            Ok(called) => called,
            Err(problem) => return FirstAnswer::Whole(Err(problem)),
        };
        // The loop's task has one budget for all its connections, which this service must not use up.
        let first = pin!(unconstrained(&mut called.answering));
        let answered = match first.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answered) => answered,
            Poll::Pending => {
                return FirstAnswer::Rest(BegunService { mount: Arc::clone(self), called });
            }
        };
        let reply = match answered {
            Ok(Ok(reply)) if !reply.status().is_informational() => reply,
            failed => {
                let failed = self.reply(failed, None, called.context);
                return FirstAnswer::Whole(failed.map(|reply| reply.map(|_| Bytes::new())));
            }
        };
        match whole(reply) {
            Either::Left(reply) => FirstAnswer::Whole(Ok(reply)),
            Either::Right(reply) => {
                let called =
                    Called { answering: Caught::new(Box::pin(ready(Ok(reply)))), ..called };
                FirstAnswer::Rest(BegunService { mount: Arc::clone(self), called })
            }
        }
    }
}

impl BegunService {
    /// Waits for the answer, until `stop` reports that the client is gone.
    pub(crate) fn carry_on(self, stop: Stop) -> Answering {
        let Self { mount, called: Called { answering, taken, context } } = self;
        let called = Called { answering, taken, context: context.until(stop) };
        Answering::Waiting(Box::pin(async move { mount.finish(called).await.map(Answer::Reply) }))
    }
}

/// Returns the reply with its body if it is plain, on the left; otherwise the reply.
fn whole(reply: Response<Body>) -> Either<Response<Bytes>, Response<Body>> {
    let (head, body) = reply.into_parts();
    let mut body = Caught::new(body);
    let len = body.ask(|body| http_body::Body::size_hint(body).exact()).ok().flatten();
    let may_be = len.is_some_and(|len| is_plain(&head, len as usize))
        && MediaType::of(&head.headers) != MediaType::Ndjson;
    let taken = if may_be { body.call(|body| body.take_whole(PLAIN_BYTES_MAX)) } else { Ok(None) };
    match taken {
        Ok(Some(bytes)) => {
            // The bytes may have an owner that panics when it is dropped.
            let bytes = Caught::new(bytes);
            let copied = bytes.ask(|bytes| Bytes::copy_from_slice(bytes)).unwrap_or_default();
            Either::Left(Response::from_parts(head, copied))
        }
        Ok(None) => {
            Either::Right(Response::from_parts(head, body.into_inner().unwrap_or_default()))
        }
        Err(panicked) => {
            let failure = stream::iter([Err::<Frame<Bytes>, _>(std::io::Error::other(panicked))]);
            Either::Right(Response::from_parts(head, Body::new(StreamBody::new(failure))))
        }
    }
}
