//! The right to start runs.

/// The right to start runs at a [`Mount`](crate::Mount). Every client of the server may call the service otherwise.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum StartRight {
    /// Clients on the server's own machine: with a loopback address, and without signs of a proxy.
    #[default]
    Local,
    /// Every client.
    Anyone,
}
