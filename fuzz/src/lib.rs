//! Fuzz targets for `anemone-proto`: one module each, with a `run` that panics on a fault.
//!
//! `scripts/fuzz` runs them in a fuzzing engine. The committed inputs in `seeds/` go through the same
//! bodies in an ordinary test. An input is read from its front, byte by byte, with nothing behind
//! its end but zeroes; so a seed can be written by hand, and a cut one is still an input. Numbers that
//! choose something are append-only, or the seeds change their meaning.
//!
//! The implementations to compare with are independent and as simple as possible: [`oracle`] has frames, masking and
//! inflating; [`memory`] counts the bytes that are really allocated.

pub mod connection_ops;
pub mod frame_decode;
pub mod handshake;
pub mod inflate;
pub mod mask_diff;
pub mod memory;
pub mod oracle;

mod link;
mod negotiated;
mod payload;
mod seen;

/// A body by its target's name.
pub type Target = (&'static str, fn(&[u8]));

/// Every target. The names are those of `fuzz_targets/` and of the folders in `seeds/`.
pub const TARGETS: [Target; 5] = [
    ("connection_ops", connection_ops::run),
    ("frame_decode", frame_decode::run),
    ("handshake", handshake::run),
    ("inflate", inflate::run),
    ("mask_diff", mask_diff::run),
];
