//! The clients that may see a list of the server.

/// The clients that may see lists: those of connections ([`Options::connections_to`](crate::Options::connections_to)), or that
/// of runs ([`Options::runs_to`](crate::Options::runs_to)).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ViewRight {
    /// Clients on the server's own machine: with a loopback address, and without signs of a proxy.
    #[default]
    Local,
    /// Every client.
    Anyone,
}
