//! The mode in which a reader who is behind is served.

/// The events that a reader who is behind gets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Mode {
    /// Every event, in order.
    #[default]
    All,
    /// The newest event alone, and how many were passed over.
    Latest,
}
