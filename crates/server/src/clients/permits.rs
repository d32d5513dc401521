//! Limits on connections: in all, for one client, and by memory.

use std::sync::Arc;

use anemone_ws::{Memory, Reservation};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::clients::places::{Place, Places, Words};
use crate::cost::CONNECTION_BYTES;
use crate::peer::Peer;
use crate::request::client::Client;
use crate::request::proxies::Proxies;
use crate::{Limits, Problem};

/// By default, one address, or one user of this machine, may have one in this many connections, so it takes ten addresses to use all.
const PER_ADDRESS_ONE_IN: usize = 10;

/// One in this many connections, at least one and at most [`KEPT_MAX`], is reserved for programs of the server's own user
/// and of root, so that an operator can connect while all others are taken.
const KEPT_ONE_IN: usize = 100;
const KEPT_MAX: usize = 8;

#[derive(Debug)]
pub(crate) struct ConnectionPermits {
    all: Arc<Semaphore>,
    max: usize,
    /// Reserved for the server's own user and root.
    kept: Arc<Semaphore>,
    memory: Memory,
    /// The connections of each source that has any.
    places: Arc<Places>,
}

/// The reason for refusing a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NoPermit {
    /// Its source has reached its limit.
    OfSource,
    /// The server has reached its limit.
    InAll,
    /// Far too much memory is held already.
    Overloaded,
}

impl NoPermit {
    pub(crate) fn problem(self) -> Problem {
        match self {
            Self::OfSource | Self::InAll => Problem::too_many_connections(),
            Self::Overloaded => Problem::overloaded(),
        }
    }
}

/// The permit of a connection. Dropping it returns the permit.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    _one: OwnedSemaphorePermit,
    _held: Reservation,
    /// The places of sources in which it counts.
    _places: [Option<Place>; 2],
}

impl ConnectionPermit {
    /// Makes the connection also count for the client of a trusted proxy.
    pub(crate) fn beside(mut self, client: Option<Place>) -> Self {
        self._places[1] = client;
        self
    }
}

impl ConnectionPermits {
    pub(crate) fn new(limits: &Limits, memory: &Memory) -> Self {
        let max = limits.connections_max;
        let kept = if max > 1 { (max / KEPT_ONE_IN).clamp(1, KEPT_MAX) } else { 0 };
        let a_part = (max / PER_ADDRESS_ONE_IN).max(1);
        Self {
            all: Arc::new(Semaphore::new(max - kept)),
            max,
            kept: Arc::new(Semaphore::new(kept)),
            memory: memory.clone(),
            places: Arc::new(Places::new(
                limits.connections_per_address_max.unwrap_or(a_part),
                Words { what: "connections", limit: "limits.connections_per_address_max" },
            )),
        }
    }

    /// Takes a permit for a connection of this peer.
    ///
    /// # Errors
    /// When a limit is reached, or far too much memory is held.
    pub(crate) fn take(
        self: &Arc<Self>,
        peer: Peer,
        proxies: &Proxies,
    ) -> Result<ConnectionPermit, NoPermit> {
        // A proxy has many clients, which all share its address.
        let is_proxy = proxies.trusts(peer);
        let is_own = !is_proxy && peer.is_own();
        let source = if is_proxy || is_own { None } else { peer.source() };
        let place = match source {
            Some(source) => Some(self.places.take(source).ok_or(NoPermit::OfSource)?),
            None => None,
        };
        let is_overloaded = self.memory.is_far_exceeded();
        let one = if is_overloaded { None } else { Arc::clone(&self.all).try_acquire_owned().ok() };
        let one = one.or_else(|| {
            // Checked first: nobody else must ever hold a reserved permit, not even for a moment.
            is_own.then(|| Arc::clone(&self.kept).try_acquire_owned().ok()).flatten()
        });
        match one {
            Some(one) => {
                let held = self.memory.reserve(CONNECTION_BYTES);
                Ok(ConnectionPermit { _one: one, _held: held, _places: [place, None] })
            }
            None if is_overloaded => Err(NoPermit::Overloaded),
            None => Err(NoPermit::InAll),
        }
    }

