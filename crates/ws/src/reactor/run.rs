//! The loop itself: who is served when.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use anemone_proto::Time;
use mio::net::TcpStream;
use mio::{Events, Interest};
use slab::Slab;
use tokio::io::unix::AsyncFd;

use super::listeners::Listeners;
use super::protocol::Next;
use super::socket::{Readiness, Scratch, Socket, Verdict};
use super::timers::Timers;
use super::waker::Token;
use super::{Adopted, Shared, Waker};
use crate::clock::Clock;

/// Most sockets served in one turn; the rest come in the next.
const EVENTS_MAX: usize = 1024;
/// How often in a turn the same socket may send because it woke itself.
const WAKES_MAX: usize = 16;
/// How long to wait when a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Loop {
    shared: Rc<Shared>,
    poll: AsyncFd<mio::Poll>,
    listeners: Listeners,
    /// Nobody is accepted before.
    accept_at: Option<Time>,
    sockets: Slab<Socket<TcpStream>>,
    scratch: Scratch,
    timers: Timers,
    clock: Clock,
    generation: u32,
    /// Sockets that may have more to read than their last turn took: epoll tells only of what is
    /// new.
    unread: Vec<Token>,
}

impl Loop {
    pub(super) fn new(shared: Rc<Shared>) -> io::Result<Self> {
        Ok(Self {
            shared,
            poll: watch(mio::Poll::new()?)?,
            listeners: Listeners::default(),
            accept_at: None,
            sockets: Slab::new(),
            scratch: Scratch::new(),
            timers: Timers::default(),
            clock: Clock::start(),
            generation: 0,
            unread: Vec::new(),
        })
    }

