//! permessage-deflate in a connection: which streams it holds, and between which messages.

use crate::extension::{Compressor, InflateError, Inflater, Lent};
use crate::{CompressionLevel, ExchangeCodecs, NegotiatedDeflate, ProtocolError, WindowBits};

/// Compression of what this end sends.
#[derive(Debug)]
pub(super) struct Outgoing {
    exchange: ExchangeCodecs,
    level: CompressionLevel,
    window: WindowBits,
    compress_bytes_min: usize,
    context_takeover: bool,
    /// With context takeover: the one that goes on with the next message, or the next fragment of this one.
    compressor: Option<Compressor>,
    /// A compressed message is being sent in fragments.
    in_message: bool,
}

/// All that the compressed form of a message depends on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Sharing {
    level: CompressionLevel,
    window: WindowBits,
    compress_bytes_min: usize,
}

/// Compression of what the peer sends.
#[derive(Debug)]
pub(super) struct Incoming {
    exchange: ExchangeCodecs,
    context_takeover: bool,
    /// The one that goes on with the next message.
    inflater: Option<Inflater>,
}

/// A payload that lies at the front of the thread's output, for as long as this is kept.
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
    /// `None` where this end may not compress.
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

    /// The parameters that two connections must share to send the same compressed bytes; `None` with context
    /// takeover, where what came before counts.
    pub(super) fn sharing(&self) -> Option<Sharing> {
        let Self { level, window, compress_bytes_min, .. } = *self;
        (!self.context_takeover).then_some(Sharing { level, window, compress_bytes_min })
    }

    /// The payload of a message, or of a fragment of one; `None` when it is to be sent as it is.
    pub(super) fn compress(
        &mut self,
        payload: &[u8],
        is_first: bool,
        fin: bool,
    ) -> Option<Compressed> {
        match (is_first, fin) {
            (true, true) => self.message(payload),
            // How long the message will be is not known yet.
            (true, false) => Some(self.fragment(payload, false)),
            (false, _) if self.in_message => Some(self.fragment(payload, fin)),
            (false, _) => None,
        }
    }

    /// A whole message. An endpoint may choose for each (RFC 7692 section 6).
    fn message(&mut self, payload: &[u8]) -> Option<Compressed> {
        if payload.len() < self.compress_bytes_min {
            return None;
        }
        let mut lent = Lent::new(self.exchange);
        let mut compressor = self.begin(&mut lent);
        // What does not get smaller is sent as it is. Not with context takeover: the compressor
        // will refer to it, so the peer must inflate it (section 7.2.3.2). Stored blocks cost it
        // 5 bytes in 16 KiB; level 1 has none, and noise grows by a twentieth, an eighth at most.
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
        // A fragment that refers to none before it is as good: without context takeover a connection keeps
        // no compressor, some 260 KB, until its message ends, which may be long in coming.
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

    /// The inflater for a message that begins. Another connection may want one before the message is
    /// whole; it makes its own then, and the thread keeps one of the two.
    pub(super) fn begin(&mut self) -> Inflater {
        if self.context_takeover {
            self.inflater.take().unwrap_or_default()
        } else {
            Lent::new(self.exchange).codecs.take_inflater()
        }
    }

    /// The message is whole.
    pub(super) fn end(&mut self, inflater: Inflater) {
        if self.context_takeover {
            self.inflater = Some(inflater);
        } else {
            Lent::new(self.exchange).codecs.keep_inflater(inflater);
        }
    }
}

/// The peer's violation.
pub(super) fn violation(error: InflateError, limit: u64) -> ProtocolError {
    match error {
        InflateError::Invalid => ProtocolError::DeflateInvalid,
        InflateError::TooLong => ProtocolError::InflatedTooBig { limit },
    }
}