    pub(crate) fn taken(&self) -> usize {
        self.max - self.all.available_permits() - self.kept.available_permits()
    }

    /// Takes a place for a request that a trusted proxy forwards, or for its WebSocket, among those of the forwarded
    /// client. Other requests need none, since their connection has one.
    pub(crate) fn take_for(self: &Arc<Self>, client: Client) -> Result<Option<Place>, Problem> {
        let Some(source) = client.source_by_proxy() else { return Ok(None) };
        self.places.take(source).map(Some).ok_or_else(Problem::too_many_connections)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::process::geteuid;

    use super::*;
    use crate::peer::{Door, UnixPeer};
    use crate::request::proxies::{Forwarded, Node};

    /// A program of the server's own user, one of root, and two of another user.
    const OWN: &str = "own";
    const ROOT: &str = "root";
    const OTHER: &str = "other";
    const OTHER_UNIX: &str = "other, by the Unix socket";
    const OTHER_USER: u32 = 54_321;

    fn peer(client: &str) -> Peer {
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        match client {
            OWN => Peer::Owned(loopback, geteuid().as_raw(), Door::Common),
            ROOT => Peer::Owned(loopback, 0, Door::Common),
            OTHER => Peer::Owned(loopback, OTHER_USER, Door::Common),
            OTHER_UNIX => Peer::Unix(UnixPeer { user: Some(OTHER_USER), number: 0 }, Door::Common),
            address => Peer::new(Ok(SocketAddr::new(address.parse().unwrap(), 1))),
        }
    }

    fn permits(
        connections_max: usize,
        connections_per_address_max: impl Into<Option<usize>>,
    ) -> Arc<ConnectionPermits> {
        let connections_per_address_max = connections_per_address_max.into();
        let limits = Limits { connections_max, connections_per_address_max, ..Limits::default() };
        Arc::new(ConnectionPermits::new(&limits, &Memory::default()))
    }

    fn take(permits: &Arc<ConnectionPermits>, address: &str) -> Option<ConnectionPermit> {
        try_take(permits, address).ok()
    }

    fn try_take(
        permits: &Arc<ConnectionPermits>,
        address: &str,
    ) -> Result<ConnectionPermit, NoPermit> {
        permits.take(peer(address), &Proxies::new(vec!["10.9.0.0/16".parse().unwrap()]))
    }

    fn count(permits: &Arc<ConnectionPermits>, addresses: &[&str]) -> Vec<ConnectionPermit> {
        let all = (0..100).flat_map(|_| addresses.iter().map(|address| take(permits, address)));
        all.flatten().collect()
    }

    #[test]
    fn an_address_has_so_many_connections_and_others_have_theirs() {
        let permits = permits(1000, 3);
        for addresses in [
            &["192.0.2.1"][..],
            &["192.0.2.2", "::ffff:192.0.2.2"],
            &["2001:db8::1", "2001:db8::ffff:0:0:1"],
            &["2001:db8:0:1::1"],
            &[OTHER, OTHER_UNIX],
            // The system tells users, but none for this one.
            #[cfg(target_os = "linux")]
            &["127.0.0.1"],
        ] {
            let taken = count(&permits, addresses);
            assert_eq!(taken.len(), 3, "{addresses:?}");
            assert_eq!(permits.places.sources(), 1);
            drop(taken);
            assert!(permits.places.sources() == 0, "nothing is kept of who is gone");
        }
    }

    #[test]
    fn the_servers_own_user_root_and_trusted_proxies_have_as_many_as_there_are() {
        for (address, most) in [(OWN, 50), (ROOT, 50), ("10.9.8.7", 49)] {
            assert_eq!(count(&permits(50, 3), &[address]).len(), most, "{address}");
        }
    }

    #[test]
    fn an_address_has_a_tenth_of_all_and_one_place_is_kept_where_there_are_few() {
        for (all, of_address, of_others) in [(500, 50, 495), (20, 2, 19), (9, 1, 8), (2, 1, 1)] {
            let permits = permits(all, None);
            let one = count(&permits, &["192.0.2.1"]);
            assert_eq!(one.len(), of_address, "of {all}");
            let proxy: Vec<_> = (0..all).filter_map(|_| take(&permits, "10.9.8.7")).collect();
            assert_eq!(one.len() + proxy.len(), of_others, "of {all}");
            assert!(take(&permits, OTHER).is_none(), "another user gets none that is kept");
            assert!(take(&permits, OWN).is_some(), "one of {all} is kept");
        }
        let only = permits(1, None);
        assert!(take(&only, "192.0.2.1").is_some());
    }

    #[test]
    fn a_few_are_kept_for_the_servers_own_user_when_all_others_are_taken() {
        let permits = permits(200, 150);
        let proxy = count(&permits, &["10.9.8.7"]);
        let others = count(&permits, &["192.0.2.1"]);
        assert_eq!((proxy.len(), others.len()), (100, 98));
        assert!(take(&permits, "192.0.2.2").is_none());
        assert!(permits.places.sources() == 1, "one that was refused counts nowhere");
        assert!(take(&permits, OTHER).is_none() && take(&permits, OTHER_UNIX).is_none());
        let own = count(&permits, &[OWN]);
        assert_eq!(own.len(), 2);
    }

    #[test]
    fn others_never_hold_what_is_kept_for_the_servers_own_user() {
        let permits = permits(2, 1000);
        let other = take(&permits, "192.0.2.1").unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert!(take(&permits, "192.0.2.1").is_none());
                    assert!(take(&permits, OTHER).is_none());
                }
            });
            let refused = (0..100_000).filter(|_| take(&permits, OWN).is_none()).count();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(refused, 0, "of 100,000, while others are refused");
        });
        drop(other);
    }

    #[test]
    fn a_client_that_a_trusted_proxy_names_counts_whatever_its_address_is() {
        let permits = permits(100, 2);
        let take = |address: Option<&str>| {
            let node = |address: &str| Node::Address(SocketAddr::new(address.parse().unwrap(), 0));
            let said = Forwarded { client: address.map(node), ..Forwarded::default() };
            permits.take_for(Client::of_proxy(peer("10.9.8.7"), &said)).map_err(|_| ())
        };
        for address in ["192.0.2.1", "127.0.0.1", "::1", "10.9.8.7"] {
            let places = [(); 2].map(|()| take(Some(address)));
            assert!(places.iter().all(|place| matches!(place, Ok(Some(_)))), "{address}");
            assert!(take(Some(address)).is_err(), "{address}");
        }
        assert!(matches!(take(None), Ok(None)), "its connection counts");
    }

    #[test]
    fn each_counts_and_nobody_is_let_in_while_far_too_much_is_held() {
        let memory = Memory::new(80 * CONNECTION_BYTES);
        let permits = Arc::new(ConnectionPermits::new(&Limits::default(), &memory));
        let taken = count(&permits, &["192.0.2.1"]);
        // An eighth more than may be held, and the one with which it is more.
        assert_eq!((taken.len(), memory.held_bytes()), (91, 91 * CONNECTION_BYTES));
        let problem = try_take(&permits, "192.0.2.2").unwrap_err().problem();
        assert!(problem.to_json().contains("/problems/overloaded"), "{}", problem.to_json());
        assert!(take(&permits, OTHER).is_none(), "nor is another user of this machine");
        assert!(take(&permits, OWN).is_some(), "who looks into it is");
        drop(taken);
        assert_eq!(memory.held_bytes(), 0);
        assert!(take(&permits, "192.0.2.2").is_some());
    }
}
