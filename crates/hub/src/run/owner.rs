//! The owner of a run, or of other work.

/// A client whose runs, or other works, count together, in whatever numbers the caller gives: an address, say.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct OwnerKey(pub u128);
