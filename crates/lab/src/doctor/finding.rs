//! What an examination has found, in one sentence.

use serde::Serialize;

use super::rules::{Name, Remedy, WayFault};

/// How it went.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Good,
    Fault,
    /// Nothing is wrong, and something should be known.
    Note,
    /// It could not be told.
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

/// The result of an examination.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    name: Name,
    state: State,
    words: String,
    /// The fault, unless its words say all that there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<WayFault>,
    remedies: Vec<Remedy>,
    /// It did not come as far as the server, which may be there.
    #[serde(skip)]
    is_refused: bool,
}

impl Finding {
    fn new(name: Name, state: State, words: String) -> Self {
        Self { name, state, words, fault: None, remedies: Vec::new(), is_refused: false }
    }

    pub(super) fn good(name: Name, words: String) -> Self {
        Self::new(name, State::Good, words)
    }

    /// A fault, in words that say what was found, and with the settings that mend it.
    pub(super) fn fault(name: Name, fault: WayFault, words: String, program: Option<&str>) -> Self {
        let remedies = fault.remedies(program);
        Self { fault: Some(fault), remedies, ..Self::new(name, State::Fault, words) }
    }

    /// A fault that no setting mends.
    pub(super) fn wrong(name: Name, words: String) -> Self {
        Self::new(name, State::Fault, words)
    }

    /// Something on the way wants to know who asks.
    pub(super) fn refused(words: String) -> Self {
        Self { is_refused: true, ..Self::new(Name::Reach, State::Fault, words) }
    }

    pub(super) fn note(name: Name, words: String) -> Self {
        Self::new(name, State::Note, words)
    }

    pub(super) fn unknown(name: Name, words: String) -> Self {
        Self::new(name, State::Unknown, words)
    }

    pub(super) fn is_refused(&self) -> bool {
        self.is_refused
    }

    pub(super) fn is_fault(&self) -> bool {
        self.state == State::Fault
    }

    pub(super) fn has_remedy(&self) -> bool {
        !self.remedies.is_empty()
    }

    /// Returns the lines for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let first = format!("  {:<6} {:<12} {}", self.state.words(), self.name.words(), self.words);
        let remedies = self.remedies.iter();
        let more = remedies.map(|one| format!("{:21} {}: {}", "", one.program, one.setting));
        [first].into_iter().chain(more).collect()
    }
}
