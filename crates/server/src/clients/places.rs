//! The number of something that each address has: an IPv4 address, or the network of an IPv6 address.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The log tells of an address that is refused once in so long; how many there were it says then.
const TELL_INTERVAL: Duration = Duration::from_secs(10);

/// The places of each address that has any.
#[derive(Debug)]
pub(crate) struct Places {
    /// Most of one address.
    max: usize,
    /// For the log: the word for what they are, and the limit that says how many.
    words: Words,
    taken: Mutex<Taken>,
}

/// As the log has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    /// As in "connections".
    pub(crate) what: &'static str,
    /// As in "limits.connections_per_address_max".
    pub(crate) limit: &'static str,
}

#[derive(Debug, Default)]
struct Taken {
    by_source: HashMap<Source, usize>,
    /// Refused since the log was told.
    refused: usize,
    told_at: Option<Instant>,
}

/// The source of a client: an IPv4 address, or the network of an IPv6 address (/64), which is as little as one client
/// is given.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Source(IpAddr);

impl Source {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into())
            }
            address => Self(address),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.0, if self.0.is_ipv6() { "/64" } else { "" })
    }
}

/// One of the places that an address may have; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    source: Source,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().leave(self.source);
    }
}

impl Places {
    pub(crate) fn new(max: usize, words: Words) -> Self {
        Self { max, words, taken: Mutex::default() }
    }

    /// One more for this address, if it may have one.
    pub(crate) fn take(self: &Arc<Self>, source: Source) -> Option<Place> {
        self.count(source).then(|| Place { places: Arc::clone(self), source })
    }

    /// Whether this one may have one more; then it has.
    fn count(&self, source: Source) -> bool {
        let mut taken = self.taken();
        let count = taken.by_source.entry(source).or_default();
        if *count < self.max {
            *count += 1;
            return true;
        }
        taken.refused += 1;
        let now = Instant::now();
        if taken.told_at.is_none_or(|told_at| now - told_at >= TELL_INTERVAL) {
            let refused = std::mem::take(&mut taken.refused);
            taken.told_at = Some(now);
            drop(taken);
            let (max, Words { what, limit }) = (self.max, self.words);
            tracing::warn!(
                "{source} has reached {limit}, {max} {what}: refused one more{}",
                more(refused)
            );
        }
        false
    }

    /// The number of addresses that have any.
    #[cfg(test)]
    pub(crate) fn sources(&self) -> usize {
        self.taken().by_source.len()
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many were refused before this one and not told.
fn more(refused: usize) -> String {
    match refused {
        0 | 1 => String::new(),
        refused => format!(" ({} more since the last such line)", refused - 1),
    }
}

impl Taken {
    fn leave(&mut self, source: Source) {
        if let Some(count) = self.by_source.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                self.by_source.remove(&source);
            }
        }
    }
}
