//! The owner of a run.

/// A client whose runs count together, in whatever numbers the caller gives: an address, say.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct OwnerKey(pub u128);
