//! A session with an instrument. It begins when the device is opened. Bytes and time go in; events, bytes to send and
//! changes of state come out.
//!
//! Owns the order of listening, configuring, polling and reporting silence. After each input, the caller drains
//! [`Session::poll_output`] and [`Session::poll_transmit`], then calls [`Session::poll_timeout`].

use std::collections::VecDeque;
use std::time::Duration;

use anemone_hub::UnixTime;

use super::configure::{Dialogue, Outcome};
use super::line::{Assembler, RawLine};
use super::message::{ETX, Message, STX, UnitId};
use super::parse::{ParseError, is_json, parse};
use super::{Mode, WindsonicOptions};
use crate::status::{State, seconds};

/// The settings with which the instrument sends polar messages by itself at 4 Hz. The unit of speed stays unchanged,
/// since each message names it.
const CONTINUOUS_4_HZ: &[&str] = &["M2", "P3"];

/// The setting for polar messages on request.
const POLLED: &[&str] = &["M4"];

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Output {
    /// A measurement with its text, and the time at which its last byte was read.
    Message(Message, String, UnixTime),
    /// A line that is not a measurement, with a description of its fault.
    BadLine(String),
    State(State, String),
}

#[derive(Debug)]
enum Task {
    /// The session only reads.
    Listen,
    /// The session listens before the first poll, in order to notice an instrument that sends by itself.
    Settle {
        until: Duration,
    },
    Configure(Dialogue),
    Poll(Poll),
}

#[derive(Debug)]
struct Poll {
    due: Duration,
    is_answered: bool,
}

#[derive(Debug)]
pub(crate) struct Session {
    options: WindsonicOptions,
    assembler: Assembler,
    unit: UnitId,
    task: Task,
    state: State,
    /// The time of the last valid message, or the beginning of the session before the first one.
    last_message_at: Duration,
    /// The fault that the instrument reported of itself with the last valid message.
    fault: Option<String>,
    /// The number of bad lines since the last valid message.
    bad_lines: u64,
    newest_fault: String,
    /// True if the newest bad line has bytes that are not text. A wrong speed causes such bytes.
    is_binary: bool,
    /// The newest line since the last valid message that is neither a measurement nor bad.
    newest_text: Option<String>,
    /// The reason why the instrument does not have the required settings, once a dialogue has failed.
    trouble: Option<String>,
    /// The earliest time of the next dialogue.
    dialogue_at: Duration,
    outputs: VecDeque<Output>,
    transmit: VecDeque<Vec<u8>>,
}

impl Session {
    /// Begins a session with a device that was just opened.
    pub(crate) fn begin(now: Duration, options: WindsonicOptions) -> Self {
        let mut session = Self {
            assembler: Assembler::new(options.line_bytes_max),
            unit: options.unit,
            task: Task::Listen,
            state: State::Opening,
            last_message_at: now,
            fault: None,
            bad_lines: 0,
            newest_fault: String::new(),
            is_binary: false,
            newest_text: None,
            trouble: None,
            dialogue_at: now,
            outputs: VecDeque::new(),
            transmit: VecDeque::new(),
            options,
        };
        match session.options.mode {
            Mode::Listen => session.report_state(),
            Mode::Configure => session.configure(now, CONTINUOUS_4_HZ),
            Mode::Polled => {
                session.task = Task::Settle { until: now + session.options.unasked_wait };
                session.report_state();
            }
        }
        session
    }

    /// Handles bytes read from the device. `t0` is the wall clock right after that read.
    pub(crate) fn receive(&mut self, now: Duration, t0: UnixTime, bytes: &[u8]) {
        let mut has_lines = false;
        for byte in bytes {
            if let Some(line) = self.assembler.push(*byte) {
                self.line(now, t0, &line);
                has_lines = true;
            }
        }
        if has_lines && self.state == State::Silent {
            // The lines that break the silence say why there is no measurement.
            self.report_state();
        }
        if let Task::Configure(dialogue) = &mut self.task {
            let outcome = dialogue.receive(now, bytes);
            self.advance_dialogue(now, outcome);
        }
    }

