//! The main loop of the load. It drives many connections with messages in flight from one epoll set.

use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::ensure;
use rustix::event::epoll::EventFlags;

use super::connection::{Connection, Refill};
use super::poller::Poller;
use super::{Frames, PATIENCE};
use crate::tcp_info::Traffic;

const READ_BYTES: usize = 256 << 10;

/// Open connections and their messages.
pub(crate) struct Generator {
    poller: Poller,
    connections: Vec<Connection>,
    frames: Frames,
    buffer: Vec<u8>,
}

impl Generator {
    /// Takes over open connections. No message may be in flight on them.
    pub(crate) fn new(streams: Vec<TcpStream>, frames: Frames) -> anyhow::Result<Self> {
        let poller = Poller::new()?;
        let mut connections = Vec::with_capacity(streams.len());
        for (number, stream) in streams.into_iter().enumerate() {
            stream.set_nonblocking(true)?;
            poller.add(&stream, number)?;
            connections.push(Connection::new(stream, number, &frames));
        }
        Ok(Self { poller, connections, frames, buffer: vec![0; READ_BYTES] })
    }

    /// Keeps messages in flight on every connection for `time`, then waits for the last replies. Returns the number of
    /// messages that were echoed.
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

    /// Sends this number of messages on each connection, one after the other. Waits for the last replies.
    pub(crate) fn run_each(&mut self, messages: usize) -> anyhow::Result<()> {
        ensure!(self.frames.in_flight == 1 && messages > 0, "one message after the other");
        let mut left = vec![messages - 1; self.connections.len()];
        for number in 0..self.connections.len() {
            self.connections[number].begin(1, &self.frames)?;
            self.watch_if_stuck(number)?;
        }
        let mut busy = self.connections.len();
        while busy > 0 {
            let ready = self.poller.wait(PATIENCE)?;
            ensure!(ready > 0, "no reply for {} seconds", PATIENCE.as_secs());
            for index in 0..ready {
                let (number, flags) = self.poller.ready(index);
                let refill = if left[number] > 0 { Refill::Yes } else { Refill::No };
                let replies = self.serve(number, flags, refill)?;
                match refill {
                    Refill::Yes => left[number] -= replies,
                    Refill::No => busy -= replies,
                }
            }
        }
        Ok(())
    }

    pub(crate) fn traffic(&self) -> io::Result<Traffic> {
        let mut all = Traffic::default();
        for connection in &self.connections {
            all += Traffic::of_all(std::slice::from_ref(&connection.stream))?;
        }
        Ok(all)
    }

    /// Serves the connections that are ready. Returns the number of replies that were completed.
    fn turn(&mut self, refill: Refill) -> anyhow::Result<usize> {
        let ready = self.poller.wait(PATIENCE)?;
        ensure!(ready > 0, "no reply for {} seconds", PATIENCE.as_secs());
        let mut replies = 0;
        for index in 0..ready {
            let (number, flags) = self.poller.ready(index);
            replies += self.serve(number, flags, refill)?;
        }
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
        self.poller.watch(&self.connections[number].stream, number, flags)
    }
}
