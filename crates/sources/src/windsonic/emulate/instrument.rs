//! The instrument: bytes and time in, bytes out. The documentation of [`emulate`](super) lists the commands and the
//! answers.

use std::collections::VecDeque;
use std::time::Duration;

use super::noise::Noise;
use super::replay::Replay;
use super::settings::{Format, Settings, Stored};
use super::wind::{Model, WindSample};
use crate::windsonic::decimal::Decimal;
use crate::windsonic::message::{
    DIRECTION_THRESHOLD_METRES_PER_SECOND, Message, OK, Reference, Sender, Wind, whole_degrees,
};

/// The most bytes of a command that are kept. Known commands have at most 2 bytes; a longer command is illegal.
const COMMAND_BYTES_MAX: usize = 16;

/// The most lines that wait to be sent. Further lines are dropped, as on a line that is too slow.
const TRANSMIT_LINES_MAX: usize = 64;

#[derive(Clone, Debug)]
pub(crate) enum Source {
    Model(Model),
    Replay(Replay),
}

#[derive(Clone, Debug)]
enum InstrumentState {
    /// `last` is the byte before, since some commands have two bytes.
    Measuring {
        polls: bool,
        last: u8,
    },
    Configuring {
        command: Vec<u8>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Instrument {
    stored: Stored,
    source: Source,
    noise: Noise,
    state: InstrumentState,
    /// The time of the next message, if the instrument sends by itself.
    due: Duration,
    transmit: VecDeque<Vec<u8>>,
}

impl Instrument {
    /// Switches the instrument on. The first message is due one period later.
    pub(crate) fn new(now: Duration, settings: Settings, source: Source, noise: Noise) -> Self {
        let state = measuring(settings.format);
        let due = now + settings.rate.period();
        let stored = Stored::from(settings);
        Self { stored, source, noise, state, due, transmit: VecDeque::new() }
    }

    pub(crate) fn receive(&mut self, now: Duration, bytes: &[u8]) {
        for byte in bytes {
            match &mut self.state {
                InstrumentState::Measuring { .. } => self.measuring_byte(now, *byte),
                InstrumentState::Configuring { command } => match byte {
                    b'\r' => {
                        let command = std::mem::take(command);
                        self.command(now, &command);
                    }
                    b'\n' => {}
                    _ if command.len() < COMMAND_BYTES_MAX => command.push(*byte),
                    _ => {}
                },
            }
        }
    }

    fn measuring_byte(&mut self, now: Duration, byte: u8) {
        let InstrumentState::Measuring { polls, last } = &mut self.state else { return };
        let before = std::mem::replace(last, byte);
        let unit = self.stored.settings.unit;
        match byte {
            b'?' => *polls = true,
            b'!' if *polls => {
                *polls = false;
                self.due = now + self.stored.settings.rate.period();
            }
            b'&' if before == b'?' => self.reply(&unit.to_string()),
            _ if byte == unit.byte() && before == b'*' => {
                self.state = InstrumentState::Configuring { command: Vec::new() };
                self.reply("CONFIGURATION MODE");
            }
            _ if byte == unit.byte() && *polls => self.measure(now),
            _ => {}
        }
    }

    fn command(&mut self, now: Duration, command: &[u8]) {
        match command {
            b"" => {}
            b"Q" => {
                self.state = measuring(self.stored.settings.format);
                self.due = now + self.stored.settings.rate.period();
            }
            b"D3" => self.reply(&self.stored.to_string()),
            _ if self.stored.set(command) => {
                self.reply(&String::from_utf8_lossy(command));
            }
            _ => self.reply("ILLEGAL COMMAND"),
        }
    }

    /// Returns the time at which to call [`Instrument::handle_timeout`], if the instrument sends by itself.
    pub(crate) fn poll_timeout(&self) -> Option<Duration> {
        match self.state {
            InstrumentState::Measuring { polls: false, .. }
                if !self.stored.settings.format.is_polled() =>
            {
                Some(self.due)
            }
            _ => None,
        }
    }

    /// Sends a message if one is due. A late call does not delay later messages, and messages that were missed are
    /// skipped.
    pub(crate) fn handle_timeout(&mut self, now: Duration) {
        if self.poll_timeout().is_none_or(|due| now < due) {
            return;
        }
        self.measure(now);
        let period = self.stored.settings.rate.period();
        let missed = (now - self.due).as_nanos() / period.as_nanos();
        self.due += period * u32::try_from(missed + 1).unwrap_or(u32::MAX);
    }

    fn measure(&mut self, now: Duration) {
        let line = match &mut self.source {
            Source::Model(model) => message(&self.stored.settings, model.sample(now)).encode(),
            Source::Replay(replay) => replay.next(),
        };
        let line = self.noise.pass(line);
        self.send(line);
    }

    fn reply(&mut self, text: &str) {
        self.send(format!("{text}\r\n").into_bytes());
    }

    fn send(&mut self, line: Vec<u8>) {
        if self.transmit.len() < TRANSMIT_LINES_MAX {
            self.transmit.push_back(line);
        }
    }

    /// Returns the next line to send.
    pub(crate) fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.pop_front()
    }
}

fn measuring(format: Format) -> InstrumentState {
    InstrumentState::Measuring { polls: format.is_polled(), last: 0 }
}

fn message(settings: &Settings, sample: WindSample) -> Message {
    let per = settings.units.per_metre_per_second();
    let speed = sample.metres_per_second * per;
    let calm = sample.metres_per_second < DIRECTION_THRESHOLD_METRES_PER_SECOND;
    let polar = Wind::Polar {
        direction: (!calm).then(|| Decimal::whole(whole_degrees(sample.degrees))),
        speed: Decimal::round(speed),
    };
    let (sin, cos) = sample.degrees.to_radians().sin_cos();
    let vector = Wind::Vector { u: Decimal::round(-speed * cos), v: Decimal::round(speed * sin) };
    let gill = Sender::Gill(settings.unit);
    let (sender, wind, status) = match settings.format {
        Format::UvContinuous | Format::UvPolled => (gill, vector, OK),
        Format::PolarContinuous | Format::PolarPolled => (gill, polar, OK),
        Format::Nmea => (Sender::Nmea(Some(Reference::Relative)), polar, "A"),
    };
    Message { sender, wind, units: Some(settings.units), status: status.to_owned() }
}

#[cfg(test)]
mod tests;