    fn line(&mut self, now: Duration, t0: UnixTime, line: &RawLine) {
        let parsed = match parse(&line.bytes) {
            _ if line.is_overlong && is_json(&line.bytes) => Err(ParseError::Json),
            _ if line.is_overlong => {
                Err(ParseError::TooLong { bytes_max: self.options.line_bytes_max })
            }
            parsed => parsed,
        };
        match parsed {
            Ok(parsed) => {
                let (message, raw) = (parsed.message, parsed.raw.to_owned());
                let fault = message.fault();
                self.outputs.push_back(Output::Message(message, raw, t0));
                self.on_message(now, fault);
            }
            // A device is usually opened in the middle of a line, but not of one that begins after a silence.
            Err(ParseError::Start) if line.is_first && self.state == State::Opening => {}
            Err(ParseError::Sentence { .. }) => self.newest_text = Some(cut(&line.bytes)),
            Err(ParseError::Start) if is_announcement(line) => {
                tracing::debug!("the instrument says: {}", line.bytes.escape_ascii());
                self.newest_text = Some(cut(&line.bytes));
            }
            Err(fault) => {
                self.bad_lines += 1;
                self.newest_fault = format!("{fault}: \"{}\"", cut(&line.bytes));
                let is_frame = |byte: u8| byte == STX || byte == ETX;
                let is_binary = |byte: &u8| !is_of_text(*byte) && !is_frame(*byte);
                self.is_binary = line.bytes.iter().any(is_binary);
                self.outputs.push_back(Output::BadLine(self.newest_fault.clone()));
            }
        }
    }

    fn on_message(&mut self, now: Duration, fault: Option<String>) {
        self.last_message_at = now;
        self.bad_lines = 0;
        self.newest_text = None;
        let has_news = self.state != State::Live || self.fault != fault;
        (self.state, self.fault) = (State::Live, fault);
        if has_news {
            self.report_state();
        }
        match &mut self.task {
            Task::Settle { .. } => self.configure(now, POLLED),
            Task::Poll(poll) => poll.is_answered = true,
            Task::Listen | Task::Configure(_) => {}
        }
    }

    /// Does the work that is due.
    pub(crate) fn handle_timeout(&mut self, now: Duration) {
        match &mut self.task {
            Task::Listen => {}
            Task::Settle { until } if now >= *until => {
                self.task = Task::Poll(Poll { due: now, is_answered: false });
            }
            Task::Settle { .. } => {}
            Task::Configure(dialogue) => {
                let outcome = dialogue.handle_timeout(now);
                self.advance_dialogue(now, outcome);
            }
            Task::Poll(_) => {}
        }
        if self.state != State::Silent && now >= self.silent_at() {
            self.state = State::Silent;
            self.report_state();
        }
        if now >= self.dialogue_at && self.wants_dialogue() {
            let commands = if self.options.mode == Mode::Polled { POLLED } else { CONTINUOUS_4_HZ };
            self.configure(now, commands);
        }
        self.poll_if_due(now);
    }

    fn poll_if_due(&mut self, now: Duration) {
        let interval = self.options.poll_interval.max(Duration::from_millis(1));
        let Task::Poll(poll) = &mut self.task else { return };
        if now < poll.due {
            return;
        }
        // Polling may be disabled or, after a loss of power, off. The `?` enables it.
        let letter = self.unit.byte();
        let bytes = if poll.is_answered { vec![letter] } else { vec![b'?', letter] };
        self.transmit.push_back(bytes);
        poll.is_answered = false;
        while poll.due <= now {
            poll.due += interval * (1 + whole_times(now - poll.due, interval));
        }
    }

    /// Returns true if the instrument seems to lack the required settings.
    fn wants_dialogue(&self) -> bool {
        let able = matches!(self.task, Task::Listen | Task::Poll(_));
        let wanted = self.options.mode != Mode::Listen;
        wanted && able && (self.state == State::Silent || self.trouble.is_some())
    }

