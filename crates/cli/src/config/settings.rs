//! The settings of the server itself: listening, TLS, storage.

use std::net::SocketAddr;
use std::num::NonZero;
use std::path::{Path, PathBuf};

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

/// The words for those who may see a list.
const VIEW_RIGHTS: [(&str, ViewRight); 2] =
    [("loopback", ViewRight::Local), ("anyone", ViewRight::Anyone)];

/// The listeners of the server, and what they offer.
#[derive(Clone, Debug)]
pub(crate) struct Listening {
    /// The places to listen on, at least one.
    pub(crate) listen: Vec<Located<Listen>>,
    /// More of them, for this machine alone.
    pub(crate) listen_local: Vec<Located<Listen>>,
    /// The permissions of the Unix sockets.
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
    /// The clients that may see the list of runs.
    pub(crate) runs_to: ViewRight,
}

impl Listening {
    pub(super) fn read(table: &mut Table<'_>) -> Self {
        let listen = table.optional("listen", places).unwrap_or_else(|| {
            Located::by_default(vec![Listen::Address(([127, 0, 0, 1], 8080).into())])
        });
        let listen_local = table.optional("listen_local", places);
        let threads = table.optional("threads", number(1..=THREADS_MAX));
        Self {
            listen: each(listen.value, &listen.place),
            listen_local: listen_local
                .map(|local| each(local.value, &local.place))
                .unwrap_or_default(),
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
            runs_to: table.value("runs_to", ViewRight::Local, word(VIEW_RIGHTS)),
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

    /// Returns the places to listen on, each with its key.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&'static str, &Located<Listen>)> {
        let common = self.listen.iter().map(|place| ("listen", place));
        common.chain(self.listen_local.iter().map(|place| ("listen_local", place)))
    }

    /// Returns the Unix sockets, each with its key.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = (&'static str, &Path, &Place)> {
        self.places().filter_map(|(key, at)| Some((key, at.socket()?, &at.place)))
    }

    /// Returns the TCP addresses, each with its key.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (&'static str, SocketAddr, &Place)> {
        let sites = self.places().filter_map(|(key, at)| Some((key, at.address()?, &at.place)));
        let others = [("tcp", &self.tcp), ("tcp_echo", &self.tcp_echo)];
        let others = others.into_iter().filter_map(|(key, at)| Some((key, at.as_ref()?)));
        sites.chain(others.map(|(key, at)| (key, at.value, &at.place)))
    }
}

/// Returns each of these places with the place where all are written.
pub(super) fn each(listen: Vec<Listen>, place: &Place) -> Vec<Located<Listen>> {
    listen.into_iter().map(|listen| Located::new(listen, place.clone())).collect()
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
