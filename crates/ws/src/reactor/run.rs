//! The loop itself.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use anemone_proto::Time;
use mio::net::TcpStream;
use mio::{Events, Interest};
use tokio::io::unix::AsyncFd;

use super::listeners::Listeners;
use super::protocol::Successor;
use super::release::LoopRelease;
use super::scratch::Scratch;
use super::shared::{Adopted, LoopState};
use super::socket::Readiness;
use super::sockets::{Gone, Sockets};
use super::waker::SendWaker;
use crate::clock::Clock;

/// The most events taken from epoll at once; the rest follow in the next turn.
const EVENTS_MAX: usize = 1024;
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The loop runs this long, plus the rest of a turn, before it lets the runtime check its own IO and timers. That
/// check costs about a microsecond.
const RUNTIME_INTERVAL: Duration = Duration::from_micros(250);

pub(super) struct Loop {
    shared: Rc<LoopState>,
    poll: AsyncFd<mio::Poll>,
    listeners: Listeners,
    /// The time before which nothing is accepted.
    accept_at: Option<Time>,
    sockets: Sockets<TcpStream>,
    clock: Clock,
    runtime: Runtime,
}

/// The last time that the runtime checked its own IO and timers, as far as this loop knows.
struct Runtime {
    looked_at: Instant,
    has_looked: bool,
    /// True when epoll has no more events. The runtime must check before it has new ones.
    is_drained: bool,
}

impl Loop {
    pub(super) fn new(shared: Rc<LoopState>) -> io::Result<Self> {
        let memory = shared.memory.clone();
        Ok(Self {
            shared,
            poll: watch(mio::Poll::new()?)?,
            listeners: Listeners::default(),
            accept_at: None,
            sockets: Sockets::new(Scratch::new(Instant::now), memory),
            clock: Clock::start(),
            runtime: Runtime { looked_at: Instant::now(), has_looked: true, is_drained: false },
        })
    }

    /// Serves until the runtime ends.
    pub(super) async fn run(mut self) {
        let _watched = Watched(Rc::clone(&self.shared));
        let mut events = Events::with_capacity(EVENTS_MAX);
        loop {
            events.clear();
            if let Err(error) = self.wait(&mut events).await {
                tracing::error!(%error, "cannot wait for sockets");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            let begun = self.sockets.begin_turn();
            if std::mem::take(&mut self.runtime.has_looked) {
                self.runtime.looked_at = begun;
            }
            let now = self.clock.now();
            for event in &events {
                self.sockets.figures().events += 1;
                if self.listeners.event(event.token()) {
                    continue;
                }
                let ready = Readiness {
                    read: event.is_readable() || event.is_error(),
                    end: event.is_read_closed(),
                    write: event.is_writable(),
                    lost: event.is_write_closed(),
                };
                self.sockets.notify(event.token().0, ready);
            }
            self.sockets.turn(now, &self.shared.wakes);
            self.let_go();
            self.accept(now);
            self.adopt();
            self.shutdown(now);
            self.relieve(now);
            self.sockets.expire(now);
            self.let_go();
            self.survey(now);
        }
    }

    /// Waits until there is work, and lets other tasks run before it returns.
    async fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        if self.sockets.read_at() - self.runtime.looked_at >= RUNTIME_INTERVAL {
            // Returns only after the runtime has checked.
            tokio::task::yield_now().await;
            self.runtime.has_looked = true;
        } else {
            yield_to_others().await;
        }
        let due = [self.sockets.due(), self.accept_at].into_iter().flatten().min();
        let due = due.and_then(|due| self.clock.instant(due));
        let may_accept = self.accept_at.is_none() && self.listeners.have_work();
        let has_work = may_accept
            || self.sockets.have_work()
            || self.shared.wakes.has_woken()
            || !self.shared.adopted.borrow().is_empty()
            || self.shared.surveys.have_work();
        let told = async {
            if !has_work {
                self.shared.wakes.notified().await;
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
                self.runtime.has_looked |= self.runtime.is_drained;
                self.runtime.is_drained = events.is_empty();
                if events.is_empty() {
                    guard.clear_ready();
                }
            }
            () = told => {}
            () = timer => {}
        }
        Ok(())
    }

    fn accept(&mut self, now: Time) {
        if self.shared.is_stopped.get() {
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

    fn adopt(&mut self) {
        while !self.sockets.is_turn_over() {
            let next = self.shared.adopted.borrow_mut().pop_front();
            let Some(adopted) = next else { return };
            if let Err(error) = self.adopt_one(adopted) {
                tracing::warn!(%error, "cannot watch a connection");
                self.on_end();
            }
        }
    }

    fn adopt_one(&mut self, adopted: Adopted) -> io::Result<()> {
        // A turn may have begun before the connection did, whose timeouts must not end before their time.
        let now = self.clock.now();
        let Adopted { stream, mut first, protocol } = adopted;
        let mut stream = TcpStream::from_std(stream);
        let (token, interest) =
            (mio::Token(self.sockets.next_key()), Interest::READABLE | Interest::WRITABLE);
        self.poll.get_ref().registry().register(&mut stream, token, interest)?;
        let waker = |token| SendWaker::new(&self.shared.wakes, token);
        self.sockets.open(stream, protocol(now), waker, now, &mut first);
        Ok(())
    }

    /// Removes the connections that are over, and hands over those that leave the loop.
    fn let_go(&mut self) {
        for gone in self.sockets.take_gone() {
            self.on_end();
            let Gone::Left(mut stream, next) = gone else { continue };
            match (self.poll.get_ref().registry().deregister(&mut stream), next) {
                (Ok(()), Some(Successor::Elsewhere(take))) => take(stream.into()),
                (Ok(()), _) => {}
                (Err(error), _) => tracing::warn!(%error, "cannot release a connection"),
            }
        }
    }

    /// Makes connections release memory, if too much is held.
    fn relieve(&mut self, now: Time) {
        if let Some(release) = self.shared.release.take() {
            self.sockets.relieve(LoopRelease::of(release, self.clock), now);
        }
    }

    /// Tells the figures, and describes some connections if somebody asks.
    fn survey(&mut self, now: Time) {
        self.sockets.figures().turns += 1;
        self.shared.figures.set(self.sockets.told_figures());
        let sockets = &self.sockets;
        self.shared.surveys.work(|from, most, found| sockets.describe(from, most, now, found));
    }

    fn shutdown(&mut self, now: Time) {
        let shutdown = self.shared.shutdown.borrow().clone();
        if let Some(frame) = shutdown {
            self.sockets.shutdown(now, &frame);
        }
    }

    fn on_end(&self) {
        self.shared.connections.set(self.shared.connections.get() - 1);
        self.shared.ended.notify_one();
    }
}

/// Reports a panic, which the runtime catches.
struct Watched(Rc<LoopState>);

impl Drop for Watched {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.panicked.notify_one();
        }
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

/// Lets every other ready task run once. `yield_now` would also check for IO each time.
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
