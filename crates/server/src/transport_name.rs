//! The names of transports, as lists of readers and the access log have them.

/// The name of a transport. Each entry in the list of readers has one, so it is as small as a pointer.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct TransportName(&'static &'static str);

impl TransportName {
    pub(crate) const fn new(name: &'static &'static str) -> Self {
        Self(name)
    }

    pub(crate) const fn as_str(self) -> &'static str {
        self.0
    }
}
