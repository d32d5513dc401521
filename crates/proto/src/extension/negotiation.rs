//! permessage-deflate's parameters, and what two ends make of them (RFC 7692 sections 5 and 7.1).

use std::fmt;

use super::field::{Extension, Parameter};
use super::{CompressionLevel, DeflateConfig, WindowBits};
use crate::Role;

/// The extension's name (section 7).
pub(crate) const NAME: &str = "permessage-deflate";

/// permessage-deflate as both ends agreed on it, and how this end goes about it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NegotiatedDeflate {
    /// The parameters of the server's response.
    agreed: Parameters,
    pub(crate) level: CompressionLevel,
    pub(crate) compress_bytes_min: usize,
    /// `None` when the peer allows only the 256 bytes that zlib cannot do: this end may not
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
    /// Section 7.1.2.2. From 8 to 15; in an offer 15 stands for no value too, which means the same.
    client_max_window_bits: Option<u8>,
}

/// The message in which parameters stand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    Offer,
    Response,
}

/// Why an offer is declined or a response fails the connection (RFC 7692 section 7.1).
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// Not a parameter of this extension.
    #[error("permessage-deflate has no parameter {name}")]
    Unknown {
        /// Its name.
        name: String,
    },
    /// The same parameter twice.
    #[error("{name} stands twice")]
    Repeated {
        /// Which.
        name: String,
    },
    /// A value where none belongs, none where one belongs, or one outside 8 to 15.
    #[error("{name} has the value {value:?}")]
    Value {
        /// Which.
        name: String,
        /// The value that it has.
        value: Option<String>,
    },
    /// The window is larger than the offer allows.
    #[error("{name} is {bits}, at most {limit} was offered")]
    WindowTooLarge {
        /// Which.
        name: &'static str,
        /// The number in the response.
        bits: u8,
        /// The number in the offer.
        limit: u8,
    },
    /// Section 7.1.1.1: an offer that asks for it is accepted by repeating it.
    #[error("server_no_context_takeover was offered and is missing")]
    ContextTakeoverKept,
}

/// The server's answer to the offers of a client: the first that is acceptable, `None` when none
/// is. Section 7.1 declines an offer with a parameter that is unknown, repeated or invalid; it is
/// no error.
pub(crate) fn accept(
    offers: &[Extension<'_>],
    config: &DeflateConfig,
) -> Option<NegotiatedDeflate> {
    let offers = offers.iter().filter(|offer| is_deflate(offer));
    offers
        .filter_map(|offer| Parameters::read(&offer.parameters, Place::Offer).ok())
        .find_map(|offer| answer(offer, config))
}

/// The answer to one offer; `None` when this end cannot do what it asks.
fn answer(offer: Parameters, config: &DeflateConfig) -> Option<NegotiatedDeflate> {
    let own = config.own_window_bits;
    let server_max_window_bits = match offer.server_max_window_bits {
        // "The same or smaller" (section 7.1.2.1). 8 bits, which zlib cannot produce, are declined.
        Some(bits) => Some(WindowBits::new(bits)?.min(own).get()),
        // It may be told unasked. It is not: a smaller window is understood anyway.
        None => None,
    };
    let peer = config.peer_window_bits;
    let client_max_window_bits = match offer.client_max_window_bits {
        Some(bits) if peer < WindowBits::MAX => Some(bits.min(peer.get())),
        // Never without having been offered (section 7.1.2.2). Any window is understood here.
        _ => None,
    };
    let agreed = Parameters {
        // Both may be told unasked, and are whenever they hold, since they save the peer memory.
        server_no_context_takeover: offer.server_no_context_takeover
            || !config.own_context_takeover,
        client_no_context_takeover: offer.client_no_context_takeover
            || !config.peer_context_takeover,
        server_max_window_bits,
        client_max_window_bits,
    };
    Some(NegotiatedDeflate::new(agreed, Role::Server, config))
}

/// The client's offer.
pub(crate) fn offer(config: &DeflateConfig) -> String {
    offered(config).format(Place::Offer)
}

fn offered(config: &DeflateConfig) -> Parameters {
    let peer = config.peer_window_bits;
    Parameters {
        server_no_context_takeover: !config.peer_context_takeover,
        client_no_context_takeover: !config.own_context_takeover,
        server_max_window_bits: (peer < WindowBits::MAX).then_some(peer.get()),
        // Offered always: without it the server could not ask for less.
        client_max_window_bits: Some(config.own_window_bits.get()),
    }
}

/// The client's check of the server's answer to its [`offer`].
pub(crate) fn check(
    response: &Extension<'_>,
    config: &DeflateConfig,
) -> Result<NegotiatedDeflate, ParameterError> {
    let offered = offered(config);
    let agreed = Parameters::read(&response.parameters, Place::Response)?;
    if offered.server_no_context_takeover && !agreed.server_no_context_takeover {
        return Err(ParameterError::ContextTakeoverKept);
    }
    // Section 7.1.2.1: "the same or smaller value" is what the server must answer when it was asked. Of the
    // client's window an offer only tells; the server may ignore that (section 7.1.2.2), and the client
    // still uses no more than it said.
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

    /// Whether this end refers to its earlier messages, and so keeps a compressor.
    #[must_use]
    pub const fn own_context_takeover(&self) -> bool {
        self.own_context_takeover
    }

    /// Whether the peer may refer to its earlier messages, so that this end keeps an inflater.
    #[must_use]
    pub const fn peer_context_takeover(&self) -> bool {
        self.peer_context_takeover
    }
}

/// The value of the response's `Sec-WebSocket-Extensions`.
impl fmt::Display for NegotiatedDeflate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.agreed.format(Place::Response))
    }
}

const SERVER_NO_CONTEXT_TAKEOVER: &str = "server_no_context_takeover";
const CLIENT_NO_CONTEXT_TAKEOVER: &str = "client_no_context_takeover";
const SERVER_MAX_WINDOW_BITS: &str = "server_max_window_bits";
const CLIENT_MAX_WINDOW_BITS: &str = "client_max_window_bits";

impl Parameters {
    fn read(parameters: &[Parameter<'_>], place: Place) -> Result<Self, ParameterError> {
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
                // Without a value the client only says that it knows the parameter.
                CLIENT_MAX_WINDOW_BITS if value.is_none() && place == Place::Offer => {
                    read.client_max_window_bits = Some(15);
                }
                CLIENT_MAX_WINDOW_BITS => read.client_max_window_bits = Some(bits()?),
                _ => return Err(ParameterError::Unknown { name: (*name).to_owned() }),
            }
        }
        Ok(read)
    }

    fn format(&self, place: Place) -> String {
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
            Some(15) if place == Place::Offer => text += &format!("; {CLIENT_MAX_WINDOW_BITS}"),
            Some(bits) => text += &format!("; {CLIENT_MAX_WINDOW_BITS}={bits}"),
            None => {}
        }
        text
    }
}

/// "A decimal integer value without leading zeroes between 8 to 15, inclusive" (section 7.1.2).
fn window_bits(value: &str) -> Option<u8> {
    match value.as_bytes() {
        [digit @ b'8'..=b'9'] => Some(digit - b'0'),
        [b'1', digit @ b'0'..=b'5'] => Some(10 + digit - b'0'),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
