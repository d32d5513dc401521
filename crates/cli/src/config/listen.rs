//! The places to listen on.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// A place to listen on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Listen {
    Address(SocketAddr),
    Unix(PathBuf),
}

impl Listen {
    /// The error for more places.
    pub(super) const MOST: &str = "at most one address and one Unix socket are possible";
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
