//! An epoll set for one thread. Its sockets have numbers.

use std::time::Duration;

use anyhow::Context;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};

/// The most sockets that one wait can return.
const EVENTS_MAX: usize = 1024;

/// An epoll set. It watches sockets for input, and if asked also for room to write.
pub(super) struct Poller {
    epoll: OwnedFd,
    events: Vec<Event>,
}

impl Poller {
    pub(super) fn new() -> anyhow::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, events: Vec::with_capacity(EVENTS_MAX) })
    }

    /// Watches a socket for input.
    pub(super) fn add(&self, socket: impl AsFd, number: usize) -> anyhow::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(number as u64), EventFlags::IN)?)
    }

    /// Changes the events for which a socket is watched.
    pub(super) fn watch(
        &self,
        socket: impl AsFd,
        number: usize,
        flags: EventFlags,
    ) -> anyhow::Result<()> {
        Ok(epoll::modify(&self.epoll, socket, EventData::new_u64(number as u64), flags)?)
    }

    /// Waits until sockets are ready, but at most for `time`. Returns their number.
    pub(super) fn wait(&mut self, time: Duration) -> anyhow::Result<usize> {
        let time = Timespec::try_from(time)?;
        self.events.clear();
        let events = rustix::buffer::spare_capacity(&mut self.events);
        epoll::wait(&self.epoll, events, Some(&time)).context("waiting for sockets")?;
        Ok(self.events.len())
    }

    /// Returns one of the sockets that the last wait found ready.
    pub(super) fn ready(&self, index: usize) -> (usize, EventFlags) {
        let Event { flags, data } = self.events[index];
        (data.u64() as usize, flags)
    }
}
