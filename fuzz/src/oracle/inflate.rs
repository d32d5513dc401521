//! RFC 1951, one bit at a time, and what RFC 7692 section 7.2.2 makes of it.

/// The reason why a message cannot be inflated.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InflateError {
    /// It is not what section 7.2.1 makes.
    Invalid,
    /// It is longer than allowed.
    TooLong,
}

/// A stream of messages.
#[derive(Clone, Debug)]
pub struct Inflate {
    /// All that was written since the stream began.
    history: Vec<u8>,
    /// Furthest that a match may refer back.
    distance_max: usize,
}

/// The bytes that are omitted at the end of a payload.
const TAIL: [u8; 4] = [0x00, 0x00, 0xff, 0xff];

const LENGTH_BASE: [usize; 29] = [
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131,
    163, 195, 227, 258,
];
const LENGTH_BITS: [u32; 29] =
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const DISTANCE_BASE: [usize; 30] = [
    1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537,
    2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577,
];
const DISTANCE_BITS: [u32; 30] = [
    0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13,
    13,
];
/// The order in which the lengths of the code length code stand.
const CODE_ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

impl Inflate {
    /// A stream whose window is two to the power of `window_bits`.
    #[must_use]
    pub fn new(window_bits: u8) -> Self {
        Self { history: Vec::new(), distance_max: 1 << window_bits }
    }

    /// The next message is the first.
    pub fn restart(&mut self) {
        self.history.clear();
    }

    /// Inflates a whole message of at most `len_max` bytes.
    ///
    /// # Errors
    /// Whichever is found first, in the order of the output.
    pub fn message(&mut self, payload: &[u8], len_max: usize) -> Result<Vec<u8>, InflateError> {
        let mut reader = Reader {
            bits: Bits { bytes: [payload, &TAIL].concat(), at: 0 },
            payload_bits: payload.len() * 8,
            output_from: self.history.len(),
            len_max,
            stream: self,
        };
        reader.message()
    }
}

struct Reader<'a> {
    bits: Bits,
    /// The number of bits of the payload; after them come the omitted bytes.
    payload_bits: usize,
    /// The beginning of the message in the history.
    output_from: usize,
    len_max: usize,
    stream: &'a mut Inflate,
}

impl Reader<'_> {
    fn message(&mut self) -> Result<Vec<u8>, InflateError> {
        let mut output = Vec::new();
        // A stream may end with the message, and then nothing is missing.
        let mut is_at_stream = true;
        loop {
            if is_at_stream && self.bits.at == self.payload_bits {
                break;
            }
            if self.bits.at > self.payload_bits {
                // A block ended within the omitted bytes, so it must be the last.
                if self.bits.at.div_ceil(8) * 8 != self.bits.bytes.len() * 8 {
                    return Err(InflateError::Invalid);
                }
                break;
            }
            let is_final = self.bits.take(1)? == 1;
            match self.bits.take(2)? {
                0 => self.stored()?,
                1 => {
                    let lengths: Vec<u8> = [(8, 144), (9, 112), (7, 24), (8, 8)]
                        .into_iter()
                        .flat_map(|(bits, number)| std::iter::repeat_n(bits, number))
                        .collect();
                    self.block(&Code::new(&lengths)?, &Code::new(&[5; 30])?)?;
                }
                2 => {
                    let (literals, distances) = self.codes()?;
                    self.block(&literals, &distances)?;
                }
                _ => return Err(InflateError::Invalid),
            }
            is_at_stream = is_final;
            if is_final {
                self.bits.align();
                output.extend_from_slice(&self.stream.history[self.output_from..]);
                self.len_max -= self.stream.history.len() - self.output_from;
                self.stream.history.clear();
                self.output_from = 0;
            }
        }
        output.extend_from_slice(&self.stream.history[self.output_from..]);
        Ok(output)
    }

    fn write(&mut self, byte: u8) -> Result<(), InflateError> {
        if self.bits.at > self.payload_bits {
            return Err(InflateError::Invalid);
        }
        if self.stream.history.len() - self.output_from == self.len_max {
            return Err(InflateError::TooLong);
        }
        self.stream.history.push(byte);
        Ok(())
    }

    /// RFC 1951 section 3.2.4.
    fn stored(&mut self) -> Result<(), InflateError> {
        self.bits.align();
        let (len, complement) = (self.bits.take(16)?, self.bits.take(16)?);
        if len != !complement & 0xffff {
            return Err(InflateError::Invalid);
        }
        for _ in 0..len {
            let byte = self.bits.take(8)?;
            self.write(byte as u8)?;
        }
        Ok(())
    }

    /// Sections 3.2.5 and 3.2.6.
    fn block(&mut self, literals: &Code, distances: &Code) -> Result<(), InflateError> {
        loop {
            let symbol = literals.decode(&mut self.bits)?;
            match symbol {
                0..=255 => self.write(symbol as u8)?,
                256 => return Ok(()),
                _ => {
                    let at = symbol - 257;
                    let base = LENGTH_BASE.get(at).ok_or(InflateError::Invalid)?;
                    let len = base + self.bits.take(LENGTH_BITS[at])?;
                    let at = distances.decode(&mut self.bits)?;
                    let base = DISTANCE_BASE.get(at).ok_or(InflateError::Invalid)?;
                    let distance = base + self.bits.take(DISTANCE_BITS[at])?;
                    let from = self.stream.history.len().checked_sub(distance);
                    let from = from.ok_or(InflateError::Invalid)?;
                    if distance > self.stream.distance_max {
                        return Err(InflateError::Invalid);
                    }
                    for i in 0..len {
                        let byte = self.stream.history[from + i];
                        self.write(byte)?;
                    }
                }
            }
        }
    }

    /// Section 3.2.7.
    fn codes(&mut self) -> Result<(Code, Code), InflateError> {
        let literals = 257 + self.bits.take(5)?;
        let distances = 1 + self.bits.take(5)?;
        let codes = 4 + self.bits.take(4)?;
        if literals > 286 || distances > 30 {
            return Err(InflateError::Invalid);
        }
        let mut lengths = [0_u8; 19];
        for &symbol in &CODE_ORDER[..codes] {
            lengths[symbol] = self.bits.take(3)? as u8;
        }
        let code = Code::new(&lengths)?;
        if !code.is_complete {
            return Err(InflateError::Invalid);
        }
        let mut lengths: Vec<u8> = Vec::new();
        while lengths.len() < literals + distances {
            let (length, times) = match code.decode(&mut self.bits)? {
                16 => {
                    let last = *lengths.last().ok_or(InflateError::Invalid)?;
                    (last, 3 + self.bits.take(2)?)
                }
                17 => (0, 3 + self.bits.take(3)?),
                18 => (0, 11 + self.bits.take(7)?),
                length => (length as u8, 1),
            };
            lengths.extend(std::iter::repeat_n(length, times));
        }
        if lengths.len() > literals + distances || lengths[256] == 0 {
            return Err(InflateError::Invalid);
        }
        let (literals, distances) = lengths.split_at(literals);
        let codes = (Code::new(literals)?, Code::new(distances)?);
        if codes.0.is_usable() && codes.1.is_usable() {
            Ok(codes)
        } else {
            Err(InflateError::Invalid)
        }
    }
}

