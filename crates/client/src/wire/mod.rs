//! Parsers of what servers send over one transport alone. No IO: bytes in, in any pieces, and [`Wire`]s out.
//!
//! Whether what is said follows on what was said before is the tracker's business.

pub(crate) mod mux;
pub(crate) mod sse;

/// One thing that a server says about a topic, whatever the transport.
pub(crate) type Wire = anemone_wire::Item<'static>;
