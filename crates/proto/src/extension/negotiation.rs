//! The negotiation of permessage-deflate (RFC 7692 sections 5 and 7.1).

use std::fmt;

use super::field::{Extension, Parameter};
use super::{CompressionLevel, DeflateConfig, WindowBits};
use crate::Role;

/// The extension's name (section 7).
pub(crate) const NAME: &str = "permessage-deflate";

/// The negotiated permessage-deflate, with this end's choices.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NegotiatedDeflate {
    /// The parameters of the server's response.
    agreed: Parameters,
    pub(crate) level: CompressionLevel,
    pub(crate) compress_bytes_min: usize,
    /// `None` if the peer allows only a window of 256 bytes, which zlib cannot produce. This end then does not
    /// compress, which is always allowed (section 6).
    pub(crate) own_window_bits: Option<WindowBits>,
    pub(crate) own_context_takeover: bool,
    pub(crate) peer_context_takeover: bool,
}

/// The parameters of an offer or a response.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Parameters {
    /// Section 7.1.1.1.
    server_no_context_takeover: bool,
    /// Section 7.1.1.2.
    client_no_context_takeover: bool,
    /// Section 7.1.2.1. From 8 to 15.
    server_max_window_bits: Option<u8>,
    /// Section 7.1.2.2. From 8 to 15; in an offer, 15 also stands for a parameter without a value, which means the
    /// same.
    client_max_window_bits: Option<u8>,
}

/// The message that contains the parameters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Side {
    Offer,
    Response,
}

/// An error in the parameters, for which an offer is declined or a response fails the connection (RFC 7692 section
/// 7.1).
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// This extension has no such parameter.
    #[error("permessage-deflate has no parameter {name}")]
    Unknown {
        /// Its name.
        name: String,
    },
    /// The parameter appears twice.
    #[error("{name} stands twice")]
    Repeated {
        /// Its name.
        name: String,
    },
    /// The parameter must have a value and has none, or the reverse, or its value is outside 8 to 15.
    #[error("{name} has the value {value:?}")]
    Value {
        /// Its name.
        name: String,
        /// Its value.
        value: Option<String>,
    },
    /// The window is larger than the offer allows.
    #[error("{name} is {bits}, at most {limit} was offered")]
    WindowTooLarge {
        /// The name of the parameter.
        name: &'static str,
        /// The number in the response.
        bits: u8,
        /// The number in the offer.
        limit: u8,
    },
    /// Section 7.1.1.1: a server must repeat this parameter when it is offered.
    #[error("server_no_context_takeover was offered and is missing")]
    ContextTakeoverKept,
}

/// Returns the server's answer to the first acceptable offer; `None` if there is none. Section 7.1 declines an offer
/// with an unknown, repeated or invalid parameter; that is no error.
pub(crate) fn accept(
    offers: &[Extension<'_>],
    config: &DeflateConfig,
) -> Option<NegotiatedDeflate> {
    let offers = offers.iter().filter(|offer| is_deflate(offer));
    offers
        .filter_map(|offer| Parameters::read(&offer.parameters, Side::Offer).ok())
        .find_map(|offer| answer(offer, config))
}

fn answer(offer: Parameters, config: &DeflateConfig) -> Option<NegotiatedDeflate> {
    let own = config.own_window_bits;
    let server_max_window_bits = match offer.server_max_window_bits {
        // "The same or smaller" (section 7.1.2.1). 8 bits, which zlib cannot produce, are declined.
        Some(bits) => Some(WindowBits::new(bits)?.min(own).get()),
        // The server may set this unasked. It does not: the client understands a smaller window anyway.
        None => None,
    };
    let peer = config.peer_window_bits;
    let client_max_window_bits = match offer.client_max_window_bits {
        Some(bits) if peer < WindowBits::MAX => Some(bits.min(peer.get())),
        // The parameter is allowed only if it was offered (section 7.1.2.2). This end understands any window.
        _ => None,
    };
    let agreed = Parameters {
        // Both are allowed unasked. They are set whenever they hold, since they save the peer memory.
        server_no_context_takeover: offer.server_no_context_takeover
            || !config.own_context_takeover,
        client_no_context_takeover: offer.client_no_context_takeover
            || !config.peer_context_takeover,
        server_max_window_bits,
        client_max_window_bits,
    };
    Some(NegotiatedDeflate::new(agreed, Role::Server, config))
}

pub(crate) fn offer(config: &DeflateConfig) -> String {
    offered(config).format(Side::Offer)
}

fn offered(config: &DeflateConfig) -> Parameters {
    let peer = config.peer_window_bits;
    Parameters {
        server_no_context_takeover: !config.peer_context_takeover,
        client_no_context_takeover: !config.own_context_takeover,
        server_max_window_bits: (peer < WindowBits::MAX).then_some(peer.get()),
        // Always offered: without it the server could not ask for less.
        client_max_window_bits: Some(config.own_window_bits.get()),
    }
}

/// Checks the server's answer to the client's [`offer`].
pub(crate) fn check(
    response: &Extension<'_>,
    config: &DeflateConfig,
) -> Result<NegotiatedDeflate, ParameterError> {
    let offered = offered(config);
    let agreed = Parameters::read(&response.parameters, Side::Response)?;
    if offered.server_no_context_takeover && !agreed.server_no_context_takeover {
        return Err(ParameterError::ContextTakeoverKept);
    }
    // Section 7.1.2.1: the server must answer with "the same or smaller value" when it was asked. For the client's
    // own window the offer is only information, which the server may ignore (section 7.1.2.2). The client still uses
    // no larger window than it said.
    let (bits, name) = (agreed.server_max_window_bits.unwrap_or(15), SERVER_MAX_WINDOW_BITS);
    match offered.server_max_window_bits {
        Some(limit) if bits > limit => Err(ParameterError::WindowTooLarge { name, bits, limit }),
        _ => Ok(NegotiatedDeflate::new(agreed, Role::Client, config)),
    }
}

fn is_deflate(extension: &Extension<'_>) -> bool {
    extension.name == NAME
}

impl NegotiatedDeflate {
    fn new(agreed: Parameters, role: Role, config: &DeflateConfig) -> Self {
        let client = (agreed.client_no_context_takeover, agreed.client_max_window_bits);
        let server = (agreed.server_no_context_takeover, agreed.server_max_window_bits);
        let ((own_forgets, own_limit), (peer_forgets, _)) = match role {
            Role::Client => (client, server),
            Role::Server => (server, client),
        };
        let own_limit = own_limit.unwrap_or(15);
        Self {
            agreed,
            level: config.level,
            compress_bytes_min: config.compress_bytes_min,
            own_window_bits: WindowBits::new(own_limit)
                .map(|bits| bits.min(config.own_window_bits)),
            own_context_takeover: config.own_context_takeover && !own_forgets,
            peer_context_takeover: !peer_forgets,
        }
    }

    /// Returns true if this end uses context takeover, and so keeps a compressor.
    #[must_use]
    pub const fn own_context_takeover(&self) -> bool {
        self.own_context_takeover
    }

    /// Returns true if the peer may use context takeover, so that this end keeps an inflater.
    #[must_use]
    pub const fn peer_context_takeover(&self) -> bool {
        self.peer_context_takeover
    }
}

/// Formats the value of the response's `Sec-WebSocket-Extensions`.
impl fmt::Display for NegotiatedDeflate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.agreed.format(Side::Response))
    }
}

