//! The clients that may start runs.

/// The clients that may start runs at a [`Mount`](crate::Mount).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Callers {
    /// Clients on the server's own machine: with a loopback address, and without signs of a proxy.
    #[default]
    Local,
    /// Every client.
    Anyone,
}
