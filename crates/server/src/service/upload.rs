//! The body of a request on its way to a service.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use anemone_ws::Memory;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, sleep, sleep_until};

use crate::memory::{counted, counted_piece};
use crate::reply::body::{Body, full, pieces};
use crate::{Kind, Problem};

/// Limits the pauses in the body of a request, and counts the body in `memory`. Returns what is taken of it; `None` if
/// all of it has come already, which is no longer a matter of time.
pub(super) fn watch(body: &mut Body, timeout: Duration, memory: &Memory) -> Option<Taken> {
    let inner = match std::mem::take(body).into_whole() {
        Ok(bytes) => {
            *body = full(counted(memory, bytes));
            return None;
        }
        Err(pieces) => pieces,
    };
    let begun = Instant::now();
    let progress = Mutex::new(Progress { at: begun, is_awaited: false });
    let taken = Taken(Arc::new(TakenState { fault: OnceLock::new(), progress }));
    let (memory, pause) = (memory.clone(), None);
    let upload = Upload { body: inner, timeout, memory, begun, pause, taken: taken.clone() };
    *body = pieces(upload);
    Some(taken)
}

/// The progress of a service through a request's body. Clones are handles to the same one.
#[derive(Clone)]
pub(super) struct Taken(Arc<TakenState>);

struct TakenState {
    /// The reason why the body was given up, if it was.
    fault: OnceLock<Problem>,
    progress: Mutex<Progress>,
}

#[derive(Clone, Copy)]
struct Progress {
    /// The time of the last piece, or of the beginning.
    at: Instant,
    /// True while the service waits for a piece.
    is_awaited: bool,
}

impl Taken {
    /// Returns the reason why the body was given up, if it was.
    pub(super) fn fault(&self) -> Option<&Problem> {
        self.0.fault.get()
    }

    /// Waits until the service has had `timeout` since it got the last piece. While it waits for a piece,
    /// `body_timeout` passes first. Cancel safe.
    pub(super) async fn overdue(&self, timeout: Duration, body_timeout: Duration) {
        let deadline = || {
            let Progress { at, is_awaited } = *self.progress();
            at + timeout + if is_awaited { body_timeout } else { Duration::ZERO }
        };
        let mut sleep = pin!(sleep_until(deadline()));
        // The task that waits here is also the one that wakes for each piece.
        let slept = poll_fn(|cx| {
            let deadline = deadline();
            if sleep.deadline() != deadline {
                sleep.as_mut().reset(deadline);
            }
            sleep.as_mut().poll(cx)
        });
        slept.await;
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.0.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the service has the next piece, or waits for none.
    fn advance(&self) {
        *self.progress() = Progress { at: Instant::now(), is_awaited: false };
    }
}

/// A wait for the next piece, which ends with a problem.
type Pause = Pin<Box<dyn Future<Output = Problem> + Send>>;

struct Upload {
    body: Body,
    timeout: Duration,
    memory: Memory,
    begun: Instant,
    pause: Option<Pause>,
    taken: Taken,
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.taken.advance();
    }
}

impl Upload {
    fn pause(&self) -> Pause {
        let (timeout, begun, memory) = (self.timeout, self.begun, self.memory.clone());
        Box::pin(async move {
            tokio::select! {
                () = sleep(timeout) => {
                    let detail = format!("nothing of the body came for {timeout:?}");
                    Problem::new(Kind::BodyTimeout, detail)
                }
                () = memory.must_release(begun) => Problem::overloaded(),
            }
        })
    }

    fn give_up(&self, problem: Problem) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let error = io::Error::other(problem.detail().to_owned());
        // The client is told the first problem.
        let _ = self.taken.0.fault.set(problem);
        Poll::Ready(Some(Err(error)))
    }
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
            self.taken.progress().is_awaited = true;
            let mut pause = self.pause.take().unwrap_or_else(|| self.pause());
            return match pause.as_mut().poll(cx) {
                Poll::Ready(problem) => self.give_up(problem),
                Poll::Pending => {
                    self.pause = Some(pause);
                    Poll::Pending
                }
            };
        };
        self.pause = None;
        self.taken.advance();
        let Some(Ok(frame)) = frame else { return Poll::Ready(frame) };
        let frame = frame.map_data(|data| counted_piece(&self.memory, data));
        if self.memory.is_exceeded() {
            return self.give_up(Problem::overloaded());
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::BodyExt;

    use super::*;
    use crate::reply::body;

    /// A body whose pieces come each 20 s after the one before.
    fn pieces(lens: Vec<usize>, memory: &Memory) -> (Body, Taken) {
        let pieces = stream::unfold(lens.into_iter(), |mut lens| async {
            let len = lens.next()?;
            sleep(Duration::from_secs(20)).await;
            Some((Bytes::from(vec![0; len]), lens))
        });
        let mut body = body::stream(pieces);
        let taken = watch(&mut body, Duration::from_secs(30), memory).unwrap();
        (body, taken)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_goes_on_may_take_long() {
        let (body, taken) = pieces(vec![1; 100], &Memory::default());
        assert_eq!(body.collect().await.unwrap().to_bytes().len(), 100);
        assert_eq!(taken.fault(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn pieces_count_until_they_are_dropped_and_none_comes_above_the_limit() {
        let memory = Memory::new(10_000);
        let (mut body, taken) = pieces(vec![1, 4000, 4000, 4000], &memory);
        let mut kept = Vec::new();
        for bytes in [1, 4001, 8001] {
            kept.push(body.frame().await.unwrap().unwrap());
            let beside = memory.held_bytes() - bytes;
            assert!((100..1000).contains(&beside), "a tiny piece costs more than its bytes");
        }
        assert!(body.frame().await.unwrap().is_err());
        assert_eq!(taken.fault(), Some(&Problem::overloaded()));
        drop(kept);
        assert_eq!(memory.held_bytes(), 0);
    }
}