const SERVER_NO_CONTEXT_TAKEOVER: &str = "server_no_context_takeover";
const CLIENT_NO_CONTEXT_TAKEOVER: &str = "client_no_context_takeover";
const SERVER_MAX_WINDOW_BITS: &str = "server_max_window_bits";
const CLIENT_MAX_WINDOW_BITS: &str = "client_max_window_bits";

impl Parameters {
    fn read(parameters: &[Parameter<'_>], side: Side) -> Result<Self, ParameterError> {
        let mut read = Self::default();
        for (at, Parameter { name, value }) in parameters.iter().enumerate() {
            if parameters[..at].iter().any(|earlier| earlier.name == *name) {
                return Err(ParameterError::Repeated { name: (*name).to_owned() });
            }
            let wrong = || ParameterError::Value { name: (*name).to_owned(), value: value.clone() };
            let bits = || value.as_deref().and_then(window_bits).ok_or_else(wrong);
            let no_value = || if value.is_none() { Ok(true) } else { Err(wrong()) };
            match *name {
                SERVER_NO_CONTEXT_TAKEOVER => read.server_no_context_takeover = no_value()?,
                CLIENT_NO_CONTEXT_TAKEOVER => read.client_no_context_takeover = no_value()?,
                SERVER_MAX_WINDOW_BITS => read.server_max_window_bits = Some(bits()?),
                // Without a value, the client says only that it knows the parameter.
                CLIENT_MAX_WINDOW_BITS if value.is_none() && side == Side::Offer => {
                    read.client_max_window_bits = Some(15);
                }
                CLIENT_MAX_WINDOW_BITS => read.client_max_window_bits = Some(bits()?),
                _ => return Err(ParameterError::Unknown { name: (*name).to_owned() }),
            }
        }
        Ok(read)
    }

    fn format(&self, side: Side) -> String {
        let mut text = String::from(NAME);
        for (name, stands) in [
            (SERVER_NO_CONTEXT_TAKEOVER, self.server_no_context_takeover),
            (CLIENT_NO_CONTEXT_TAKEOVER, self.client_no_context_takeover),
        ] {
            if stands {
                text += &format!("; {name}");
            }
        }
        if let Some(bits) = self.server_max_window_bits {
            text += &format!("; {SERVER_MAX_WINDOW_BITS}={bits}");
        }
        match self.client_max_window_bits {
            Some(15) if side == Side::Offer => text += &format!("; {CLIENT_MAX_WINDOW_BITS}"),
            Some(bits) => text += &format!("; {CLIENT_MAX_WINDOW_BITS}={bits}"),
            None => {}
        }
        text
    }
}

/// Parses "a decimal integer value without leading zeroes between 8 to 15, inclusive" (section 7.1.2).
fn window_bits(value: &str) -> Option<u8> {
    match value.as_bytes() {
        [digit @ b'8'..=b'9'] => Some(digit - b'0'),
        [b'1', digit @ b'0'..=b'5'] => Some(10 + digit - b'0'),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
