//! The options of a server.

use std::net::SocketAddr;
use std::num::NonZero;

use crate::clients::access::AccessLog;
use crate::{
    AllowedHost, AllowedOrigin, Limits, ListenAt, Mount, StaticDir, Tls, TopicRules, TrustedProxy,
    ViewRight,
};

/// The options of a server. By default it listens nowhere.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The places to listen on. Default: none.
    pub listen: Vec<ListenAt>,
    /// More places to listen on, for this machine alone: loopback addresses and Unix sockets. No client there is a trusted
    /// proxy, whatever its address, so this is the way in for the owner of a server behind a proxy. Always without TLS. Default:
    /// none.
    pub listen_local: Vec<ListenAt>,
    /// The address for `anemone.v1` over TCP, always without TLS. Default: none.
    pub tcp: Option<SocketAddr>,
    /// The address of a TCP echo of plain bytes, the baseline of measurements. Default: none.
    pub tcp_echo: Option<SocketAddr>,
    /// The number of threads that serve connections; `None` for one per processor.
    pub threads: Option<NonZero<usize>>,
    /// The limits on clients.
    pub limits: Limits,
    /// Other origins whose pages may read, and publish where clients may.
    pub allowed_origins: Vec<AllowedOrigin>,
    /// Accepted host names, besides localhost and the addresses on which it listens.
    pub allowed_hosts: Vec<AllowedHost>,
    /// Proxies whose statements about their clients are believed. Requests from a proxy never count as those of this
    /// machine.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// The certificate for TLS; `None` for plain HTTP.
    pub tls: Option<Tls>,
    /// True to offer `/echo`. Default: false; it is for tests, and anyone can make it hold messages.
    pub echo: bool,
    /// True to offer `/broadcast`. Default: false; anyone can send to all its members.
    pub broadcast: bool,
    /// The topics to which clients may publish. Default: none; clients can only read.
    pub topics: TopicRules,
    /// Directories whose files are served. Default: none. One at `/` replaces the mount at `/`.
    pub static_dirs: Vec<StaticDir>,
    /// Services at paths of their own, and at `/` for all paths that have nothing else. Default: none; such a path
    /// gets 404.
    pub mounts: Vec<Mount>,
    /// The clients that may see who is connected (`/connections`, and `/topics/NAME/readers`). Default: those of this machine.
    pub connections_to: ViewRight,
    /// The clients that may see the list of runs (`/runs`), with the keys of all of them: whoever has the key of a run may read
    /// and cancel it. Default: those of this machine.
    pub runs_to: ViewRight,
    /// The requests that are logged, as events with the target [`ACCESS_TARGET`](crate::ACCESS_TARGET). Default:
    /// none.
    pub access_log: AccessLog,
}

impl Options {
    /// Creates default options that listen on this address.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self { listen: vec![listen.into()], ..Self::default() }
    }
}