    /// Serves until the runtime ends.
    pub(super) async fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS_MAX);
        loop {
            events.clear();
            if let Err(error) = self.wait(&mut events).await {
                tracing::error!(%error, "cannot wait for sockets");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            let now = self.clock.now();
            for event in &events {
                if self.listeners.event(event.token()) {
                    continue;
                }
                let ready = Readiness {
                    read: event.is_readable() || event.is_error(),
                    end: event.is_read_closed(),
                    write: event.is_writable(),
                };
                self.serve(event.token().0, |socket, scratch| socket.event(ready, now, scratch));
            }
            for token in std::mem::take(&mut self.unread) {
                self.serve_token(token, |socket, scratch| socket.readable(now, scratch));
            }
            self.wake(now);
            self.accept(now);
            self.adopt(now);
            self.farewell(now);
            self.expire(now);
        }
    }

    /// Waits until there is something to do, and lets others run before it returns.
    async fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        yield_to_others().await;
        let due = [self.timers.next(), self.accept_at].into_iter().flatten().min();
        let due = due.and_then(|due| self.clock.instant(due));
        let may_accept = self.accept_at.is_none() && self.listeners.have_work();
        let has_work = may_accept || !self.unread.is_empty() || self.shared.bell.has_woken();
        let told = async {
            if !has_work {
                self.shared.bell.rung().await;
            }
        };
        let timer = async {
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            guard = self.poll.readable_mut() => {
                let mut guard = guard?;
                guard.get_inner_mut().poll(events, Some(Duration::ZERO))?;
                if events.is_empty() {
                    guard.clear_ready();
                }
            }
            () = told => {}
            () = timer => {}
        }
        Ok(())
    }

    /// Lets those send who were woken, again while they have more, so that who reads keeps up with
    /// who sends: both have their share of each turn.
    fn wake(&mut self, now: Time) {
        for _ in 0..WAKES_MAX {
            let woken = self.shared.bell.take();
            if woken.is_empty() {
                return;
            }
            for token in woken {
                self.serve_token(token, |socket, scratch| socket.ready(now, scratch));
            }
        }
    }

    fn accept(&mut self, now: Time) {
        if self.shared.is_deaf.get() {
            self.shared.listening.take();
            self.listeners.close();
            return;
        }
        for (listener, accept) in self.shared.listening.take() {
            if let Err(error) =
                self.listeners.insert(self.poll.get_ref().registry(), listener, accept)
            {
                tracing::error!(%error, "cannot watch a listener");
            }
        }
        let was_failing = self.accept_at.is_some();
        if self.accept_at.is_some_and(|accept_at| now < accept_at) {
            return;
        }
        self.accept_at = match self.listeners.accept() {
            Ok(()) => None,
            Err(error) => {
                if !was_failing {
                    tracing::warn!(%error, "cannot accept connections");
                }
                Some(now + ACCEPT_PAUSE)
            }
        };
    }

    fn adopt(&mut self, now: Time) {
        for adopted in self.shared.adopted.take() {
            if let Err(error) = self.adopt_one(now, adopted) {
                tracing::warn!(%error, "cannot watch a connection");
                self.ended();
            }
        }
    }

    fn adopt_one(&mut self, now: Time, adopted: Adopted) -> io::Result<()> {
        let Adopted { stream, mut first, protocol } = adopted;
        let mut stream = TcpStream::from_std(stream);
        let entry = self.sockets.vacant_entry();
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.get_ref().registry().register(&mut stream, mio::Token(entry.key()), interest)?;
        self.generation = self.generation.wrapping_add(1);
        let token = Token { key: entry.key() as u32, generation: self.generation };
        entry.insert(Socket::new(stream, protocol(now), token.generation));
        let waker = Waker::new(&self.shared.bell, token);
        self.serve_token(token, |socket, scratch| socket.open(waker, now, &mut first, scratch));
        Ok(())
    }

    fn serve_token(
        &mut self,
        token: Token,
        work: impl FnOnce(&mut Socket<TcpStream>, &mut Scratch) -> Verdict,
    ) {
        let key = token.key as usize;
        if self.sockets.get(key).is_some_and(|socket| socket.generation() == token.generation) {
            self.serve(key, work);
        }
    }

    fn serve(
        &mut self,
        key: usize,
        work: impl FnOnce(&mut Socket<TcpStream>, &mut Scratch) -> Verdict,
    ) {
        let Some(socket) = self.sockets.get_mut(key) else { return };
        match work(socket, &mut self.scratch) {
            Verdict::Drop => {
                // The set forgets a closed descriptor by itself.
                self.sockets.remove(key);
                self.ended();
                return;
            }
            Verdict::Leave => {
                self.leave(key);
                return;
            }
            Verdict::ReadAgain => {
                self.unread.push(Token { key: key as u32, generation: socket.generation() });
            }
            Verdict::Keep => {}
        }
        // A due time that moved later is found out when the entry comes up.
        let due = socket.due();
        if due < socket.timer_at {
            socket.timer_at = due;
            self.timers.insert(due, key as u32);
        }
    }

    /// Has somebody else take a socket.
    fn leave(&mut self, key: usize) {
        let (mut stream, next) = self.sockets.remove(key).leave();
        self.ended();
        match (self.poll.get_ref().registry().deregister(&mut stream), next) {
            (Ok(()), Some(Next::Elsewhere(take))) => take(stream.into()),
            (Ok(()), _) => {}
            (Err(error), _) => tracing::warn!(%error, "cannot let go of a connection"),
        }
    }

    fn farewell(&mut self, now: Time) {
        let Some(frame) = self.shared.farewell.borrow().clone() else { return };
        let keys: Vec<usize> = self.sockets.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.serve(key, |socket, scratch| socket.close(now, &frame, scratch));
        }
    }

    fn expire(&mut self, now: Time) {
        while let Some((timer_at, key)) = self.timers.pop_due(now) {
            let key = key as usize;
            match self.sockets.get_mut(key) {
                Some(socket) if socket.timer_at == timer_at => socket.timer_at = Time::MAX,
                _ => continue,
            }
            self.serve(key, |socket, scratch| socket.expire(now, scratch));
        }
    }

    fn ended(&self) {
        self.shared.connections.set(self.shared.connections.get() - 1);
        self.shared.ended.notify_one();
    }
}

/// Has the runtime watch an epoll set. Both ends stay on this thread.
fn watch(poll: mio::Poll) -> io::Result<AsyncFd<mio::Poll>> {
    #[expect(
        deprecated,
        reason = "its successor is unsafe for those who could close the descriptor meanwhile; here \
                  the registration owns it"
    )]
    AsyncFd::with_interest(poll, tokio::io::Interest::READABLE)
}

/// Lets every other task that is ready run once. `yield_now` would also look for IO each time.
async fn yield_to_others() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
