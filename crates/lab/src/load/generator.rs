//! The loop: many connections with messages in flight, driven from one epoll set.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;

use super::connection::{Connection, Refill};
use super::{Frames, PATIENCE};

const READ_BYTES: usize = 256 << 10;
const EVENTS_MAX: usize = 1024;

/// Open connections and what they say.
pub(crate) struct Generator {
    epoll: OwnedFd,
    connections: Vec<Connection>,
    frames: Frames,
    buffer: Vec<u8>,
    events: Vec<Event>,
}

impl Generator {
    /// Takes over connections that are open and on which nothing is under way.
    pub(crate) fn new(streams: Vec<TcpStream>, frames: Frames) -> anyhow::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let mut connections = Vec::with_capacity(streams.len());
        for (number, stream) in streams.into_iter().enumerate() {
            stream.set_nonblocking(true)?;
            epoll::add(&epoll, &stream, EventData::new_u64(number as u64), EventFlags::IN)?;
            connections.push(Connection::new(stream, number, &frames));
        }
        let (buffer, events) = (vec![0; READ_BYTES], Vec::with_capacity(EVENTS_MAX));
        Ok(Self { epoll, connections, frames, buffer, events })
    }

    /// Keeps every connection's messages in flight for `time`, then waits for the last replies, so that
    /// nothing is under way again. Returns how many messages went and came back.
    pub(crate) fn run(&mut self, time: Duration) -> anyhow::Result<u64> {
        let deadline = Instant::now() + time;
        let mut under_way = 0;
        for number in 0..self.connections.len() {
            self.connections[number].begin(self.frames.in_flight, &self.frames)?;
            self.watch_if_stuck(number)?;
            under_way += self.frames.in_flight;
        }
        let mut messages = 0;
        while under_way > 0 {
            let refill = if Instant::now() < deadline { Refill::Yes } else { Refill::No };
            let replies = self.turn(refill)?;
            messages += replies as u64;
            if refill == Refill::No {
                under_way -= replies;
            }
        }
        Ok(messages)
    }

    /// Serves what is ready, and returns how many replies that completed.
    fn turn(&mut self, refill: Refill) -> anyhow::Result<usize> {
        let patience = Timespec::try_from(PATIENCE)?;
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&patience))
            .context("waiting for replies")?;
        ensure!(!events.is_empty(), "no reply for {} seconds", PATIENCE.as_secs());
        let mut replies = 0;
        for &Event { flags, data } in &events {
            replies += self.serve(data.u64() as usize, flags, refill)?;
        }
        self.events = events;
        Ok(replies)
    }

    fn serve(&mut self, number: usize, flags: EventFlags, refill: Refill) -> anyhow::Result<usize> {
        let connection = &mut self.connections[number];
        let was_stuck = connection.wants_to_write();
        if flags.contains(EventFlags::OUT) {
            connection.flush(&self.frames)?;
        }
        let mut replies = 0;
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            replies = connection.on_readable(&mut self.buffer, &self.frames, refill)?;
        }
        match (was_stuck, connection.wants_to_write()) {
            (false, true) => self.watch_if_stuck(number)?,
            (true, false) => self.watch(number, EventFlags::IN)?,
            _ => {}
        }
        Ok(replies)
    }

    fn watch_if_stuck(&self, number: usize) -> anyhow::Result<()> {
        if self.connections[number].wants_to_write() {
            self.watch(number, EventFlags::IN | EventFlags::OUT)?;
        }
        Ok(())
    }

    fn watch(&self, number: usize, flags: EventFlags) -> anyhow::Result<()> {
        let stream = &self.connections[number].stream;
        Ok(epoll::modify(&self.epoll, stream, EventData::new_u64(number as u64), flags)?)
    }
}
