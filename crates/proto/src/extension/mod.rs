//! Extensions (RFC 6455 section 9). There is one: permessage-deflate (RFC 7692).

mod config;
mod deflate;
mod field;
mod negotiation;

pub use config::{CompressionLevel, DeflateConfig, WindowBits};
pub(crate) use deflate::{Bounds, Compressor, InflateError, Inflater, Lent, Pushed};
pub use deflate::{Codecs, ExchangeCodecs};
pub(crate) use field::parse;
pub(crate) use negotiation::{NAME, accept, check, offer};
pub use negotiation::{NegotiatedDeflate, ParameterError};
