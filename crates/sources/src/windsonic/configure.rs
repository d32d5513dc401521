//! The dialogue that changes an instrument's settings: bytes and time in, bytes and an outcome out.
//!
//! Owns the order of the dialogue, the time to wait for each answer, and the number of attempts. The session chooses
//! the settings and handles failures.
//!
//! ```text
//! us          *Q                    M2⏎        P3⏎        Q⏎
//! instrument     CONFIGURATION MODE     M2         P3        (measures again)
//! ```
//!
//! Instruments differ, and any byte may be lost:
//! - Older firmware in continuous mode enters configuration mode at the `*` alone. It takes the identifier for the
//!   beginning of the first command and does not echo that command, so the command is sent again.
//! - The instrument may not answer `*Q`. It may still be in configuration mode after an interrupted dialogue, so `Q`
//!   ENTER is sent. Or it may have another identifier, so `?&` asks for it.
//! - `?&` enables polling. If no answer comes at all, `!` disables it again, so a failed dialogue changes nothing.

use std::collections::VecDeque;
use std::time::Duration;

use super::message::{ETX, STX, UnitId};

/// The most attempts to enter configuration mode, and the most attempts to send a command. Any byte may be lost.
const ATTEMPTS_MAX: u32 = 3;

/// The most received bytes that are kept to search for an answer. Answers have at most 20 bytes.
const RECEIVED_BYTES_MAX: usize = 64;

/// The text with which an instrument reports configuration mode.
const ENTERED: &[u8] = b"CONFIGURATION MODE";

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// The instrument with this identifier accepted all commands.
    Done(UnitId),
    /// The instrument never entered configuration mode.
    NoAnswer,
    /// The instrument entered configuration mode, but did not accept this command.
    Refused(&'static str),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    Enter,
    AskUnit,
    Command(usize),
}

#[derive(Debug)]
pub(crate) struct Dialogue {
    unit: UnitId,
    commands: &'static [&'static str],
    answer_wait: Duration,
    step: Step,
    attempt: u32,
    deadline: Duration,
    received: Vec<u8>,
    /// The lines to send. Each received answer adds at most one, so there are no more than commands.
    transmit: VecDeque<Vec<u8>>,
}

