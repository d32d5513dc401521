//! Parsers of what servers send. No IO: bytes in, in any pieces, and [`Wire`]s out.
//!
//! Owns the spelling of each transport and the limits on what is kept of it. Whether what is said follows on
//! what was said before is the tracker's business.

pub(crate) mod frames;
pub(crate) mod item;
pub(crate) mod lines;
mod malformed;
pub(crate) mod mux;
pub(crate) mod page;
mod said;
pub(crate) mod sse;

pub use malformed::Malformed;
pub(crate) use said::Wire;

#[cfg(test)]
pub(crate) mod testing {
    use proptest::prelude::*;

    /// The places to cut at, as parts of the whole.
    pub(crate) fn cuts() -> impl Strategy<Value = Vec<prop::sample::Index>> {
        prop::collection::vec(any::<prop::sample::Index>(), 0..12)
    }

    /// The pieces between the cuts.
    pub(crate) fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
        let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        places.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect()
    }
}
