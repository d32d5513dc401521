//! The source of a client, for limits that hold for one client: an address, or a user of this machine.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// The source of a client, which limits count as one.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Source {
    /// An IPv4 address, or the network of an IPv6 address (/64), the smallest unit assigned to a client.
    Network(IpAddr),
    /// The user of this machine with this number.
    User(u32),
}

/// A bit that is zero in the number of every network.
const IS_USER: u128 = 1 << 63;

impl Source {
    /// Returns it as a number.
    pub(crate) fn bits(self) -> u128 {
        match self {
            Self::Network(IpAddr::V4(address)) => address.to_ipv6_mapped().to_bits(),
            Self::Network(IpAddr::V6(address)) => address.to_bits(),
            Self::User(user) => IS_USER | u128::from(user),
        }
    }

    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self::Network(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into())
            }
            address => Self::Network(address),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(address) if address.is_ipv6() => write!(f, "{address}/64"),
            Self::Network(address) => write!(f, "{address}"),
            Self::User(user) => write!(f, "user {user} of this machine"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_have_numbers_and_names_of_their_own() {
        let of = |address: &str| Source::of(address.parse().unwrap());
        let sources = [
            (of("127.0.0.1"), "127.0.0.1"),
            (of("::ffff:192.0.2.1"), "192.0.2.1"),
            (of("2001:db8::7"), "2001:db8::/64"),
            (of("::1"), "::/64"),
            (Source::User(0), "user 0 of this machine"),
            (Source::User(u32::MAX), "user 4294967295 of this machine"),
        ];
        for (place, (source, name)) in sources.iter().enumerate() {
            assert_eq!(source.to_string(), *name);
            let same = sources[..place].iter().find(|(other, _)| other.bits() == source.bits());
            assert_eq!(same, None, "{source}");
        }
    }
}
