//! The state of the server that all requests share.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use anemone_hub::run::{Run, Runs};
use anemone_hub::{Hub, Topic};
use anemone_ws::Memory;
use http::Extensions;

use crate::clients::access::Accesses;
use crate::clients::awaited::AwaitedTopics;
use crate::clients::connections::closed::ClosedConnections;
use crate::clients::connections::survey::Surveyors;
use crate::clients::permits::{ConnectionPermit, ConnectionPermits, NoPermit};
use crate::clients::readers::Readers;
use crate::clients::refusals::{Refusals, RefusedRequest};
use crate::files::{Files, Tree};
use crate::peer::Peer;
use crate::publish::Publishing;
use crate::read::readable::Readable;
use crate::request::allowed_origin::AllowedOrigin;
use crate::request::host::Hosts;
use crate::request::methods::Methods;
use crate::request::names::{is_index, topic_name, unknown_run, unknown_topic};
use crate::request::own_path::{OwnPath, ReadPath};
use crate::request::path;
use crate::request::proxies::Proxies;
use crate::service::mounted::Mounted;
use crate::service::mounts::Mounts;
use crate::{Limits, Problem, Tls, ViewRight};

/// The parts of a server.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) hub: Hub,
    pub(crate) runs: Runs,
    pub(crate) publishing: Arc<Publishing>,
    pub(crate) limits: Limits,
    pub(crate) permits: Arc<ConnectionPermits>,
    pub(crate) awaited: Arc<AwaitedTopics>,
    /// Counts the memory held for peers.
    pub(crate) memory: Memory,
    /// True once a thread runs its relief.
    pub(crate) has_relief: AtomicBool,
    pub(crate) hosts: Hosts,
    pub(crate) proxies: Proxies,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) accesses: Arc<Accesses>,
    pub(crate) allowed_origins: Vec<AllowedOrigin>,
    pub(crate) tls: Option<Tls>,
    pub(crate) readers: Arc<Readers>,
    /// The threads that say which connections they have.
    pub(crate) surveyors: Surveyors,
    pub(crate) closed: ClosedConnections,
    /// The clients that may see the connections.
    pub(crate) connections_to: ViewRight,
    /// The clients that may see the list of runs.
    pub(crate) runs_to: ViewRight,
    /// The paths of transports that are offered, besides those of topics.
    pub(crate) offered: Vec<&'static str>,
    pub(crate) states: Mutex<Extensions>,
    /// A user's own files.
    pub(crate) files: Files,
    /// The services at paths of their own, and the one for every other path.
    pub(crate) mounts: Mounts,
}

/// The files or the service at a path that is not the server's own.
#[derive(Debug)]
pub(crate) enum Beside<'a> {
    Mount(&'a Arc<Mounted>),
    Files(&'a Tree),
}

impl Site {
    /// Returns the topic `name`, or the index. If its first event may create it, it can be read before that.
    pub(crate) fn topic(&self, name: &str) -> Result<Arc<Topic>, Problem> {
        if is_index(name) {
            return Ok(Arc::clone(self.hub.index()));
        }
        let parsed = topic_name(name)?;
        let or_none_yet = || {
            let storage = self.publishing.may_create(&parsed)?;
            Some(self.hub.topic_or_none_yet(&parsed, storage))
        };
        self.hub.topic(&parsed).or_else(or_none_yet).ok_or_else(|| unknown_topic(name))
    }

    /// Returns the topic or the run at this path.
    pub(crate) fn readable(&self, path: ReadPath<'_>) -> Result<Readable, Problem> {
        match path {
            ReadPath::Topic(name) => self.topic(name).map(Readable::from),
            ReadPath::Run(key) => self.run(key).map(|run| Readable::from(&*run)),
        }
    }

    pub(crate) fn run(&self, key: &str) -> Result<Arc<Run>, Problem> {
        self.runs.get(key).ok_or_else(|| unknown_run(key))
    }

    /// Returns the state of a transport, by its type. The first call creates it.
    pub(crate) fn state<T: Clone + Send + Sync + 'static>(&self, create: impl FnOnce() -> T) -> T {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states.get_or_insert_with(create).clone()
    }

    /// Returns what answers at a normalized path that is not the server's own: a mount at a path of its own, files, or
    /// the mount at `/`.
    pub(crate) fn beside(&self, path: &str) -> Option<Beside<'_>> {
        if OwnPath::at(path).is_some() {
            return None;
        }
        let mount = || self.mounts.at(path).map(Beside::Mount);
        let files = || self.files.at(path).map(Beside::Files);
        mount().or_else(files).or_else(|| self.mounts.root().map(Beside::Mount))
    }

    /// Returns the mount that answers at a normalized path over every transport.
    pub(crate) fn service(&self, path: &str) -> Option<&Arc<Mounted>> {
        match self.beside(path)? {
            Beside::Mount(mount) => Some(mount).filter(|mount| !mount.is_http_only()),
            Beside::Files(_) => None,
        }
    }

    /// Returns true if a page of any origin may load what is at this path of a request, though not read it.
    pub(crate) fn is_public(&self, target: &str) -> bool {
        let Ok(path) = path::normal(target) else { return false };
        match self.beside(&path) {
            Some(Beside::Mount(mount)) => mount.is_public(&path),
            Some(Beside::Files(_)) => true,
            None => false,
        }
    }

    /// Returns true if only a mount knows the methods of this normalized path.
    pub(crate) fn leaves_methods_open(&self, path: &str) -> bool {
        let is_open = |mount: &Mounted| !mount.is_public(path) && !mount.is_run_service();
        matches!(self.beside(path), Some(Beside::Mount(mount)) if is_open(mount))
    }

    pub(crate) fn permit(&self, peer: Peer) -> Result<ConnectionPermit, Problem> {
        self.permits.take(peer, &self.proxies).map_err(|refused| {
            let problem = refused.problem();
            // `places` has logged too many connections itself, with the limit.
            if refused != NoPermit::OfSource {
                self.refusals.note(&problem, RefusedRequest::connection(peer.address()));
            }
            problem
        })
    }

    /// Returns the methods that some client can use on a path.
    pub(crate) fn methods(&self, path: &str) -> Methods {
        match ReadPath::at(path) {
            Some(ReadPath::Topic(name)) => {
                name.parse().map_or(Methods::Read, |name| self.publishing.methods(&name))
            }
            Some(ReadPath::Run(_)) => Methods::Cancel,
            None if self.service(path).is_some_and(|mount| mount.is_run_service()) => {
                Methods::Start
            }
            None => Methods::Read,
        }
    }
}
