//! The parameter `mode` ("`GET /topics/NAME`" in `docs/PROTOCOL.md`).

/// The events that a reader who is behind gets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Mode {
    /// Every event, in order.
    #[default]
    All,
    /// Only the newest event, and the number of skipped ones.
    Latest,
}

impl Mode {
    /// The mode with this name; `None` if there is none.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        [Self::All, Self::Latest].into_iter().find(|mode| mode.as_str() == name)
    }

    /// The name: `all` or `latest`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Latest => "latest",
        }
    }
}
