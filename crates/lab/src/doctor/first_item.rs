//! Finds the end of a stream's first item. The item arrives in pieces, and may be compressed.
//!
//! Owns the rule that a stream has begun once its first item is complete. Its first bytes are not enough, since a proxy
//! may hold back the end of the item. Keeps none of the bytes.

use std::io::{Result, Write};

use flate2::write::{MultiGzDecoder, ZlibDecoder};

use super::rules::limits;

/// The most bytes that a compressing proxy may send before any data. They are the header of gzip (RFC 1952 section
/// 2.3).
const CODING_BYTES: usize = 10;

/// The state of the first item, by its coding.
pub(super) enum FirstItem {
    Plain(ItemText),
    Gzip(MultiGzDecoder<ItemText>),
    Deflate(ZlibDecoder<ItemText>),
    /// The number of bytes that have come, in a coding that is not decoded here.
    Other(usize),
}

impl FirstItem {
    /// Expects an item that ends with this number of line ends. `coding` is the field `Content-Encoding`.
    pub(super) fn new(line_ends: usize, coding: &str) -> Self {
        let text = ItemText { line_ends, newest: 0, bytes: 0 };
        match coding.to_ascii_lowercase().as_str() {
            "" | "identity" => Self::Plain(text),
            "gzip" | "x-gzip" => Self::Gzip(MultiGzDecoder::new(text)),
            "deflate" => Self::Deflate(ZlibDecoder::new(text)),
            _ => Self::Other(0),
        }
    }

    /// Takes a piece. Returns true once the item is complete. An item that cannot be decoded counts as complete, since
    /// it is not held back.
    pub(super) fn receive(&mut self, piece: &[u8]) -> bool {
        match self {
            Self::Plain(text) => write(text, piece).is_err() || text.is_whole(),
            Self::Gzip(decoder) => write(decoder, piece).is_err() || decoder.get_ref().is_whole(),
            Self::Deflate(decoder) => {
                write(decoder, piece).is_err() || decoder.get_ref().is_whole()
            }
            Self::Other(bytes) => {
                *bytes += piece.len();
                *bytes > CODING_BYTES
            }
        }
    }
}

fn write(to: &mut impl Write, piece: &[u8]) -> Result<()> {
    to.write_all(piece)?;
    to.flush()
}

/// Looks for the end of the first item in its text.
pub(super) struct ItemText {
    /// The number of line ends in a row at the end of the item.
    line_ends: usize,
    /// The number of line ends that came last, in a row.
    newest: usize,
    bytes: usize,
}

impl ItemText {
    fn is_whole(&self) -> bool {
        self.newest == self.line_ends || self.bytes > limits().item_bytes_max
    }
}

impl Write for ItemText {
    fn write(&mut self, text: &[u8]) -> Result<usize> {
        self.bytes = self.bytes.saturating_add(text.len());
        for byte in text {
            match byte {
                _ if self.newest == self.line_ends => break,
                b'\n' => self.newest += 1,
                b'\r' => {}
                _ => self.newest = 0,
            }
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::*;

    const SSE_ITEM: &[u8] = b"retry: 1000\nid: 18e7pk347f-4\n\n";

    /// Feeds the bytes one by one. Returns the number of bytes after which the item is complete.
    fn whole_after(line_ends: usize, coding: &str, bytes: &[u8]) -> Option<usize> {
        let mut item = FirstItem::new(line_ends, coding);
        bytes.iter().position(|&byte| item.receive(&[byte])).map(|at| at + 1)
    }

    #[test]
    fn an_item_is_whole_with_its_last_line_end_however_it_is_cut() {
        let more = [SSE_ITEM, b":\n\n"].concat();
        for coding in ["", "identity"] {
            assert_eq!(whole_after(2, coding, &more), Some(SSE_ITEM.len()));
            assert_eq!(whole_after(1, coding, b"{\"position\":\"a\"}\n{"), Some(17));
        }
        assert_eq!(whole_after(2, "", b"id: a\r\n\r\n:"), Some(9));
        for cut in 0..more.len() {
            let mut item = FirstItem::new(2, "");
            let is_whole = item.receive(&more[..cut]);
            assert_eq!((is_whole, item.receive(&more[cut..])), (cut >= SSE_ITEM.len(), true));
        }
    }

    #[test]
    fn what_has_no_end_within_the_limit_counts_as_whole() {
        let max = limits().item_bytes_max;
        assert_eq!(whole_after(1, "", &vec![b':'; max + 9]), Some(max + 1));
    }

    #[test]
    fn a_compressed_item_is_whole_once_it_can_be_decoded() {
        let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::default());
        let mut zlib = ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        write(&mut gzip, SSE_ITEM).unwrap();
        write(&mut zlib, SSE_ITEM).unwrap();
        for (coding, bytes) in
            [("gzip", gzip.get_ref()), ("X-GZIP", gzip.get_ref()), ("deflate", zlib.get_ref())]
        {
            // What keeps the end of each event back, and the end of the flush is empty (RFC 1951 section 3.2.4).
            assert_eq!(whole_after(2, coding, &bytes[..bytes.len() - 9]), None, "{coding}");
            assert!(whole_after(2, coding, bytes).is_some(), "{coding}");
            assert!(FirstItem::new(2, coding).receive(bytes), "{coding}");
        }
    }

    #[test]
    fn a_coding_that_is_not_decoded_begins_after_its_header() {
        assert_eq!(whole_after(2, "br", &[b':'; 20]), Some(CODING_BYTES + 1));
        assert!(whole_after(2, "gzip", b"no gzip at all").is_some());
    }
}
