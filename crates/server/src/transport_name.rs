//! The names of transports, for lists of readers and the access log.

/// The name of a transport, as small as a pointer, since each entry in the list of readers has one.
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
