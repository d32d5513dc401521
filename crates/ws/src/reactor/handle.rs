//! The handle of a loop, for the code outside it.

use std::cell::RefCell;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::rc::{Rc, Weak};
use std::time::Duration;

use anemone_proto::{CloseFrame, Time};
use tokio::io::{AsyncRead, AsyncWrite};

use super::drive::{Task, drive_as, driven_figures};
use super::handler::{Handler, StreamHandler};
use super::opening::{FirstBytes, Opening};
use super::protocol::{Protocol, StreamProtocol, WebSocketProtocol};
use super::run::Loop;
use super::shared::{Adopted, LoopState};
use super::survey::{ConnectionId, LoopFigures, SurveyedConnection};
use crate::{Memory, Negotiated};

/// The loop of a thread. Clones are handles to the same loop.
#[derive(Clone)]
pub struct Reactor(Rc<LoopState>);

impl Reactor {
    /// Starts the loop as a task of the current local runtime. The loop counts its buffers in `memory`: output that
    /// peers have not taken, and incomplete messages.
    ///
    /// While the memory is exceeded, a connection ends (1013) when its incomplete message grows. [`Memory::relieve`]
    /// also ends connections: first those that have held memory longest, then those whose handlers count the most
    /// open bytes.
    ///
    /// # Errors
    /// Returns an error when there is no file descriptor for the loop's epoll set.
    ///
    /// # Panics
    /// Outside of a `LocalRuntime` or `LocalSet`.
    pub fn start(memory: Memory) -> io::Result<Self> {
        let mut release = memory.releases();
        let shared = Rc::new(LoopState { memory, ..LoopState::default() });
        let turns = Loop::new(Rc::clone(&shared))?;
        tokio::task::spawn_local(turns.run());
        let told = Rc::clone(&shared);
        tokio::task::spawn_local(async move {
            while release.changed().await.is_ok() {
                told.release.set(*release.borrow_and_update());
                told.wakes.notify();
            }
        });
        Ok(Self(shared))
    }

    /// Accepts connections and passes each to `accept`, which may hand it to this loop. The listener must be
    /// non-blocking, and the accepted streams are. When accepting fails, for example because no descriptors are left,
    /// the loop logs it once and tries again ten times a second.
    pub fn listen(&self, listener: TcpListener, accept: impl FnMut(TcpStream) + 'static) {
        self.0.listening.borrow_mut().push((listener, Box::new(accept)));
        self.0.wakes.notify();
    }

    /// Closes all listeners.
    pub fn stop_listening(&self) {
        self.0.is_stopped.set(true);
        // Drops the listeners that the loop has not taken yet. The loop may have no further turn, and an `accept`
        // that holds the loop would keep both alive.
        drop(self.0.listening.take());
        self.0.wakes.notify();
    }

    /// Takes over a connection whose first bytes decide its protocol. `decide` gets the bytes of one read and may
    /// [wait for more](Opening::more), or [answer](Opening::answered) request by request. The loop closes a connection
    /// that is undecided after `timeout`. The stream must be non-blocking.
    pub fn adopt_opening(
        &self,
        stream: TcpStream,
        timeout: Duration,
        decide: impl FnOnce(&[u8]) -> Opening + 'static,
    ) {
        let decide = Box::new(decide);
        self.push(stream, Vec::new(), move |now| Box::new(FirstBytes::new(decide, now, timeout)));
    }

    /// Takes over a WebSocket whose handshake is done. The stream must be non-blocking.
    pub fn adopt<H>(&self, stream: TcpStream, mut negotiated: Negotiated, handler: H)
    where
        H: Handler + 'static,
    {
        let first = std::mem::take(&mut negotiated.first);
        self.push(stream, first, move |now| WebSocketProtocol::boxed(negotiated, handler, now));
    }

    /// Takes over a stream of bytes. The loop closes it after an `idle_timeout` without received bytes, wake-ups, or
    /// progress in writing. The stream must be non-blocking.
    pub fn adopt_stream<H>(&self, stream: TcpStream, idle_timeout: Duration, handler: H)
    where
        H: StreamHandler + 'static,
    {
        self.push(stream, Vec::new(), move |now| StreamProtocol::boxed(handler, idle_timeout, now));
    }

    /// Returns when the loop has panicked, for example in a handler. It no longer serves its connections then.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn panicked(&self) {
        self.0.panicked.notified().await;
    }

    fn push(
        &self,
        stream: TcpStream,
        first: Vec<u8>,
        protocol: impl FnOnce(Time) -> Box<dyn Protocol> + 'static,
    ) {
        self.0.connections.set(self.0.connections.get() + 1);
        let protocol = Box::new(protocol);
        self.0.adopted.borrow_mut().push_back(Adopted { stream, first, protocol });
        self.0.wakes.notify();
    }

    /// Returns the number of open connections, including the undecided ones.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.0.connections.get()
    }

    /// Serves a WebSocket over a stream that is no plain socket, as [`drive`](super::drive()) does, and lists it in
    /// surveys. Its memory counts as that of the loop.
    ///
    /// # Cancel safety
    /// Dropping the future drops the connection without a close frame, and its handler gets no further call.
    pub async fn drive<S, H>(
        &self,
        stream: S,
        negotiated: Negotiated,
        handler: H,
        shutdown: impl Future<Output = CloseFrame>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
        H: Handler + 'static,
    {
        let connection = (stream, negotiated, handler);
        drive_as(&self.0.memory, connection, shutdown, |task| {
            let task: Weak<RefCell<Task<S>>> = Rc::downgrade(task);
            self.0.surveys.enter(task)
        })
        .await;
    }

    /// Describes at most `most` connections of the thread, in the order of their ids, beginning behind `after`. Each
    /// connection that stays open is described once if the next survey begins behind the last id of this one. Fewer
    /// than `most` are all that are left.
    ///
    /// A turn of the loop describes at most 64, so that nobody waits.
    ///
    /// # Cancel safety
    /// Dropping the future ends the survey.
    pub async fn survey(
        &self,
        after: Option<ConnectionId>,
        most: usize,
    ) -> Vec<SurveyedConnection> {
        self.0.surveys.survey(&self.0.wakes, after, most).await
    }

    /// Returns the figures of the loop as of its last turn.
    #[must_use]
    pub fn figures(&self) -> LoopFigures {
        let connections = self.connections() + self.0.surveys.driven();
        LoopFigures { connections, ..self.0.figures.get().beside(driven_figures()) }
    }

    /// Closes all present and future connections and waits until they are over: at most twice the close timeout of
    /// their [`Config`](crate::proto::Config).
    ///
    /// # Cancel safety
    /// Once the future is polled, the loop closes the connections.
    pub async fn close_all(&self, frame: CloseFrame) {
        *self.0.shutdown.borrow_mut() = Some(frame);
        self.0.wakes.notify();
        while self.0.connections.get() > 0 {
            self.0.ended.notified().await;
        }
    }
}

impl std::fmt::Debug for Reactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reactor").field("connections", &self.0.connections).finish_non_exhaustive()
    }
}