impl Dialogue {
    /// Begins a dialogue; the first bytes to send are ready.
    pub(crate) fn begin(
        now: Duration,
        unit: UnitId,
        commands: &'static [&'static str],
        answer_wait: Duration,
    ) -> Self {
        let mut dialogue = Self {
            unit,
            commands,
            answer_wait,
            step: Step::Enter,
            attempt: 1,
            deadline: now,
            received: Vec::new(),
            transmit: VecDeque::new(),
        };
        dialogue.ask(now, Step::Enter, vec![b'*', unit.byte()]);
        dialogue
    }

    pub(crate) fn receive(&mut self, now: Duration, bytes: &[u8]) -> Option<Outcome> {
        for byte in bytes {
            if let Some(outcome) = self.receive_byte(now, *byte) {
                return Some(outcome);
            }
        }
        None
    }

    fn receive_byte(&mut self, now: Duration, byte: u8) -> Option<Outcome> {
        if [b'\r', b'\n', STX, ETX].contains(&byte) {
            let line = std::mem::take(&mut self.received);
            return self.answer(now, line.trim_ascii());
        }
        if self.received.len() == RECEIVED_BYTES_MAX {
            self.received.remove(0);
        }
        self.received.push(byte);
        // This text may lack a line end, and may directly follow an unfinished message.
        if self.step == Step::Enter && self.received.ends_with(ENTERED) {
            self.received.clear();
            self.attempt = 1;
            return self.command(now, 0);
        }
        None
    }

    fn answer(&mut self, now: Duration, line: &[u8]) -> Option<Outcome> {
        match self.step {
            Step::AskUnit => {
                if let &[letter] = line
                    && let Some(unit) = UnitId::new(char::from(letter))
                {
                    self.unit = unit;
                    self.ask(now, Step::Enter, vec![b'*', unit.byte()]);
                }
                None
            }
            Step::Command(at) if line == self.commands[at].as_bytes() => {
                self.attempt = 1;
                self.command(now, at + 1)
            }
            Step::Enter | Step::Command(_) => None,
        }
    }

    /// Returns the time at which to call [`Dialogue::handle_timeout`].
    pub(crate) fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Continues after the time for an answer is over.
    pub(crate) fn handle_timeout(&mut self, now: Duration) -> Option<Outcome> {
        if now < self.deadline {
            return None;
        }
        // The answer may have arrived without its line end.
        let line = std::mem::take(&mut self.received);
        let step = self.step;
        if let Some(outcome) = self.answer(now, line.trim_ascii()) {
            return Some(outcome);
        }
        if self.deadline > now && self.step != step {
            return None;
        }
        match self.step {
            Step::Enter if self.attempt == ATTEMPTS_MAX => {
                self.transmit.push_back(b"!".to_vec());
                Some(Outcome::NoAnswer)
            }
            Step::Enter => {
                self.attempt += 1;
                self.ask(now, Step::AskUnit, b"\rQ\r?&".to_vec());
                None
            }
            Step::AskUnit => {
                self.ask(now, Step::Enter, vec![b'*', self.unit.byte()]);
                None
            }
            Step::Command(at) if self.attempt == ATTEMPTS_MAX => {
                self.transmit.push_back(b"\rQ\r".to_vec());
                Some(Outcome::Refused(self.commands[at]))
            }
            Step::Command(at) => {
                self.attempt += 1;
                self.command(now, at)
            }
        }
    }

    /// Sends this command, or leaves configuration mode after the last one.
    fn command(&mut self, now: Duration, at: usize) -> Option<Outcome> {
        let Some(command) = self.commands.get(at) else {
            self.transmit.push_back(b"Q\r".to_vec());
            return Some(Outcome::Done(self.unit));
        };
        self.ask(now, Step::Command(at), format!("{command}\r").into_bytes());
        None
    }

    fn ask(&mut self, now: Duration, step: Step, bytes: Vec<u8>) {
        self.step = step;
        self.deadline = now + self.answer_wait;
        self.transmit.push_back(bytes);
    }

    /// Returns the next bytes to send. Call it until it returns `None`, even after the outcome.
    pub(crate) fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WAIT: Duration = Duration::from_secs(1);
    const COMMANDS: &[&str] = &["M2", "P3"];

    fn begin() -> Dialogue {
        Dialogue::begin(Duration::ZERO, UnitId::default(), COMMANDS, WAIT)
    }

    /// Plays a dialogue. Each entry has the bytes that this side must send, and the answer of the instrument. An empty
    /// answer means that there is none.
    fn play(script: &[(&str, &str)]) -> Option<Outcome> {
        let (mut dialogue, mut now, mut outcome) = (begin(), Duration::ZERO, None);
        for (said, answer) in script {
            let sent = dialogue.poll_transmit().unwrap_or_default();
            assert_eq!(sent.escape_ascii().to_string(), said.escape_default().to_string());
            assert_eq!(outcome, None, "ended before {said:?}");
            outcome = dialogue.receive(now, answer.as_bytes());
            if outcome.is_none() && dialogue.transmit.is_empty() {
                now = dialogue.deadline();
                outcome = dialogue.handle_timeout(now);
            }
        }
        if outcome.is_some() {
            let last = dialogue.poll_transmit().unwrap_or_default();
            assert!(!last.is_empty(), "an ended dialogue leaves configuration mode");
        }
        outcome
    }

    const ENTERED: &str = "CONFIGURATION MODE\r\n";

    #[test]
    fn each_command_is_sent_after_the_echo_of_the_one_before() {
        let outcome = play(&[("*Q", ENTERED), ("M2\r", "M2\r\n"), ("P3\r", "P3\r\n")]);
        assert_eq!(outcome, Some(Outcome::Done(UnitId::default())));
    }

    #[test]
    fn answers_are_found_among_measurements() {
        let outcome = play(&[
            ("*Q", "\u{2}Q,229,00CONFIGURATION MODE\r\n"),
            ("M2\r", "\u{2}Q,229,002.74,M,00,\u{3}16\r\nM2\r\n"),
            ("P3\r", "\r\n P3 \r\n"),
        ]);
        assert_eq!(outcome, Some(Outcome::Done(UnitId::default())));
    }

    #[test]
    fn a_command_that_is_not_echoed_as_sent_is_sent_again() {
        // Older firmware enters at the star, and takes the identifier for the beginning of the command.
        let outcome = play(&[
            ("*Q", ENTERED),
            ("M2\r", "QM2\r\n"),
            ("M2\r", "M2\r\n"),
            ("P3\r", ""),
            ("P3\r", "P3\r\n"),
        ]);
        assert_eq!(outcome, Some(Outcome::Done(UnitId::default())));
    }

    #[test]
    fn an_instrument_with_another_identifier_is_asked_for_it() {
        for answer in ["W\r\n", "W"] {
            let outcome = play(&[
                ("*Q", ""),
                ("\rQ\r?&", answer),
                ("*W", ENTERED),
                ("M2\r", "M2\r\n"),
                ("P3\r", "P3\r\n"),
            ]);
            assert_eq!(outcome, Some(Outcome::Done(UnitId::new('W').unwrap())), "{answer:?}");
        }
    }

    #[test]
    fn an_instrument_that_says_nothing_ends_the_dialogue() {
        let outcome = play(&[("*Q", ""), ("\rQ\r?&", ""), ("*Q", ""), ("\rQ\r?&", ""), ("*Q", "")]);
        assert_eq!(outcome, Some(Outcome::NoAnswer));
    }

    #[test]
    fn a_command_that_is_never_accepted_is_named() {
        let no = "ILLEGAL COMMAND\r\n";
        let outcome =
            play(&[("*Q", ENTERED), ("M2\r", "M2\r\n"), ("P3\r", no), ("P3\r", no), ("P3\r", no)]);
        assert_eq!(outcome, Some(Outcome::Refused("P3")));
    }

    proptest! {
        #[test]
        fn whatever_is_answered_the_dialogue_ends(answers: Vec<Vec<u8>>) {
            let mut dialogue = begin();
            let mut answers = answers.into_iter();
            for _ in 0..100 {
                while dialogue.poll_transmit().is_some() {}
                let now = dialogue.deadline();
                let answer = answers.next().unwrap_or_default();
                if dialogue.receive(now - WAIT / 2, &answer).is_some()
                    || dialogue.handle_timeout(now).is_some()
                {
                    return Ok(());
                }
                prop_assert!(dialogue.received.len() <= RECEIVED_BYTES_MAX);
            }
            prop_assert!(false, "still going on after 100 time-outs");
        }
    }
}
