//! Payloads: a few bytes of input that stand for many, so that lengths at which something changes are
//! within reach.

use arbitrary::{Arbitrary, Result, Unstructured};

/// The payload of a message or a fragment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Payload {
    /// True if it is sent as text; it is UTF-8 then.
    pub(crate) is_text: bool,
    pub(crate) bytes: Vec<u8>,
}

impl<'a> Arbitrary<'a> for Payload {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let kind: u8 = u.arbitrary()?;
        let bytes = match kind % 5 {
            0 => short(u)?.to_vec(),
            1 => {
                // Up to 65,536, the first length that takes eight bytes.
                let (byte, len): (u8, u16) = (u.arbitrary()?, u.arbitrary()?);
                vec![byte; usize::from(len) + 1]
            }
            2 => {
                let (seed, len): (u8, u16) = (u.arbitrary()?, u.arbitrary()?);
                noise(seed).take(usize::from(len)).collect()
            }
            3 => String::from_utf8_lossy(short(u)?).into_owned().into_bytes(),
            _ => {
                let times: u8 = u.arbitrary()?;
                short(u)?.repeat(usize::from(times))
            }
        };
        let is_text = kind & 0x80 != 0 && str::from_utf8(&bytes).is_ok();
        Ok(Self { is_text, bytes })
    }
}

/// A length of one byte, and as many bytes; fewer at the end of the input.
pub(crate) fn short<'a>(u: &mut Unstructured<'a>) -> Result<&'a [u8]> {
    let len: u8 = u.arbitrary()?;
    u.bytes(usize::from(len).min(u.len()))
}

/// As [`short`] with a length of two bytes.
pub(crate) fn long<'a>(u: &mut Unstructured<'a>) -> Result<&'a [u8]> {
    let len: u16 = u.arbitrary()?;
    u.bytes(usize::from(len).min(u.len()))
}

/// Bytes that do not compress.
fn noise(seed: u8) -> impl Iterator<Item = u8> {
    let mut state = u32::from(seed);
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
}

/// The positions of cuts: their number, up to 7, in one byte, and two bytes for each.
#[derive(Clone, Debug)]
pub(crate) struct Cuts(Vec<u16>);

impl<'a> Arbitrary<'a> for Cuts {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let number: u8 = u.arbitrary()?;
        (0..number % 8).map(|_| u.arbitrary()).collect::<Result<_>>().map(Self)
    }
}

impl Cuts {
    /// The ends of the pieces of `len` bytes, ascending, `len` last.
    pub(crate) fn of(&self, len: usize) -> Vec<usize> {
        let cuts = self.0.iter().map(|&at| usize::from(at) % (len + 1));
        let mut cuts: Vec<usize> = cuts.chain([len]).collect();
        cuts.sort_unstable();
        cuts
    }
}

/// The pieces that end at `cuts`.
pub(crate) fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> impl Iterator<Item = &'a [u8]> {
    let starts = std::iter::once(0).chain(cuts.iter().copied());
    starts.zip(cuts).map(|(start, &end)| &bytes[start..end])
}
