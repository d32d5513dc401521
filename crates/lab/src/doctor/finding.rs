//! The finding of an examination: one sentence.

use serde::Serialize;

use super::rules::{Examination, Remedy, WayFault};
use super::way::Trouble;

/// The kind of a finding.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Good,
    Fault,
    /// Nothing is wrong, but the user should know about it.
    Note,
    /// It is not known if something is wrong.
    Unknown,
}

impl State {
    fn words(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Fault => "FAULT",
            Self::Note => "note",
            Self::Unknown => "?",
        }
    }
}

/// The reason why nothing was examined, or why the examination stopped early.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Unreached {
    /// No Anemone server answers.
    NoServer,
    /// The way to the server is refused, for example by a program that asks for a login.
    Refused,
    /// The certificate is not trusted.
    Untrusted,
    /// The URL is below that of the server. This is the server's URL.
    Below(String),
    /// The server answered at first, but does not any more.
    Gone,
}

/// The result of an examination.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    name: Examination,
    state: State,
    words: String,
    /// The fault, if settings can mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<WayFault>,
    remedies: Vec<Remedy>,
    #[serde(skip)]
    unreached: Option<Unreached>,
    /// True if no answer came in time.
    #[serde(skip)]
    is_silent: bool,
}

impl Finding {
    fn new(name: Examination, state: State, words: String) -> Self {
        Self {
            name,
            state,
            words,
            fault: None,
            remedies: Vec::new(),
            unreached: None,
            is_silent: false,
        }
    }

    pub(super) fn good(name: Examination, words: String) -> Self {
        Self::new(name, State::Good, words)
    }

    /// Makes the finding about a fault, with these words and the settings that mend it.
    pub(super) fn fault(
        name: Examination,
        fault: WayFault,
        words: String,
        program: Option<&str>,
    ) -> Self {
        let remedies = fault.remedies(program);
        Self { fault: Some(fault), remedies, ..Self::new(name, State::Fault, words) }
    }

    /// Makes the finding about a fault that no setting mends.
    pub(super) fn wrong(name: Examination, words: String) -> Self {
        Self::new(name, State::Fault, words)
    }

    /// Makes the finding that the server was not reached.
    pub(super) fn unreached(why: Unreached, words: String) -> Self {
        Self { unreached: Some(why), ..Self::wrong(Examination::Reach, words) }
    }

    pub(super) fn note(name: Examination, words: String) -> Self {
        Self::new(name, State::Note, words)
    }

    pub(super) fn unknown(name: Examination, words: String) -> Self {
        Self::new(name, State::Unknown, words)
    }

    /// Makes the finding that nothing is known, with this trouble as the reason.
    pub(super) fn trouble(name: Examination, trouble: &Trouble) -> Self {
        Self::unknown(name, trouble.to_string()).silent_if(trouble.is_silence())
    }

    pub(super) fn silent_if(self, is_silent: bool) -> Self {
        Self { is_silent, ..self }
    }

    /// Turns a finding about a fault into a note. The settings remain.
    pub(super) fn into_note(self) -> Self {
        Self { state: State::Note, ..self }
    }

    pub(super) fn name(&self) -> Examination {
        self.name
    }

    pub(super) fn why_unreached(&self) -> Option<&Unreached> {
        self.unreached.as_ref()
    }

    pub(super) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Returns true if the cause may be a server that is gone or stalls, instead of the way to it.
    pub(super) fn is_doubtful(&self) -> bool {
        !self.is_silent && (self.is_fault() || self.is_unknown())
    }

    /// Returns true if a stream is held back.
    pub(super) fn is_held(&self) -> bool {
        self.fault == Some(WayFault::Buffered)
    }

    pub(super) fn is_fault(&self) -> bool {
        self.state == State::Fault
    }

    /// Returns true for a note with settings.
    pub(super) fn is_remark(&self) -> bool {
        self.state == State::Note && self.fault.is_some()
    }

    pub(super) fn is_unknown(&self) -> bool {
        self.state == State::Unknown
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let first = format!("  {:<6} {:<12} {}", self.state.words(), self.name.words(), self.words);
        let remedies = self.remedies.iter();
        let more = remedies.map(|one| format!("{:21} {}: {}", "", one.program, one.setting));
        [first].into_iter().chain(more).collect()
    }
}
