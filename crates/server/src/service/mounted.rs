//! A mount in a server: answers the requests for it, on every transport.

use std::error::Error;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use anemone_hub::run::{RunInput, RunWork};
use bytes::Bytes;
use futures_util::FutureExt;
use http::{Request, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use tokio::time::sleep;

use super::answer::Answer;
use super::caller::Caller;
use super::caught::{Caught, Panicked, ServiceError, catch};
use super::context::ServiceContext;
use super::held_request::held_bytes;
use super::mount::{Mount, MountService, ResponseFuture};
use super::start::{StartReply, StartRequest, input};
use super::starter::{ReadingThread, RunStarter};
use super::upload::{self, Taken};
use super::{download, work};
use crate::reply::body::{Body, BoxError, full};
use crate::request::methods::only_starts;
use crate::{Kind, Problem};

#[derive(Debug)]
pub(crate) struct Mounted {
    pub(super) mount: Mount,
    pub(super) starter: Arc<RunStarter>,
}

impl Deref for Mounted {
    type Target = Mount;

    fn deref(&self) -> &Mount {
        &self.mount
    }
}

impl Mounted {
    /// Answers a request, on any transport: calls the service, or starts a run.
    ///
    /// # Errors
    /// When the service fails or takes too long, the body does not come, or the client is gone before there is a
    /// reply.
    ///
    /// # Cancel safety
    /// Dropping the future drops the service's work for the request.
    pub(crate) fn answer(
        self: &Arc<Self>,
        request: Request<Body>,
        caller: Caller,
        context: ServiceContext,
    ) -> Answering {
        Answering::New(Arc::clone(self), request, caller, context)
    }

    /// Begins to answer. What is answered at once needs no memory.
    fn begin(
        self: Arc<Self>,
        request: Request<Body>,
        caller: Caller,
        context: ServiceContext,
        cx: &mut Context<'_>,
    ) -> Result<Result<Answer, Problem>, AnswerFuture> {
        let start = match self.start_reply(&request) {
            Ok(start) => start,
            Err(problem) => return Ok(Err(problem)),
        };
        let mut rest: AnswerFuture = if let Some(reply) = start {
            Box::pin(self.start_run(reply, request, caller, context))
        } else {
            let mut called = match self.call_service(request, caller, context) {
                Ok(called) => called,
                Err(problem) => return Ok(Err(problem)),
            };
            if let Poll::Ready(answered) = called.answering.poll_unpin(cx) {
                return Ok(self.reply(answered, called.taken, called.context).map(Answer::Reply));
            }
            Box::pin(async move { self.finish(called).await.map(Answer::Reply) })
        };
        // This sets the timers of a call.
        match rest.poll_unpin(cx) {
            Poll::Ready(answer) => Ok(answer),
            Poll::Pending => Err(rest),
        }
    }

    async fn start_run(
        self: Arc<Self>,
        reply: StartReply,
        request: Request<Body>,
        caller: Caller,
        context: ServiceContext,
    ) -> Result<Answer, Problem> {
        let Mount { path, start_right, .. } = &self.mount;
        let (is_run_service, start_right) = (self.is_run_service(), *start_right);
        let start =
            StartRequest { reply, path, is_run_service, start_right, starter: &self.starter };
        let (mount, own) = (Arc::clone(&self), context.clone());
        let make_work = move |request| mount.work(request, caller, &own);
        start.answer(request, caller, context, |body| self.reading_thread(body), make_work).await
    }

    /// Returns the reply that a request asks for if it starts a run.
    fn start_reply(&self, request: &Request<Body>) -> Result<Option<StartReply>, Problem> {
        let is_run_service = self.is_run_service();
        // Pages start no runs.
        if !is_run_service && self.is_http_only() {
            return Ok(None);
        }
        StartReply::of(is_run_service, request)
    }

    /// Returns the thread on which the work for a body is made.
    fn reading_thread(&self, body: &[u8]) -> Result<ReadingThread, Problem> {
        let is_quick = match &self.service {
            MountService::Run(service) => catch(|| service.prepares_at_once(body))
                .map_err(|panicked| self.failed(&panicked))?,
            _ => body.len() <= RunInput::AT_ONCE_BYTES_MAX,
        };
        Ok(if is_quick { ReadingThread::Network } else { ReadingThread::Other })
    }

    /// Returns the work of a run that a request starts, and the bytes that it holds besides its own size.
    fn work(
        self: Arc<Self>,
        request: Request<Bytes>,
        caller: Caller,
        context: &ServiceContext,
    ) -> Result<(RunWork, u64), Problem> {
        if let MountService::Run(service) = &self.service {
            let input = input(&request);
            let held =
                input.body.len() + input.path.len() + input.query.as_ref().map_or(0, String::len);
            let prepared = catch(|| service.prepare(input));
            return Ok((prepared.map_err(|panicked| self.failed(&panicked))??, held as u64));
        }
        let held = held_bytes(&request);
        let (own, memory) = (context.of_run(), context.memory.clone());
        // Settled now, since the connection may be gone when the work begins.
        let caller = caller.of_run();
        let call = async move { self.call(request.map(full), caller, own).await };
        Ok((work::of_call(call, memory), held))
    }

    /// Calls the service, and waits for its reply.
    async fn call(
        &self,
        request: Request<Body>,
        caller: Caller,
        context: ServiceContext,
    ) -> Result<Response<Body>, Problem> {
        let called = self.call_service(request, caller, context)?;
        self.finish(called).await
    }

    pub(super) fn call_service(
        &self,
        mut request: Request<Body>,
        caller: Caller,
        context: ServiceContext,
    ) -> Result<Called, Problem> {
        let MountService::Call(answer) = &self.service else {
            return Err(only_starts(request.method()));
        };
        let extensions = request.extensions_mut();
        extensions.remove::<OnUpgrade>();
        extensions.insert(caller);
        extensions.insert(caller.client().waiter());
        let taken = upload::watch(request.body_mut(), context.body_timeout, &context.memory);
        let answering = catch(|| answer(request)).map_err(|panicked| self.failed(&panicked))?;
        Ok(Called { answering: Caught::new(answering), taken, context })
    }

    /// Waits for the reply of the service.
    pub(super) async fn finish(&self, called: Called) -> Result<Response<Body>, Problem> {
        let Called { answering, taken, mut context } = called;
        let answered = self.wait(answering, &mut context, taken.as_ref()).await?;
        self.reply(answered, taken, context)
    }

    /// Returns the reply to a client, from the answer of the service.
    pub(super) fn reply(
        &self,
        answered: Result<Result<Response<Body>, BoxError>, Panicked>,
        taken: Option<Taken>,
        context: ServiceContext,
    ) -> Result<Response<Body>, Problem> {
        if let Some(fault) = taken.as_ref().and_then(Taken::fault) {
            drop(Caught::new(answered));
            return Err(fault.clone());
        }
        match answered {
            Ok(Ok(reply)) if reply.status().is_informational() => {
                let status = reply.status();
                drop(Caught::new(reply));
                Err(self.failed(&Informational(status)))
            }
            Ok(Ok(reply)) => Ok(reply.map(|body| download::watched(body, &self.path, context))),
            Ok(Err(error)) => Err(self.failed(&ServiceError::of(error))),
            Err(panicked) => Err(self.failed(&panicked)),
        }
    }

    /// Waits for an answer, within the limits on the time.
    async fn wait<F: Future + Unpin>(
        &self,
        answering: F,
        context: &mut ServiceContext,
        taken: Option<&Taken>,
    ) -> Result<F::Output, Problem> {
        let timeout = self.timeout.unwrap_or(context.service_timeout);
        let ServiceContext { body_timeout, write_timeout, is_run, .. } = *context;
        let passes = async {
            match taken {
                Some(taken) => taken.overdue(timeout, body_timeout).await,
                None => sleep(timeout).await,
            }
        };
        tokio::select! {
            biased;
            answered = answering => Ok(answered),
            () = context.gone() => Err(Problem::client_gone(write_timeout)),
            () = passes, if !is_run => Err(overdue(timeout)),
        }
    }

    fn failed(&self, error: &(dyn Error + 'static)) -> Problem {
        tracing::error!(error, mount = %self.path, "a service failed");
        Problem::new(Kind::Internal, "the service at this path failed")
    }
}

/// A service at work for a request.
pub(super) struct Called {
    pub(super) answering: Caught<ResponseFuture>,
    /// `None` if the service has the whole body.
    pub(super) taken: Option<Taken>,
    pub(super) context: ServiceContext,
}

/// The rest of the work for a request.
pub(super) type AnswerFuture = Pin<Box<dyn Future<Output = Result<Answer, Problem>> + Send>>;

/// The work of a mount for a request. The mount is asked in the first poll, and only what waits then is kept in memory.
#[expect(clippy::large_enum_variant, reason = "most calls are over before they would be boxed")]
#[must_use]
pub(crate) enum Answering {
    New(Arc<Mounted>, Request<Body>, Caller, ServiceContext),
    Waiting(AnswerFuture),
    Over,
}

impl Future for Answering {
    type Output = Result<Answer, Problem>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Self::Waiting(rest) = &mut *self {
            return rest.poll_unpin(cx);
        }
        let Self::New(mount, request, caller, context) = std::mem::replace(&mut *self, Self::Over)
        else {
            return Poll::Pending;
        };
        match mount.begin(request, caller, context, cx) {
            Ok(answer) => Poll::Ready(answer),
            Err(rest) => {
                *self = Self::Waiting(rest);
                Poll::Pending
            }
        }
    }
}

/// The problem of a service that has not begun its reply in time.
fn overdue(timeout: Duration) -> Problem {
    let detail = format!("the service has not begun its reply within {timeout:?}");
    Problem::new(Kind::ServiceTimeout, detail)
}

/// A service answered without a final status.
#[derive(Debug, thiserror::Error)]
#[error("it answered with the informational status {0}")]
struct Informational(StatusCode);

#[cfg(test)]
mod tests {
    use anemone_hub::run::Runs;
    use anemone_ws::Memory;
    use axum::Router;
    use futures_util::stream;

    use super::*;
    use crate::Limits;
    use crate::peer::Peer;
    use crate::reply::body;
    use crate::request::client::Client;
    use crate::request::proxies::Proxies;

    /// Asks a service that waits for so many seconds once it has the body, whose pieces come after so many seconds each.
    async fn ask(pieces: &'static [u64], wait: u64) -> Result<StatusCode, Problem> {
        let handler = async move |body: Bytes| {
            sleep(Duration::from_secs(wait)).await;
            body.len().to_string()
        };
        let mount = Mount::new("/a", Router::new().fallback(handler)).unwrap();
        let limits = Limits::default();
        let starter = RunStarter::new(&Runs::new(limits.of_runs()), &limits);
        let mount = Mounted { mount, starter: Arc::new(starter) };
        let pieces = stream::unfold(pieces.iter(), |mut pieces| async {
            sleep(Duration::from_secs(*pieces.next()?)).await;
            Some((Bytes::from_static(b"x"), pieces))
        });
        let client = Client::of_connection(Peer::Unknown, &Proxies::default());
        let context = ServiceContext::new(&limits, &Memory::default());
        let request = Request::new(body::stream(pieces));
        let reply = mount.call(request, Caller::new(client, "http"), context).await;
        reply.map(|reply| reply.status())
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_service_begins_when_it_has_the_body() {
        let kind = |asked: Result<StatusCode, Problem>| asked.map_err(|problem| problem.kind());
        assert_eq!(kind(ask(&[], 29).await), Ok(StatusCode::OK));
        assert_eq!(kind(ask(&[], 31).await), Err(Kind::ServiceTimeout));
        assert_eq!(kind(ask(&[20; 100], 29).await), Ok(StatusCode::OK));
        assert_eq!(kind(ask(&[20; 100], 31).await), Err(Kind::ServiceTimeout));
        assert_eq!(kind(ask(&[20, 31], 0).await), Err(Kind::BodyTimeout));
    }
}
