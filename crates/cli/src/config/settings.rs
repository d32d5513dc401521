//! The settings of the server itself: listening, TLS, storage.

use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;

use anemone_hub::{DataOptions, Fsync};
use anemone_server::{AllowedHost, AllowedOrigin, TrustedProxy, UnixSocket, ViewRight};

use super::listen::Listen;
use super::place::{Located, Place};
use super::table::Table;
use super::values::{
    GIB, HOUR, KIB, MILLISECOND, THREADS_MAX, address, boolean, duration, list, mode, number,
    parsed, path, places, size, word,
};
use crate::args;

/// The words for those who may see who is connected.
const VIEW_RIGHTS: [(&str, ViewRight); 2] =
    [("loopback", ViewRight::Local), ("anyone", ViewRight::Anyone)];

/// The listeners of the server, and what they offer.
#[derive(Clone, Debug)]
pub(crate) struct Listening {
    /// At least one of these two is set.
    pub(crate) listen: Option<Located<SocketAddr>>,
    pub(crate) unix: Option<Located<PathBuf>>,
    /// The permissions of the Unix socket.
    pub(crate) unix_mode: u32,
    pub(crate) tcp: Option<Located<SocketAddr>>,
    pub(crate) tcp_echo: Option<Located<SocketAddr>>,
    /// `None` for one per processor.
    pub(crate) threads: Option<NonZero<usize>>,
    pub(crate) allow_origins: Vec<AllowedOrigin>,
    /// True to offer `/echo` and `/broadcast`.
    pub(crate) echo: bool,
    pub(crate) broadcast: bool,
    pub(crate) allow_hosts: Vec<AllowedHost>,
    pub(crate) trusted_proxies: Vec<TrustedProxy>,
    /// The clients that may see who is connected.
    pub(crate) connections_to: ViewRight,
}

impl Listening {
    pub(super) fn read(table: &mut Table<'_>) -> Self {
        let places = match table.optional("listen", places) {
            Some(Located { value, place }) => (value, place),
            None => (vec![Listen::Address(([127, 0, 0, 1], 8080).into())], Place::Default),
        };
        let (listen, unix) = Self::split(places.0, &places.1);
        let threads = table.optional("threads", number(1..=THREADS_MAX));
        Self {
            listen,
            unix,
            unix_mode: table.value("unix_mode", UnixSocket::MODE_DEFAULT, mode),
            tcp: table.optional("tcp", address),
            tcp_echo: table.optional("tcp_echo", address),
            threads: threads.and_then(|threads| NonZero::new(threads.value)),
            allow_origins: table.value("allow_origins", Vec::new(), list(parsed)),
            echo: table.value("echo", false, boolean),
            broadcast: table.value("broadcast", false, boolean),
            trusted_proxies: table.value("trusted_proxies", Vec::new(), list(parsed)),
            allow_hosts: table.value("allow_hosts", Vec::new(), list(parsed)),
            connections_to: table.value("connections_to", ViewRight::Local, word(VIEW_RIGHTS)),
        }
    }

    /// Returns a warning about an allowed setting that is most likely a mistake.
    pub(crate) fn warning(&self) -> Option<String> {
        let kind = TrustedProxy::everybody(&self.trusted_proxies)?;
        Some(format!(
            "trusted_proxies has every address of {kind}: anyone who reaches the server can then forge their \
             address, the host and the scheme of a request; list only the addresses of your proxies"
        ))
    }

    /// Splits places into an address and a path, at most one of each.
    pub(super) fn split(
        places: Vec<Listen>,
        place: &Place,
    ) -> (Option<Located<SocketAddr>>, Option<Located<PathBuf>>) {
        let (mut address, mut path) = (None, None);
        for listen in places {
            match listen {
                Listen::Address(value) => address = Some(Located::new(value, place.clone())),
                Listen::Unix(value) => path = Some(Located::new(value, place.clone())),
            }
        }
        (address, path)
    }

    /// Returns the TCP addresses, each with its key.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (&'static str, &Located<SocketAddr>)> {
        let all = [("listen", &self.listen), ("tcp", &self.tcp), ("tcp_echo", &self.tcp_echo)];
        all.into_iter().filter_map(|(key, address)| Some((key, address.as_ref()?)))
    }
}

/// The files for TLS; after checking, at most one of the two ways is set.
#[derive(Clone, Debug)]
pub(crate) struct TlsFiles {
    pub(crate) cert: Option<Located<PathBuf>>,
    pub(crate) key: Option<Located<PathBuf>>,
    /// True to use a certificate made for localhost.
    pub(crate) dev: Located<bool>,
    /// The file to which that certificate is written, without its key; the flag's `-` means standard output.
    pub(crate) dev_cert: Option<Located<PathBuf>>,
}

impl TlsFiles {
    pub(super) fn read(mut table: Table<'_>) -> Self {
        let cert = table.optional("cert", path);
        let key = table.optional("key", path);
        let dev = table.optional("dev", boolean).unwrap_or_else(|| Located::by_default(false));
        let dev_cert = table.optional("dev_cert", path);
        table.finish();
        Self { cert, key, dev, dev_cert }
    }
}

/// The storage of topics.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    /// `None` for memory.
    pub(crate) dir: Option<Located<PathBuf>>,
    /// The time at which events are flushed.
    pub(crate) fsync: Located<args::Fsync>,
    /// True to treat a copy as the original. Only a flag sets it, for one start.
    pub(crate) adopt: bool,
    /// The other options. `fsync` in it has the interval, for when `fsync` above says so.
    options: DataOptions,
}

impl Data {
    pub(super) fn read(mut table: Table<'_>) -> Self {
        use args::Fsync::{Always, Interval, Never};
        let default = DataOptions::default();
        let words = [("always", Always), ("interval", Interval), ("never", Never)];
        let dir = table.optional("dir", path);
        let fsync = table.optional("fsync", word(words));
        let interval_default = match default.fsync {
            Fsync::Interval(interval) => interval,
            Fsync::Always | Fsync::Never => HOUR,
        };
        let interval = duration(MILLISECOND..=HOUR);
        let interval = table.value("fsync_interval", interval_default, interval);
        let mut of = |key, default, range| table.value(key, default, size(range));
        let options = DataOptions {
            fsync: Fsync::Interval(interval),
            segment_bytes_max: of("segment_bytes_max", default.segment_bytes_max, 4 * KIB..=GIB),
            memory_bytes_max: of("memory_bytes_max", default.memory_bytes_max, 0..=GIB),
            queue_bytes_max: of("queue_bytes_max", default.queue_bytes_max, 64 * KIB..=GIB),
            ..default
        };
        table.finish();
        let fsync = fsync.unwrap_or_else(|| Located::by_default(Interval));
        Self { dir, fsync, adopt: false, options }
    }

    pub(crate) fn options(&self) -> DataOptions {
        let fsync = match *self.fsync {
            args::Fsync::Always => Fsync::Always,
            args::Fsync::Interval => self.options.fsync,
            args::Fsync::Never => Fsync::Never,
        };
        DataOptions { fsync, adopt: self.adopt, ..self.options }
    }
}
