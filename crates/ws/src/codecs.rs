//! The thread's compressors and inflater, which its connections share (RFC 7692).

use std::cell::Cell;

use anemone_proto::Codecs;

thread_local! {
    static CODECS: Cell<Codecs> = const { Cell::new(Codecs::new()) };
}

/// An [`ExchangeCodecs`](anemone_proto::ExchangeCodecs) for the calling thread.
pub(crate) fn exchange(codecs: Codecs) -> Codecs {
    CODECS.replace(codecs)
}
