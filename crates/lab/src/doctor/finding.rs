//! The finding of an examination: one sentence.

use serde::Serialize;

use super::rules::{Examination, Remedy, WayFault};
use super::way::Trouble;

/// The outcome of an examination.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Good,
    Fault,
    /// Nothing is wrong, but the user should know something.
    Note,
    /// The examination could not tell.
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
    /// A program on the way asks for a login or another permission.
    Refused,
    /// The certificate is not trusted.
    Untrusted,
    /// The URL is below the server's, which is this one.
    Below(String),
    /// The server answered at first, but no longer does.
    Gone,
}

/// The result of an examination.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    name: Examination,
    state: State,
    words: String,
    /// The fault, if it is one that settings mend.
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

    /// Makes the finding of a fault, in these words, with the settings that mend it.
    pub(super) fn fault(
        name: Examination,
        fault: WayFault,
        words: String,
        program: Option<&str>,
    ) -> Self {
        let remedies = fault.remedies(program);
        Self { fault: Some(fault), remedies, ..Self::new(name, State::Fault, words) }
    }

    /// Makes the finding of a fault that no setting mends.
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

    /// Makes the finding that the examination could not tell, for this reason.
    pub(super) fn trouble(name: Examination, trouble: &Trouble) -> Self {
        Self::unknown(name, trouble.to_string()).silent_if(trouble.is_silence())
    }

    pub(super) fn silent_if(self, is_silent: bool) -> Self {
        Self { is_silent, ..self }
    }

    /// Turns a fault into a note. The settings stay.
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

    /// Returns true if a server that is gone or stalls may be the cause, and not the way to it.
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

    /// Returns true for a note that has settings.
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
