//! One connection over any byte stream, in a task of its own: TLS, HTTP/2, tests.
//!
//! To the code of the loop the stream stands in for a socket: what is not ready would block. So a
//! [`Handler`] cannot tell whether it is in the loop or here. What a turn needs is shared by all such
//! tasks of a thread, one at a time.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker as TaskWaker, ready};
use std::time::Instant;

use anemone_proto::{CloseFrame, Time};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::budget::FIRST_SLICE;
use super::concerned::Concerned;
use super::protocol::WebSocket;
use super::scratch::Scratch;
use super::socket::{Socket, Verdict};
use super::stream::Stream;
use super::waker::{Bell, Token};
use super::{Handler, Waker};
use crate::clock::Clock;
use crate::{Agreed, Memory};

/// Most bytes given to the stream at once: HTTP/2 would take a copy of everything it is offered.
const WRITE_BYTES_MAX: usize = 64 << 10;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new(Instant::now));
}

/// Serves a WebSocket whose handshake is done, until it is over. `first` are the bytes that came
/// after the handshake, if any. Once `farewell` is ready the connection is closed with its frame.
///
/// # Cancel safety
/// Dropping the future drops the connection without a word; its handler is not told.
pub async fn drive<S, H>(
    stream: S,
    agreed: Agreed,
    handler: H,
    farewell: impl Future<Output = CloseFrame>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    H: Handler + 'static,
{
    drive_within(&Memory::default(), stream, agreed, handler, farewell).await;
}

/// The same; what it holds for its peer counts in `memory`, as that of a
/// [`Reactor`](super::Reactor::start_within) does.
///
/// # Cancel safety
/// As [`drive`].
pub async fn drive_within<S, H>(
    memory: &Memory,
    stream: S,
    mut agreed: Agreed,
    handler: H,
    farewell: impl Future<Output = CloseFrame>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    H: Handler + 'static,
{
    let (clock, bell) = (Clock::start(), Rc::<Bell>::default());
    let mut first = std::mem::take(&mut agreed.first);
    let protocol = WebSocket::boxed(agreed, handler, clock.now());
    let generation = Token::default().generation;
    let socket = Socket::new(Polled::new(stream), protocol, generation, memory.share());
    let mut wanted = memory.wanted();
    let mut task = Task { socket, clock, timer: None };
    let waker = Waker::new(&bell, Token::default());
    let mut verdict =
        task.turn(|socket, now, scratch| socket.open(waker, now, &mut first, scratch));
    drop(first);
    let mut farewell = pin!(farewell);
    let mut is_closing = false;
    while verdict != Verdict::Drop {
        verdict = tokio::select! {
            biased;
            () = poll_fn(|cx| task.poll(cx)) => return,
            () = bell.rung() => {
                bell.take();
                task.turn(|socket, now, scratch| socket.ready(now, scratch))
            }
            Ok(()) = wanted.changed() => {
                let Some(wanted) = *wanted.borrow_and_update() else { continue };
                let concerned = Concerned::of(wanted, clock);
                task.turn(|socket, now, scratch| socket.let_go(concerned, now, scratch))
            }
            frame = &mut farewell, if !is_closing => {
                is_closing = true;
                task.turn(|socket, now, scratch| socket.close(now, &frame, scratch))
            }
        };
    }
}

/// A connection and its time.
struct Task<S> {
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

    /// Writes what can be written, reads what can be read, does what is due, for a slice at most. Ready when
    /// it is over.
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
            // The tasks of other connections have their turn first.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.poll_due(cx)
    }

    /// Whether there is something to do that nobody will tell of.
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
        // Only ever moved to an earlier time: one that fires too early is set anew, and so no timer
        // is touched for each message.
        if due < timer.deadline() || timer.is_elapsed() {
            timer.as_mut().reset(due);
        }
        timer.as_mut().poll(cx)
    }
}

/// Begins a slice. Short, for all such tasks of a thread take turns, and there are others.
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
        return socket.lost(error.into());
    }
    match socket.writable(now, scratch) {
        Verdict::Drop => Verdict::Drop,
        _ => socket.readable(now, scratch),
    }
}

/// A stream that is polled, made to look like one that does not block. The task that attends to it
/// is woken once a call that would have blocked is worth another try.
struct Polled<S> {
    stream: S,
    task: TaskWaker,
    has_nothing_to_read: bool,
    /// The stream may keep what was written to itself until it is flushed.
    is_unflushed: bool,
}

impl<S: Unpin> Polled<S> {
    fn new(stream: S) -> Self {
        let task = TaskWaker::noop().clone();
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

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for Polled<S> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(bytes);
        let read = self.poll(|stream, cx| stream.poll_read(cx, &mut buffer));
        // At the end there is nothing either, however often one asks.
        self.has_nothing_to_read = read.is_err() || buffer.filled().is_empty();
        if read.as_ref().is_err_and(|error| error.kind() == ErrorKind::UnexpectedEof) {
            return Ok(0); // TLS without a last word; frames say themselves where they end
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
        // Each write may become a frame or a record of its own, so they are put together.
        let joined = slices.iter().map(|slice| &**slice).collect::<Vec<_>>().concat();
        self.write(&joined)
    }

    fn end(&mut self, _is_last: bool) -> io::Result<()> {
        // TLS has a last word of its own, HTTP/2 a flag: always said.
        self.poll(|stream, cx| stream.poll_shutdown(cx))
    }
}

#[cfg(test)]
mod tests;
