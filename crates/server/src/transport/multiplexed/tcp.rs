//! TCP: each message of `anemone.v1` after its length.

use std::sync::Arc;
use std::time::Duration;

use anemone_ws::proto::{Config, Output};
use anemone_ws::reactor::{StreamHandler, Waker};
use tokio::time::Instant;

use super::Outlet;
use super::framing::{self, Decoder};
use super::multiplexer::{Multiplexer, tell_problem};
use crate::client::Client;
use crate::local::Local;
use crate::permits::ConnectionPermit;
use crate::readers::Transport;
use crate::{Kind, Problem};

/// A connection by TCP.
#[derive(Debug)]
pub(crate) struct Stream {
    decoder: Decoder,
    config: Arc<Config>,
    /// Since when a message has been coming that is not there yet.
    amid_since: Option<Instant>,
    multiplexer: Multiplexer,
    is_over: bool,
    _permit: ConnectionPermit,
}

impl Stream {
    pub(crate) fn new(local: &Local, client: Client, permit: ConnectionPermit) -> Self {
        let config = Arc::clone(&local.site.limits.multiplexed);
        Self {
            decoder: Decoder::new(config.message_bytes_max),
            config,
            amid_since: None,
            multiplexer: Multiplexer::new(local, client, Transport::Tcp),
            is_over: false,
            _permit: permit,
        }
    }

    /// Says why, and that it is over.
    fn give_up(&mut self, problem: &Problem, output: &mut Output) {
        tell_problem(None, problem, &mut Framed(output));
        self.is_over = true;
    }

    /// Whether a message takes longer than it may. Looked at when something comes; when nothing
    /// does, the stream is idle.
    fn is_late(&mut self) -> bool {
        if !self.decoder.is_amid_message() {
            self.amid_since = None;
            return false;
        }
        let now = Instant::now();
        now - *self.amid_since.get_or_insert(now) > self.config.message_timeout
    }
}

impl StreamHandler for Stream {
    fn open(&mut self, waker: Waker) {
        self.multiplexer.open(waker);
    }

    fn receive(&mut self, mut bytes: &[u8], output: &mut Output) {
        while !self.is_over {
            match self.decoder.decode(&mut bytes) {
                Ok(Some(message)) => self.multiplexer.receive(message, &mut Framed(output)),
                Ok(None) => break,
                Err(error) => {
                    self.give_up(&Problem::new(Kind::BadMessage, error.to_string()), output);
                }
            }
        }
        if self.is_late() {
            let limit = self.config.message_timeout;
            let detail = format!("a message took longer than {limit:?}");
            self.give_up(&Problem::new(Kind::BodyTimeout, detail), output);
        }
    }

    /// Of the shortest requests, about a hundred.
    fn receive_bytes_max(&self) -> usize {
        2048
    }

    fn held_bytes(&self) -> usize {
        self.decoder.held_bytes()
    }

    fn open_bytes(&self) -> usize {
        self.multiplexer.open_bytes()
    }

    fn ready(&mut self, output: &mut Output) {
        self.multiplexer.ready(&mut Framed(output));
    }

    fn ended(&mut self, output: &mut Output) -> bool {
        !self.is_over && self.multiplexer.ended(&mut Framed(output))
    }

    fn close(&mut self, output: &mut Output) {
        self.give_up(&Problem::new(Kind::Stopping, "the server stops"), output);
    }

    fn ending(&self) -> Option<Duration> {
        self.is_over.then_some(self.config.close_timeout)
    }
}

/// The message to one who is not let in.
pub(crate) fn refusal(problem: &Problem) -> Vec<u8> {
    let mut output = Output::default();
    tell_problem(None, problem, &mut Framed(&mut output));
    output.as_slice().unwrap_or_default().to_vec()
}

/// Messages after their lengths.
struct Framed<'a>(&'a mut Output);

impl Outlet for Framed<'_> {
    fn put(&mut self, message: &str) {
        self.0.extend_from_slice(&framing::length(message.len()));
        self.0.extend_from_slice(message.as_bytes());
    }

    fn queued_bytes(&self) -> usize {
        self.0.len()
    }
}
