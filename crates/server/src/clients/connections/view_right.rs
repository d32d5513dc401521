//! The clients that may see who is connected.

/// The clients that may see who is connected ([`Options::connections_to`](crate::Options::connections_to)).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ViewRight {
    /// Clients on the server's own machine: with a loopback address, and without signs of a proxy.
    #[default]
    Local,
    /// Every client.
    Anyone,
}
