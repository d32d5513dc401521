//! The places to listen on.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A place to listen on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Listen {
    Address(SocketAddr),
    Unix(PathBuf),
}

impl Listen {
    /// The most places: each takes a descriptor of every thread.
    const PLACES_MAX: usize = 16;

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    pub(crate) fn socket(&self) -> Option<&Path> {
        match self {
            Self::Address(_) => None,
            Self::Unix(path) => Some(path),
        }
    }

    pub(super) fn check_number(places: &[Self]) -> Result<(), String> {
        match places.len() {
            0 => Err("the list is empty: expected at least one place to listen".to_owned()),
            number if number > Self::PLACES_MAX => {
                Err(format!("{number} places to listen: at most {} are possible", Self::PLACES_MAX))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Parses `IP:PORT`; `localhost` is 127.0.0.1.
///
/// # Errors
/// A text that says what is expected.
pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    address_or(text, "")
}

/// Parses an address where other places are allowed, too.
fn address_or(text: &str, others: &str) -> Result<SocketAddr, String> {
    let port = |text: &str| text.parse::<u16>().ok();
    if let Some(port) = text.strip_prefix("localhost:").and_then(port) {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse().map_err(|_| match port(text.strip_prefix(':').unwrap_or(text)) {
        Some(port) => format!(
            "a port without an address: expected 127.0.0.1:{port}, for this machine only, or 0.0.0.0:{port}, for other machines, too"
        ),
        None => {
            format!("expected IP:PORT, such as 127.0.0.1:8080, 0.0.0.0:80 or [::1]:8080{others}")
        }
    })
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix("unix:") {
            Some("") => Err("unix: must be followed by the path of a socket".to_owned()),
            Some(path) => Ok(Self::Unix(path.into())),
            None => address_or(text, ", or unix:PATH").map(Self::Address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn localhost_is_this_machine() {
        let loopback = |port: u16| Ok((Ipv4Addr::LOCALHOST, port).into());
        assert_eq!(parse_address("localhost:8081"), loopback(8081));
        assert_eq!(parse_address("127.0.0.1:0"), loopback(0));
        assert_eq!("localhost:1".parse(), Ok(Listen::Address(([127, 0, 0, 1], 1).into())));
        assert!(parse_address("localhost").is_err() && parse_address("localhost:x").is_err());
    }
}
