//! How a reader who is behind is served.

/// The events that a reader who is behind gets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Mode {
    /// Every event, in order.
    #[default]
    All,
    /// The newest event alone, and how many were passed over.
    Latest,
}

impl Mode {
    /// As `mode` has it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Latest => "latest",
        }
    }
}
