//! The places to listen at.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Where to listen.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Listen {
    Address(SocketAddr),
    Unix(PathBuf),
}

impl Listen {
    /// Said to those who want more.
    pub(super) const MOST: &str = "there can be one address and one Unix socket";
    pub(super) const EXPECTED: &str =
        "expected IP:PORT, as 127.0.0.1:8080, 0.0.0.0:80 or [::1]:8080, or unix:PATH";
}

impl FromStr for Listen {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix("unix:") {
            Some("") => Err("unix: has the path of a socket after it"),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text.parse().map(Self::Address).map_err(|_| Self::EXPECTED),
        }
    }
}
