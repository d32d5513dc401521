//! The server, as every request sees it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anemone_hub::{Hub, Topic};
use anemone_ws::Memory;

use crate::clients::access::Accesses;
use crate::clients::awaited::AwaitedTopics;
use crate::clients::permits::{ConnectionPermit, ConnectionPermits, NoPermit};
use crate::clients::readers::Readers;
use crate::clients::refusals::{Asked, Refusals};
use crate::everyone::Everyone;
use crate::fallback::Fallback;
use crate::files::Files;
use crate::peer::Peer;
use crate::publish::Publishing;
use crate::request::host::Hosts;
use crate::request::methods::Methods;
use crate::request::names::{topic_name, unknown_topic};
use crate::request::origin::AllowedOrigin;
use crate::request::own_path::OwnPath;
use crate::request::proxies::Proxies;
use crate::{Limits, Problem, Tls};

/// The parts of a server.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) hub: Hub,
    pub(crate) publishing: Arc<Publishing>,
    pub(crate) limits: Limits,
    /// The permits for connections, of all threads.
    pub(crate) permits: Arc<ConnectionPermits>,
    /// All topics that are waited for.
    pub(crate) awaited: Arc<AwaitedTopics>,
    /// The memory in which counts what is held for peers.
    pub(crate) memory: Memory,
    /// Whether a thread sees to its relief.
    pub(crate) has_relief: AtomicBool,
    pub(crate) hosts: Hosts,
    pub(crate) proxies: Proxies,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) accesses: Arc<Accesses>,
    pub(crate) allowed_origins: Vec<AllowedOrigin>,
    pub(crate) tls: Option<Tls>,
    /// Those that stay, on every thread.
    pub(crate) readers: Arc<Readers>,
    /// Whether there is an `/echo`.
    pub(crate) echo: bool,
    /// To the members of `/broadcast` on every thread, if there is one.
    pub(crate) broadcast: Option<Arc<Everyone>>,
    /// A user's own, beside all this.
    pub(crate) files: Files,
    /// A service for every other path.
    pub(crate) fallback: Option<Fallback>,
}

impl Site {
    /// The topic called `name`. Where its first event may create it, it can be read before that.
    pub(crate) fn topic(&self, name: &str) -> Result<Arc<Topic>, Problem> {
        let parsed = topic_name(name)?;
        let or_none_yet = || {
            let storage = self.publishing.may_create(&parsed)?;
            Some(self.hub.topic_or_none_yet(&parsed, storage))
        };
        self.hub.topic(&parsed).or_else(or_none_yet).ok_or_else(|| unknown_topic(name))
    }

    /// Tells whether the fallback has a page at a path for whatever origin asks.
    pub(crate) fn has_public_page(&self, path: &str) -> bool {
        let fallback = self.fallback.as_ref().filter(|_| OwnPath::at(path).is_none());
        fallback.is_some_and(|fallback| fallback.is_public(path))
    }

    /// Tells whether the fallback alone knows which methods a path takes. `path` is normal.
    pub(crate) fn leaves_methods_open(&self, path: &str) -> bool {
        let is_taken = OwnPath::at(path).is_some() || self.files.at(path).is_some();
        self.fallback.is_some() && !is_taken && !self.has_public_page(path)
    }

    /// A place for one more connection of this peer, or why there is none.
    pub(crate) fn permit(&self, peer: Peer) -> Result<ConnectionPermit, Problem> {
        self.permits.take(peer, &self.proxies).map_err(|refused| {
            let problem = refused.problem();
            // `places` has told of one that has too many, with how many it may have.
            if refused != NoPermit::OfAddress {
                self.refusals.note(&problem, Asked::connection(peer.address()));
            }
            problem
        })
    }

    /// The methods that some client can use on a path.
    pub(crate) fn methods(&self, path: &str) -> Methods {
        let name = OwnPath::topic(path).and_then(|name| name.parse().ok());
        name.map_or(Methods::Read, |name| self.publishing.methods(&name))
    }
}
