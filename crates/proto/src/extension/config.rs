//! The wishes of one end for permessage-deflate.

/// The wishes of one end for permessage-deflate (RFC 7692). *Own* is what this end sends, *peer* what it
/// receives; which of the two is the client's depends on the role.
///
/// Without context takeover every message is compressed on its own, and all connections of a
/// thread share one compressor and one inflater ([`Codecs`](crate::Codecs)). With it messages get
/// smaller, the short and similar ones most, and the connection keeps a compressor (some 260 KB, and
/// 140 KB with a window of 9 bits), an inflater (some 45 KB) or both for as long as it lasts.
///
/// A peer that can choose part of a message and see its compressed length can guess the rest
/// (RFC 7692 section 8; CRIME and BREACH did it to HTTP): secrets and foreign text do not belong
/// into one compressed message, nor into one connection that takes its context over.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeflateConfig {
    /// The effort of the compressor. Default 1: JSON of 512 bytes becomes 211 in 3 µs, where level 6
    /// takes 10 µs to get to 173. The more clients a message goes to, the less more is worth.
    pub level: CompressionLevel,
    /// Messages below this many bytes are sent as they are. Default 512: below it a message on its own
    /// rarely halves, still fits one packet either way, and costs 2 µs all the same, which go into
    /// clearing the compressor's tables. With context takeover far less is worth it; 32 is then a
    /// good value. A message sent in fragments is always compressed, since nobody knows its length.
    pub compress_bytes_min: usize,
    /// Most window for what this end sends. Default 15. The compressor's memory shrinks with it
    /// where context is taken over.
    pub own_window_bits: WindowBits,
    /// Most window asked of the peer. Default 15. Any window is understood, and the inflater takes
    /// 32 KiB for it whatever is asked here; a smaller one spares a peer that wants to be told.
    pub peer_window_bits: WindowBits,
    /// Whether this end may refer to its earlier messages. Default no, for the memory.
    pub own_context_takeover: bool,
    /// Whether the peer may refer to its earlier messages. Default no, for the memory.
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

/// Base-2 logarithm of the size of a compressor's window, 9 to 15. The protocol knows 8 as well
/// (RFC 7692 section 7.1.2), which zlib cannot produce.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct WindowBits(u8);

impl WindowBits {
    /// 512 bytes.
    pub const MIN: Self = Self(9);
    /// 32 KiB.
    pub const MAX: Self = Self(15);

    /// This many bits; `None` outside 9 to 15.
    #[must_use]
    pub const fn new(bits: u8) -> Option<Self> {
        match bits {
            9..=15 => Some(Self(bits)),
            _ => None,
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// The effort of a compressor, from 1, the fastest, to 9, the smallest output.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CompressionLevel(u8);

impl CompressionLevel {
    /// The fastest.
    pub const FASTEST: Self = Self(1);
    /// The balance that zlib strikes by default.
    pub const BALANCED: Self = Self(6);
    /// The smallest.
    pub const SMALLEST: Self = Self(9);

    /// This level; `None` outside 1 to 9.
    #[must_use]
    pub const fn new(level: u8) -> Option<Self> {
        match level {
            1..=9 => Some(Self(level)),
            _ => None,
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}
