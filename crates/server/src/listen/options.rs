//! The options that a server is started with.

use std::net::SocketAddr;
use std::num::NonZero;

use crate::clients::access::AccessLog;
use crate::fallback::Fallback;
use crate::{
    AllowedHost, AllowedOrigin, Limits, StaticDir, Tls, TopicRules, TrustedProxy, UnixSocket,
};

/// The options that a server is started with. By default it listens nowhere.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The address to listen on; port 0 takes a free one. `None` for the Unix socket alone.
    pub listen: Option<SocketAddr>,
    /// A Unix socket to listen on, too, always without TLS. Default: none.
    pub unix: Option<UnixSocket>,
    /// The address to speak `anemone.v1` on over TCP, always without TLS. Default: none.
    pub tcp: Option<SocketAddr>,
    /// The address to echo bytes on as they are, over bare TCP: the floor that every comparison stands on.
    /// Default: nowhere.
    pub tcp_echo: Option<SocketAddr>,
    /// Threads that serve connections; `None` for one per processor.
    pub threads: Option<NonZero<usize>>,
    /// Bounds on its peers.
    pub limits: Limits,
    /// Origins other than its own whose pages may read from it, and publish where clients may.
    pub allowed_origins: Vec<AllowedOrigin>,
    /// Names by which it may be asked for, beside localhost and where it listens.
    pub allowed_hosts: Vec<AllowedHost>,
    /// Proxies that are believed when they say for whom they speak. What comes from one is never of this machine.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// The certificate to speak TLS with; `None` for plain HTTP.
    pub tls: Option<Tls>,
    /// Whether there is an `/echo`. Default: no; it is for trying things out, and anyone can have it hold messages.
    pub echo: bool,
    /// Whether there is a `/broadcast`. Default: no; anyone can send to all who are on it.
    pub broadcast: bool,
    /// Topics that clients may publish to. Default: none; those of the hub are read only.
    pub topics: TopicRules,
    /// Directories whose files are served. Default: none. One at `/` stands in the place of the fallback.
    pub static_dirs: Vec<StaticDir>,
    /// A service for every path that is neither the server's own nor has a file. Default: none; such a path is answered 404.
    pub fallback: Option<Fallback>,
    /// The requests that are logged, as events with the target [`ACCESS_TARGET`](crate::ACCESS_TARGET). Default: none.
    pub access_log: AccessLog,
}

impl Options {
    /// Listens here, everything else by default.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self { listen: Some(listen), ..Self::default() }
    }
}
