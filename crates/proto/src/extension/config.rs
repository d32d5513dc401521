//! The options of one end for permessage-deflate.

/// The options of one end for permessage-deflate (RFC 7692). *Own* means the messages that this end sends, *peer*
/// those that it receives.
///
/// Without context takeover each message is compressed on its own, and all connections of a thread share one
/// compressor and one inflater ([`Codecs`](crate::Codecs)). With it, messages get smaller, above all short and similar
/// ones. But the connection then always keeps a compressor (about 260 KB, or 140 KB with a window of 9 bits), an
/// inflater (about 45 KB), or both.
///
/// An attacker who can choose part of a message and see its compressed length can guess the rest (RFC 7692 section 8;
/// CRIME and BREACH did it to HTTP). Do not put secrets and foreign text into one compressed message, or into one
/// connection with context takeover.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeflateConfig {
    /// The compression level. Default 1: it turns JSON of 512 bytes into 211 in 3 µs, where level 6 takes 10 µs for
    /// 173. A higher level is worth less the more clients get a message.
    pub level: CompressionLevel,
    /// The shortest message to compress, in bytes. Default 512: a shorter message rarely halves, fits one packet
    /// either way, and costs 2 µs to clear the compressor's tables. With context takeover, 32 is a good value.
    /// Messages sent in fragments are always compressed, since their length is not known in advance.
    pub compress_bytes_min: usize,
    /// The largest window for sent messages. Default 15. With context takeover, a smaller window needs less memory
    /// for the compressor.
    pub own_window_bits: WindowBits,
    /// The largest window asked of the peer. Default 15. The inflater accepts any window and always takes 32 KiB for
    /// it; a smaller one only saves the peer memory.
    pub peer_window_bits: WindowBits,
    /// True if this end may use context takeover. Default false, to save memory.
    pub own_context_takeover: bool,
    /// True if the peer may use context takeover. Default false, to save memory.
    pub peer_context_takeover: bool,
}

impl Default for DeflateConfig {
    fn default() -> Self {
        Self {
            level: CompressionLevel::FASTEST,
            compress_bytes_min: 512,
            own_window_bits: WindowBits::MAX,
            peer_window_bits: WindowBits::MAX,
            own_context_takeover: false,
            peer_context_takeover: false,
        }
    }
}

/// The base-2 logarithm of a compressor's window size, 9 to 15. The protocol also allows 8 (RFC 7692 section 7.1.2),
/// which zlib cannot produce.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct WindowBits(u8);

impl WindowBits {
    /// 512 bytes.
    pub const MIN: Self = Self(9);
    /// 32 KiB.
    pub const MAX: Self = Self(15);

    /// Returns this window size; `None` outside 9 to 15.
    #[must_use]
    pub const fn new(bits: u8) -> Option<Self> {
        match bits {
            9..=15 => Some(Self(bits)),
            _ => None,
        }
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// A compression level from 1, the fastest, to 9, the smallest output.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CompressionLevel(u8);

impl CompressionLevel {
    /// The fastest level.
    pub const FASTEST: Self = Self(1);
    /// The default of zlib.
    pub const BALANCED: Self = Self(6);
    /// The level with the smallest output.
    pub const SMALLEST: Self = Self(9);

    /// Returns this level; `None` outside 1 to 9.
    #[must_use]
    pub const fn new(level: u8) -> Option<Self> {
        match level {
            1..=9 => Some(Self(level)),
            _ => None,
        }
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}