    fn configure(&mut self, now: Duration, commands: &'static [&'static str]) {
        let wait = self.options.answer_wait;
        self.task = Task::Configure(Dialogue::begin(now, self.unit, commands, wait));
        self.advance_dialogue(now, None);
        self.report_state();
    }

    fn advance_dialogue(&mut self, now: Duration, outcome: Option<Outcome>) {
        let Task::Configure(dialogue) = &mut self.task else { return };
        self.transmit.extend(std::iter::from_fn(|| dialogue.poll_transmit()));
        let Some(outcome) = outcome else { return };
        self.trouble = match outcome {
            Outcome::Done(unit) => {
                self.unit = unit;
                None
            }
            Outcome::NoAnswer => Some(
                "the instrument does not answer commands (is the line to it connected?)".to_owned(),
            ),
            Outcome::Refused(command) => Some(format!("the instrument does not accept {command}")),
        };
        self.dialogue_at = now + self.options.configure_retry;
        self.task = match self.options.mode {
            Mode::Polled => Task::Poll(Poll { due: now, is_answered: false }),
            Mode::Listen | Mode::Configure => Task::Listen,
        };
        self.report_state();
    }

    /// Reports the state, with a sentence about it.
    fn report_state(&mut self) {
        let path = self.options.path.display();
        let mut detail = match (self.state, &self.newest_text) {
            (State::Live, _) => match &self.fault {
                None => format!("receiving from {path}"),
                Some(fault) => format!("receiving from {path}; the instrument reports {fault}"),
            },
            (State::Silent, _) if self.bad_lines > 0 => {
                let hint = match self.is_binary {
                    true => format!(" (is it {} baud?)", self.options.baud),
                    false => String::new(),
                };
                format!(
                    "nothing but bad lines from {path}, {} so far, the newest: {}{hint}",
                    self.bad_lines, self.newest_fault
                )
            }
            (State::Silent, Some(text)) => {
                let silence = seconds(self.options.silence_max);
                format!("no measurement from {path} for {silence}; its newest line: \"{text}\"")
            }
            (State::Silent, None) => {
                let silence = seconds(self.options.silence_max);
                format!("{path} is open, but no valid message arrived for {silence}")
            }
            (State::Opening | State::Lost | State::Waiting | State::Ended, _) => {
                format!("{path} is open, waiting for the first message")
            }
        };
        if matches!(self.task, Task::Configure(_)) {
            detail += "; configuring the instrument";
        } else if let Some(trouble) = &self.trouble {
            detail += &format!(
                "; not configured: {trouble}; retrying in {}",
                seconds(self.options.configure_retry)
            );
        } else if self.unit != self.options.unit {
            detail += &format!("; its identifier is {}, not {}", self.unit, self.options.unit);
        }
        self.outputs.push_back(Output::State(self.state, detail));
    }

    pub(crate) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.pop_front()
    }

    /// Returns the time at which to call [`Session::handle_timeout`], unless bytes come before.
    pub(crate) fn poll_timeout(&self) -> Option<Duration> {
        let task = match &self.task {
            Task::Listen => None,
            Task::Settle { until } => Some(*until),
            Task::Configure(dialogue) => Some(dialogue.deadline()),
            Task::Poll(poll) => Some(poll.due),
        };
        let silence = (self.state != State::Silent).then(|| self.silent_at());
        let dialogue = self.wants_dialogue().then_some(self.dialogue_at);
        task.into_iter().chain(silence).chain(dialogue).min()
    }

    fn silent_at(&self) -> Duration {
        self.last_message_at + self.options.silence_max
    }
}

/// Returns true for text about the instrument itself, which it sends at power-up and in configuration mode. Returns
/// false for a damaged measurement, since that still has its first byte, its last byte or its commas.
fn is_announcement(line: &RawLine) -> bool {
    let text = |byte: &u8| is_of_text(*byte) && *byte != b',';
    !line.is_overlong && !line.bytes.starts_with(b"$") && line.bytes.iter().all(text)
}

/// Returns true for a byte that may occur in a line of ASCII text.
fn is_of_text(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte) || byte == b'\t'
}

/// Returns the line as printable text: escaped, and cut to 60 characters.
fn cut(bytes: &[u8]) -> String {
    let mut text: String = bytes.escape_ascii().take(61).map(char::from).collect();
    if text.len() > 60 {
        text.truncate(60);
        text.push('…');
    }
    text
}

fn whole_times(duration: Duration, interval: Duration) -> u32 {
    u32::try_from(duration.as_nanos() / interval.as_nanos().max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
