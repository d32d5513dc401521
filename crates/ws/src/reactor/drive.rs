//! Drives one connection over any byte stream in a task of its own: TLS, HTTP/2, or a pipe in tests.
//!
//! The stream takes the place of a socket: an operation that is not ready reports that it would block. A [`Handler`]
//! therefore works the same here and in the loop. All such tasks of a thread share one set of buffers.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use anemone_proto::{CloseFrame, Time};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::budget::FIRST_SLICE;
use super::protocol::WebSocketProtocol;
use super::release::LoopRelease;
use super::scratch::Scratch;
use super::socket::{Socket, Verdict};
use super::stream::NonBlocking;
use super::survey::{ConnectionId, Driven, LoopFigures, SurveyedConnection};
use super::waker::{Token, WakeQueue};
use super::{Handler, SendWaker};
use crate::clock::Clock;
use crate::{Memory, Negotiated};

/// The most bytes given to the stream at once. HTTP/2 copies everything that it is offered.
const WRITE_BYTES_MAX: usize = 64 << 10;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new(Instant::now));
}

/// Serves a WebSocket after its handshake, until the connection is over. When `shutdown` is ready, closes the
/// connection with its frame. The memory that it holds for its peer counts in `memory`, as in
/// [`Reactor::start`](super::Reactor::start).
///
/// # Cancel safety
/// Dropping the future drops the connection without a close frame, and its handler gets no further call.
pub async fn drive<S, H>(
    memory: &Memory,
    stream: S,
    negotiated: Negotiated,
    handler: H,
    shutdown: impl Future<Output = CloseFrame>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    H: Handler + 'static,
{
    drive_as(memory, (stream, negotiated, handler), shutdown, |_| ()).await;
}

/// Serves a WebSocket. What `enter` makes for its task is kept until the connection is over.
pub(super) async fn drive_as<S, H, T>(
    memory: &Memory,
    (stream, mut negotiated, handler): (S, Negotiated, H),
    shutdown: impl Future<Output = CloseFrame>,
    enter: impl FnOnce(&Rc<RefCell<Task<S>>>) -> T,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    H: Handler + 'static,
{
    let (clock, wakes) = (Clock::start(), Rc::<WakeQueue>::default());
    let mut first = std::mem::take(&mut negotiated.first);
    let now = clock.now();
    let protocol = WebSocketProtocol::boxed(negotiated, handler, now);
    let generation = Token::default().generation;
    let held = memory.reservation();
    let socket = Socket::new(Polled::new(stream), protocol, generation, held, now);
    let mut release = memory.releases();
    let task = Rc::new(RefCell::new(Task { socket, clock, timer: None }));
    let _entered = enter(&task);
    let waker = SendWaker::new(&wakes, Token::default());
    let mut verdict =
        task.borrow_mut().turn(|socket, now, scratch| socket.open(waker, now, &mut first, scratch));
    drop(first);
    let mut shutdown = pin!(shutdown);
    let mut is_closing = false;
    while verdict != Verdict::Drop {
        verdict = tokio::select! {
            biased;
            () = poll_fn(|cx| task.borrow_mut().poll(cx)) => return,
            () = wakes.notified() => {
                wakes.take();
                task.borrow_mut().turn(|socket, now, scratch| socket.ready(now, scratch))
            }
            Ok(()) = release.changed() => {
                let Some(release) = *release.borrow_and_update() else { continue };
                let release = LoopRelease::of(release, clock);
                task.borrow_mut().turn(|socket, now, scratch| socket.let_go(release, now, scratch))
            }
            frame = &mut shutdown, if !is_closing => {
                is_closing = true;
                task.borrow_mut().turn(|socket, now, scratch| socket.close(now, &frame, scratch))
            }
        };
    }
}

/// Returns the figures of all such connections of this thread.
pub(super) fn driven_figures() -> LoopFigures {
    SCRATCH.with_borrow(|scratch| scratch.figures)
}

/// A connection and its timer.
pub(super) struct Task<S> {
    socket: Socket<Polled<S>>,
    clock: Clock,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Task<S> {
    fn turn(
        &mut self,
        work: impl FnOnce(&mut Socket<Polled<S>>, Time, &mut Scratch) -> Verdict,
    ) -> Verdict {
        let now = self.clock.now();
        SCRATCH.with_borrow_mut(|scratch| {
            begin(scratch);
            work(&mut self.socket, now, scratch)
        })
    }

    /// Writes, reads and handles timeouts for at most one slice. Returns ready when the connection is over.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.socket.stream().attend(cx);
        let now = self.clock.now();
        let is_over = SCRATCH.with_borrow_mut(|scratch| {
            begin(scratch);
            loop {
                if read_and_write(&mut self.socket, now, scratch) == Verdict::Drop {
                    return true;
                }
                if !self.has_more() || scratch.budget.is_slice_over() {
                    return false;
                }
            }
        });
        if is_over {
            return Poll::Ready(());
        }
        if self.has_more() {
            // Lets the tasks of other connections run first.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.poll_due(cx)
    }

    /// Returns true if there is work left that no event will announce.
    fn has_more(&mut self) -> bool {
        let has_input = self.socket.is_reading() && !self.socket.stream().has_nothing_to_read;
        has_input || self.socket.is_behind()
    }

    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let due = self.socket.due();
            if due > self.clock.now() {
                ready!(self.poll_sleep(cx, due));
            } else if self.turn(|socket, now, scratch| socket.expire(now, scratch)) == Verdict::Drop
            {
                return Poll::Ready(());
            }
        }
    }

    fn poll_sleep(&mut self, cx: &mut Context<'_>, due: Time) -> Poll<()> {
        let Some(due) = self.clock.instant(due) else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        // The timer moves only to an earlier time. When it fires too early it is set again, so messages do not touch
        // it.
        if due < timer.deadline() || timer.is_elapsed() {
            timer.as_mut().reset(due);
        }
        timer.as_mut().poll(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Driven for RefCell<Task<S>> {
    fn describe(&self, id: ConnectionId) -> Option<SurveyedConnection> {
        let task = self.try_borrow().ok()?;
        Some(task.socket.describe(id, task.clock.now()))
    }
}

/// Begins a slice. It is short because all such tasks of a thread take turns.
fn begin(scratch: &mut Scratch) {
    scratch.budget.begin_turn();
    scratch.budget.begin_slice(FIRST_SLICE);
}

fn read_and_write<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut Socket<Polled<S>>,
    now: Time,
    scratch: &mut Scratch,
) -> Verdict {
    if let Err(error) = socket.stream().flush()
        && error.kind() != ErrorKind::WouldBlock
    {
        return socket.on_lost(error.into());
    }
    match socket.writable(now, scratch) {
        Verdict::Drop => Verdict::Drop,
        _ => socket.readable(now, scratch),
    }
}

/// A polled stream behind the interface of a non-blocking one. It wakes its task when a call that would have blocked
/// can be tried again.
pub(super) struct Polled<S> {
    stream: S,
    task: Waker,
    has_nothing_to_read: bool,
    /// True while the stream may buffer written bytes until it is flushed.
    is_unflushed: bool,
}

impl<S: Unpin> Polled<S> {
    fn new(stream: S) -> Self {
        let task = Waker::noop().clone();
        Self { stream, task, has_nothing_to_read: false, is_unflushed: false }
    }

    fn attend(&mut self, cx: &Context<'_>) {
        self.task.clone_from(cx.waker());
    }

    fn poll<T>(
        &mut self,
        work: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> io::Result<T> {
        match work(Pin::new(&mut self.stream), &mut Context::from_waker(&self.task)) {
            Poll::Ready(done) => done,
            Poll::Pending => Err(ErrorKind::WouldBlock.into()),
        }
    }
}

impl<S: AsyncWrite + Unpin> Polled<S> {
    fn flush(&mut self) -> io::Result<()> {
        if self.is_unflushed {
            self.poll(|stream, cx| stream.poll_flush(cx))?;
            self.is_unflushed = false;
        }
        Ok(())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> NonBlocking for Polled<S> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(bytes);
        let read = self.poll(|stream, cx| stream.poll_read(cx, &mut buffer));
        // After the end of the stream, nothing will become readable.
        self.has_nothing_to_read = read.is_err() || buffer.filled().is_empty();
        if read.as_ref().is_err_and(|error| error.kind() == ErrorKind::UnexpectedEof) {
            return Ok(0); // TLS without close_notify; a WebSocket frame has its own length
        }
        read.map(|()| buffer.filled().len())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_unflushed = true;
        let mut written = 0;
        while written < bytes.len() {
            let piece = &bytes[written..bytes.len().min(written + WRITE_BYTES_MAX)];
            match self.poll(|stream, cx| stream.poll_write(cx, piece)) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(len) => written += len,
                Err(error) if error.kind() == ErrorKind::WouldBlock && written > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        // Each write may become a frame or a record of its own, so the slices are joined.
        let joined = slices.iter().map(|slice| &**slice).collect::<Vec<_>>().concat();
        self.write(&joined)
    }

    fn end(&mut self, _is_last: bool) -> io::Result<()> {
        // Always shuts down, so that TLS sends close_notify and HTTP/2 its END_STREAM flag.
        self.poll(|stream, cx| stream.poll_shutdown(cx))
    }
}

#[cfg(test)]
mod tests;
