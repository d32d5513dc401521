//! permessage-deflate in a connection: its compressor and inflater, and how long it keeps them.

use crate::extension::{Compressor, InflateError, Inflater, Lent};
use crate::{CompressionLevel, ExchangeCodecs, NegotiatedDeflate, ProtocolError, WindowBits};

/// The compression of sent messages.
#[derive(Debug)]
pub(super) struct Outgoing {
    exchange: ExchangeCodecs,
    level: CompressionLevel,
    window: WindowBits,
    compress_bytes_min: usize,
    context_takeover: bool,
    /// With context takeover: the compressor that continues with the next message or fragment.
    compressor: Option<Compressor>,
    /// True while a compressed message is being sent in fragments.
    in_message: bool,
}

/// The parameters that determine the compressed form of a message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Sharing {
    level: CompressionLevel,
    window: WindowBits,
    compress_bytes_min: usize,
}

/// The inflation of received messages.
#[derive(Debug)]
pub(super) struct Incoming {
    exchange: ExchangeCodecs,
    context_takeover: bool,
    /// With context takeover: the inflater that continues with the next message.
    inflater: Option<Inflater>,
}

/// A compressed payload at the front of the thread's output buffer.
pub(super) struct Compressed {
    lent: Lent,
    len: usize,
}

impl Compressed {
    pub(super) fn payload(&self) -> &[u8] {
        &self.lent.codecs.output[..self.len]
    }
}

impl Outgoing {
    /// Returns `None` if this end may not compress.
    pub(super) fn new(negotiated: &NegotiatedDeflate, exchange: ExchangeCodecs) -> Option<Self> {
        Some(Self {
            exchange,
            level: negotiated.level,
            window: negotiated.own_window_bits?,
            compress_bytes_min: negotiated.compress_bytes_min,
            context_takeover: negotiated.own_context_takeover,
            compressor: None,
            in_message: false,
        })
    }

    /// Returns the parameters that two connections must share to send the same compressed bytes; `None` with context
    /// takeover, since the result then depends on earlier messages.
    pub(super) fn sharing(&self) -> Option<Sharing> {
        let Self { level, window, compress_bytes_min, .. } = *self;
        (!self.context_takeover).then_some(Sharing { level, window, compress_bytes_min })
    }

    /// Compresses the payload of a message or fragment; returns `None` if it is to be sent uncompressed.
    pub(super) fn compress(
        &mut self,
        payload: &[u8],
        is_first: bool,
        fin: bool,
    ) -> Option<Compressed> {
        match (is_first, fin) {
            (true, true) => self.message(payload),
            // The length of the whole message is not known yet.
            (true, false) => Some(self.fragment(payload, false)),
            (false, _) if self.in_message => Some(self.fragment(payload, fin)),
            (false, _) => None,
        }
    }

    /// Compresses a whole message. An endpoint may choose for each message (RFC 7692 section 6).
    fn message(&mut self, payload: &[u8]) -> Option<Compressed> {
        if payload.len() < self.compress_bytes_min {
            return None;
        }
        let mut lent = Lent::new(self.exchange);
        let mut compressor = self.begin(&mut lent);
        // A payload that does not get smaller is sent uncompressed. With context takeover it is sent compressed: the
        // compressor will refer to it, so the peer must inflate it (section 7.2.3.2). Stored blocks cost 5 bytes in
        // 16 KiB; level 1 has none, and random bytes grow by a twentieth, an eighth at most.
        let output = &mut lent.codecs.output;
        let len = if self.context_takeover {
            Some(compressor.compress(payload, output))
        } else {
            compressor.compress_within(payload, output, payload.len() + 3)
        };
        let len = len.map(|len| Compressor::end(output, len));
        self.end(compressor, &mut lent);
        Some(Compressed { lent, len: len? })
    }

    fn fragment(&mut self, payload: &[u8], fin: bool) -> Compressed {
        let mut lent = Lent::new(self.exchange);
        // Without context takeover, each fragment is compressed without reference to the ones before. Otherwise the
        // connection would keep a compressor of about 260 KB until the message ends, which may take long.
        let mut compressor = self.begin(&mut lent);
        let output = &mut lent.codecs.output;
        let mut len = compressor.compress(payload, output);
        if fin {
            len = Compressor::end(output, len);
        }
        self.end(compressor, &mut lent);
        self.in_message = !fin;
        Compressed { lent, len }
    }

    fn begin(&mut self, lent: &mut Lent) -> Compressor {
        if self.context_takeover {
            self.compressor.take().unwrap_or_else(|| Compressor::new(self.level, self.window))
        } else {
            lent.codecs.take_compressor(self.level, self.window)
        }
    }

    fn end(&mut self, compressor: Compressor, lent: &mut Lent) {
        if self.context_takeover {
            self.compressor = Some(compressor);
        } else {
            lent.codecs.keep_compressor(compressor);
        }
    }
}

impl Incoming {
    pub(super) fn new(negotiated: &NegotiatedDeflate, exchange: ExchangeCodecs) -> Self {
        Self { exchange, context_takeover: negotiated.peer_context_takeover, inflater: None }
    }

    /// Takes the inflater for a new message. If another connection needs one before this message is complete, it
    /// creates its own, and the thread keeps one of the two.
    pub(super) fn begin(&mut self) -> Inflater {
        if self.context_takeover {
            self.inflater.take().unwrap_or_default()
        } else {
            Lent::new(self.exchange).codecs.take_inflater()
        }
    }

    pub(super) fn end(&mut self, inflater: Inflater) {
        if self.context_takeover {
            self.inflater = Some(inflater);
        } else {
            Lent::new(self.exchange).codecs.keep_inflater(inflater);
        }
    }
}

pub(super) fn violation(error: InflateError, limit: u64) -> ProtocolError {
    match error {
        InflateError::Invalid => ProtocolError::DeflateInvalid,
        InflateError::TooLong => ProtocolError::InflatedTooBig { limit },
    }
}
