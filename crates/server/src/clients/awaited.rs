//! Limits on the topics that are awaited before they exist: in all, and for one client.
//!
//! Each costs a name and about 2 KiB, and one connection can await many. A topic counts for the first client that
//! awaits it, until it is created or nobody awaits it.

use std::sync::Arc;

use anemone_ws::{Memory, Reservation};
use http::HeaderValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::clients::places::{Place, Places, Words};
use crate::cost::AWAITED_TOPIC_BYTES;
use crate::request::client::Client;
use crate::{Kind, Limits, Problem};

/// By default, one address, or one user of this machine, may await one in this many.
const PER_ADDRESS_ONE_IN: usize = 10;

#[derive(Debug)]
pub(crate) struct AwaitedTopics {
    all: Arc<Semaphore>,
    all_max: usize,
    places: Arc<Places>,
    per_address_max: usize,
    memory: Memory,
}

/// The right to await one more topic. Dropping it returns that right.
#[derive(Debug)]
pub(crate) struct AwaitPermit {
    _one: OwnedSemaphorePermit,
    _place: Option<Place>,
    _held: Reservation,
}

impl AwaitedTopics {
    pub(crate) fn new(limits: &Limits, memory: &Memory) -> Self {
        let all_max = limits.awaited_topics_max;
        let a_part = (all_max / PER_ADDRESS_ONE_IN).max(1);
        let per_address_max = limits.awaited_topics_per_address_max.unwrap_or(a_part);
        let words = Words {
            what: "awaited topics without an event",
            limit: "limits.awaited_topics_per_address_max",
        };
        let places = Arc::new(Places::new(per_address_max, words));
        Self {
            all: Arc::new(Semaphore::new(all_max)),
            all_max,
            places,
            per_address_max,
            memory: memory.clone(),
        }
    }

    /// Lets a client await one more topic, if it may. The limit for one client does not apply to those of the server's own user.
    pub(crate) fn admit(&self, client: Client) -> Result<AwaitPermit, Problem> {
        let place = match client.source().filter(|_| !client.is_exempt()) {
            Some(source) => Some(self.places.take(source).ok_or_else(|| {
                let detail = format!(
                    "you already wait for {} topics that have no event yet, the most that one client may",
                    self.per_address_max
                );
                too_many(detail)
            })?),
            None => None,
        };
        let one = Arc::clone(&self.all).try_acquire_owned().map_err(|_| {
            let detail = format!(
                "clients already wait for {} topics that have no event yet, the most that all of them may",
                self.all_max
            );
            too_many(detail)
        })?;
        let mut held = self.memory.reservation();
        held.set(AWAITED_TOPIC_BYTES);
        Ok(AwaitPermit { _one: one, _place: place, _held: held })
    }
}

fn too_many(detail: String) -> Problem {
    let problem = Problem::new(Kind::TooManyAwaited, detail);
    problem.field("retry-after", HeaderValue::from_static("10"))
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use rustix::process::geteuid;

    use super::*;
    use crate::peer::{Door, Peer};
    use crate::request::proxies::Proxies;

    /// A program of the server's own user, and one of another user.
    const OWN: &str = "own";
    const OTHER: &str = "other";

    fn of(client: &str) -> Client {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 1));
        let peer = match client {
            OWN => Peer::Owned(loopback, geteuid().as_raw(), Door::Common),
            OTHER => Peer::Owned(loopback, 54_321, Door::Common),
            address => Peer::new(Ok(SocketAddr::new(address.parse().unwrap(), 1))),
        };
        Client::of_connection(peer, &Proxies::new(Vec::new()))
    }

    #[test]
    fn an_address_or_another_user_waits_for_a_tenth_and_the_servers_own_user_for_all() {
        let limits = Limits { awaited_topics_max: 30, ..Limits::default() };
        let awaited = AwaitedTopics::new(&limits, &Memory::new(1 << 20));
        let admit =
            |address| awaited.admit(of(address)).map_err(|problem| problem.detail().to_owned());
        for (address, same) in [
            ("192.0.2.1", "::ffff:192.0.2.1"),
            ("2001:db8::1", "2001:db8::ffff:0:0:1"),
            (OTHER, OTHER),
        ] {
            let admitted: Vec<_> = (0..3).map(|_| admit(address).unwrap()).collect();
            let detail = admit(same).unwrap_err();
            assert_eq!(
                detail,
                "you already wait for 3 topics that have no event yet, the most that one client may"
            );
            drop(admitted);
        }
        assert_eq!(awaited.places.sources(), 0, "nothing is kept of who is gone");
        let admitted: Vec<_> = (0..30).map(|_| admit(OWN).unwrap()).collect();
        for address in [OWN, "192.0.2.1", OTHER] {
            let detail = admit(address).unwrap_err();
            assert_eq!(
                detail,
                "clients already wait for 30 topics that have no event yet, the most that all of them may"
            );
        }
        assert_eq!(awaited.places.sources(), 0, "one that was refused counts nowhere");
        drop(admitted);
        assert!(admit("192.0.2.1").is_ok());
    }
}