/// A canonical Huffman code (section 3.2.2).
struct Code {
    /// The number of codes of each length.
    counts: [usize; 16],
    /// Symbols in the order of their codes.
    symbols: Vec<usize>,
    is_complete: bool,
}

impl Code {
    fn new(lengths: &[u8]) -> Result<Self, InflateError> {
        let mut counts = [0; 16];
        for &length in lengths {
            counts[usize::from(length)] += 1;
        }
        counts[0] = 0;
        let mut left = 1_usize;
        for count in &counts[1..] {
            left = (left * 2).checked_sub(*count).ok_or(InflateError::Invalid)?;
        }
        let mut symbols: Vec<usize> =
            (0..lengths.len()).filter(|&symbol| lengths[symbol] > 0).collect();
        symbols.sort_by_key(|&symbol| lengths[symbol]);
        Ok(Self { counts, symbols, is_complete: left == 0 })
    }

    /// Complete, or of one code of one bit, or of none (section 3.2.7).
    fn is_usable(&self) -> bool {
        self.is_complete || self.symbols.len() == self.counts[1]
    }

    fn decode(&self, bits: &mut Bits) -> Result<usize, InflateError> {
        let (mut code, mut first, mut index) = (0, 0, 0);
        for count in &self.counts[1..] {
            code |= bits.take(1)?;
            if code < first + count {
                return Ok(self.symbols[index + code - first]);
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        Err(InflateError::Invalid)
    }
}

struct Bits {
    bytes: Vec<u8>,
    /// The number of bits that were read.
    at: usize,
}

impl Bits {
    /// The next bits, the first as the lowest.
    fn take(&mut self, number: u32) -> Result<usize, InflateError> {
        let mut value = 0;
        for i in 0..number {
            let byte = self.bytes.get(self.at / 8).ok_or(InflateError::Invalid)?;
            value |= usize::from(byte >> (self.at % 8) & 1) << i;
            self.at += 1;
        }
        Ok(value)
    }

    fn align(&mut self) {
        self.at = self.at.div_ceil(8) * 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payloads_of_section_7_2_3_inflate() {
        let mut stream = Inflate::new(15);
        for payload in [
            &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00][..],
            &[0xf2, 0x00, 0x11, 0x00, 0x00],
            &[0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00],
            &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00],
            &[0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00],
        ] {
            assert_eq!(stream.message(payload, 5).as_deref(), Ok(&b"Hello"[..]), "{payload:x?}");
        }
        let whole = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
        assert_eq!(stream.message(&whole, 4), Err(InflateError::TooLong));
        stream.restart();
        let again = stream.message(&[0xf2, 0x00, 0x11, 0x00, 0x00], 5);
        assert_eq!(again, Err(InflateError::Invalid));
    }
}
