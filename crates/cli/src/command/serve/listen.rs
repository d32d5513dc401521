//! The server's addresses and certificate, and the messages about them.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anemone_hub::Hub;
use anemone_server::{
    BindError, ListenAt, Mount, MountError, Options, Running, Server, StaticPath, Tls, TlsError,
    UnixSocket,
};
use anemone_services::{Computations, Propagation};
use anyhow::Context;
use serde_json::json;

use super::messages::DemoMessages;
use crate::command::offered::offered;
use crate::config::{COMPUTATIONS, Config, Listen, Located, PROPAGATION, WITH_PAGE};
use crate::log;
use crate::output::announce;
use crate::pages;
use crate::pages::facts::{ServerFacts, for_others};

/// Starts to serve, and announces the addresses.
pub(super) fn start(
    config: &Config,
    hub: &Hub,
    messages: Option<DemoMessages>,
) -> anyhow::Result<Running> {
    let listening = &config.listening;
    if let Some(warning) = listening.warning() {
        tracing::warn!("{warning}");
    }
    let tls = tls(config)?;
    let at = |listen: &Located<Listen>| listen_at(listen, listening.unix_mode);
    let mut options = Options {
        listen: listening.listen.iter().map(at).collect(),
        listen_local: listening.listen_local.iter().map(at).collect(),
        ..Options::default()
    };
    options.tcp = listening.tcp.as_deref().copied();
    options.tcp_echo = listening.tcp_echo.as_deref().copied();
    options.threads = listening.threads;
    options.allowed_origins.clone_from(&listening.allow_origins);
    (options.echo, options.broadcast) = (listening.echo, listening.broadcast);
    options.trusted_proxies.clone_from(&listening.trusted_proxies);
    options.allowed_hosts.clone_from(&listening.allow_hosts);
    options.connections_to = listening.connections_to;
    options.runs_to = listening.runs_to;
    options.limits = config.limits.clone();
    options.tls = tls.clone();
    options.topics = config.rules()?;
    if let Some(messages) = &messages {
        options.topics = messages.with_rule(&options.topics)?;
    }
    options.static_dirs = config.files.iter().map(|dir| dir.value.clone()).collect();
    let facts = ServerFacts::new(config.messages.is_some());
    options.mounts = programs_and_pages(config, facts.clone())?;
    options.mounts.extend(messages.map(DemoMessages::mount).transpose()?);
    options.access_log = config.log_requests.into();
    let server = Server::bind(options, hub.clone())
        .map_err(|error| with_advice(error, || addresses(config)))?;
    // Written only after binding: the file may hold another server's certificate.
    if let Some((tls, file)) =
        tls.as_ref().filter(|_| *config.tls.dev).zip(config.tls.dev_cert.as_ref())
    {
        write_certificate(tls, file)
            .with_context(|| format!("{}: {}", file.place, cannot_write(file)))?;
    }
    let running = server.start().context("cannot start the server")?;
    // Warnings precede the announcement.
    log::flush();
    announce_places(config, &running)?;
    let common = &running.places()[..listening.listen.len()];
    let places = common
        .iter()
        .enumerate()
        .filter_map(|(at, place)| Some((scheme(config, at), place.address()?)));
    facts.listens_at(places.collect());
    let address = common.iter().find_map(ListenAt::address);
    if let (Some(tls), Some(address)) = (tls.filter(|_| *config.tls.dev), address) {
        print_trust_hint(&tls, address, config.tls.dev_cert.as_deref());
    }
    if let Some(address) = running.tcp_addr() {
        announce(&format!("tcp on {address}"))?;
    }
    if let Some(address) = running.tcp_echo_addr() {
        announce(&format!("tcp echo on {address}"))?;
    }
    Ok(running)
}

/// Returns a place for the server.
fn listen_at(listen: &Listen, mode: u32) -> ListenAt {
    match listen {
        Listen::Address(address) => (*address).into(),
        Listen::Unix(path) => UnixSocket { mode, ..UnixSocket::new(path) }.into(),
    }
}

/// Announces each place, those for this machine alone last.
fn announce_places(config: &Config, running: &Running) -> io::Result<()> {
    for (at, place) in running.places().iter().enumerate() {
        let (scheme, is_local) = (scheme(config, at), at >= config.listening.listen.len());
        let listening = if is_local { "local" } else { "listening" };
        match place.address() {
            None => announce(&format!("{listening} on {place}"))?,
            Some(address) => {
                announce(&format!("{listening} on {scheme}://{address}"))?;
                if let Some(address) = for_others(address).filter(|others| *others != address) {
                    tracing::info!("from other devices: {scheme}://{address}/");
                }
            }
        }
    }
    Ok(())
}

/// Returns the services of the configuration.
fn programs_and_pages(config: &Config, facts: ServerFacts) -> Result<Vec<Mount>, MountError> {
    let root = config.files.iter().find(|dir| dir.value.path == StaticPath::root());
    let root = root.map(|root| root.value.dir.as_path());
    let programs = config.runs.iter().map(|run| run.mount());
    let mut runs = programs.collect::<Result<Vec<_>, _>>()?;
    let is_demo = config.messages.is_some();
    if is_demo {
        runs.extend(demo_runs()?);
    }
    let services = if is_demo { WITH_PAGE.into() } else { Arc::default() };
    let paths = runs.iter().map(|run| run.path().to_owned()).collect();
    let mut mounts: Vec<_> = runs.into_iter().map(Mount::page_at_root).collect();
    mounts.extend(pages::mounts(root, services, paths, facts)?);
    Ok(mounts)
}

/// Returns the run services of the demo, each with a request to begin with.
fn demo_runs() -> Result<[Mount; 2], MountError> {
    let lists = json!({"actions": [
        {"id": "list", "do": "list", "size": 4},
        {"id": "sort", "after": "list", "do": "sort", "algorithm": "quick"},
    ]});
    let mast =
        json!({"x_m": 1000, "y_m": 1000, "height_m": 30, "frequency_mhz": 900, "power_dbm": 40});
    let coverage = json!({
        "area": {"width_m": 2000, "height_m": 2000}, "step_m": 500,
        "model": "free-space", "transmitters": [mast],
    });
    Ok([
        Mount::run(COMPUTATIONS, Computations)?
            .about("Makes lists and sorts them, and tells each state on the way.", lists)
            .parameters(Computations::openapi_parameters()),
        Mount::run(PROPAGATION, Propagation::new())?
            .about("Computes the signal of radio transmitters at each point of an area.", coverage),
    ])
}

/// Returns the scheme of the place with this number. The places for this machine alone follow the others, and have no TLS.
fn scheme(config: &Config, place: usize) -> &'static str {
    let has_tls = config.tls.cert.is_some() || *config.tls.dev;
    if has_tls && place < config.listening.listen.len() { "https" } else { "http" }
}

/// Prints the topics of each source and rule, with the URLs of the first address, or else of the first Unix socket. A server
/// that listens on all addresses is shown with a local one.
pub(super) fn print_topics(config: &Config, running: &Running) {
    let mut places = running.places().iter().enumerate();
    let url = places.find_map(|(at, place)| {
        let mut address = place.address()?;
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        Some(format!("{}://{address}", scheme(config, at)))
    });
    let url = url.or_else(|| running.places().first().map(|socket| format!("{socket}:")));
    for line in offered(config, &url.unwrap_or_default()) {
        tracing::info!("{line}");
    }
}

/// Returns an error with advice about a server that cannot be bound.
fn with_advice(error: BindError, all: impl FnOnce() -> String) -> anyhow::Error {
    let advice = match &error {
        BindError::AddressInUse { .. } => {
            "another program listens there: end it, or use a free port with --listen 127.0.0.1:0"
        }
        BindError::AddressDenied { .. } => DENIED,
        BindError::UnixSocket { source, .. }
            if source.raw_os_error().is_some()
                && source.kind() == io::ErrorKind::PermissionDenied =>
        {
            DENIED
        }
        _ => "",
    };
    let place = match &error {
        BindError::AddressInUse { address }
        | BindError::AddressDenied { address }
        | BindError::Address { address, .. } => address.to_string(),
        BindError::UnixSocket { path, .. } => format!("unix:{}", path.display()),
        _ => all(),
    };
    let cause = match error {
        _ if !advice.is_empty() => anyhow::Error::msg(advice),
        // Its own text would repeat the address.
        BindError::Address { source, .. } | BindError::UnixSocket { source, .. } => source.into(),
        other => other.into(),
    };
    cause.context(format!("cannot listen on {place}"))
}

const DENIED: &str = "permission denied: only root may use ports below 1024, so choose another port or put a proxy in front \
                      (docs/DEPLOY.md); a Unix socket needs a writable directory";

fn addresses(config: &Config) -> String {
    let all = config.listening.addresses().map(|(_, address, _)| address.to_string());
    let unix = config.listening.sockets().map(|(_, path, _)| format!("unix:{}", path.display()));
    all.chain(unix).collect::<Vec<_>>().join(", ")
}

pub(crate) fn tls(config: &Config) -> Result<Option<Tls>, TlsError> {
    match (&config.tls.cert, &config.tls.key) {
        (Some(certificate), Some(key)) => Tls::from_files(&certificate.value, &key.value).map(Some),
        _ if *config.tls.dev => Tls::for_localhost().map(Some),
        _ => Ok(None),
    }
}

/// Returns the error of a development certificate that cannot be written to this file.
pub(crate) fn cannot_write(file: &Path) -> String {
    format!("cannot write the development certificate to {}", file.display())
}

fn write_certificate(tls: &Tls, file: &Path) -> io::Result<()> {
    let pem = tls.certificate_pem();
    if file == Path::new("-") {
        return announce(pem.trim_end());
    }
    refuse_other_contents(file)?;
    fs::write(file, pem)
}

/// Refuses to overwrite anything but another certificate.
pub(crate) fn refuse_other_contents(file: &Path) -> io::Result<()> {
    const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";
    let mut there = Vec::new();
    match File::open(file) {
        Ok(file) => file.take(BEGIN.len() as u64).read_to_end(&mut there)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    if !there.is_empty() && there != BEGIN {
        return Err(io::Error::other(
            "the file exists and contains something other than a certificate",
        ));
    }
    Ok(())
}

/// Prints how to trust the certificate. No file is needed, since the key's digest identifies it.
fn print_trust_hint(tls: &Tls, address: SocketAddr, file: Option<&PathBuf>) {
    let (fingerprint, pin) = (tls.fingerprint(), tls.public_key_pin());
    tracing::info!("development certificate, SHA-256 {fingerprint}");
    match file.filter(|file| **file != Path::new("-")) {
        Some(file) => tracing::info!(
            "trust it: anemone topics --ca {file} https://{address}/, curl --cacert {file} https://{address}/clock",
            file = file.display()
        ),
        None => tracing::info!(
            "--tls-dev-cert FILE writes it to a file, for anemone sub --ca FILE and curl --cacert FILE"
        ),
    }
    tracing::info!(
        "trust exactly this one: curl --insecure --pinnedpubkey 'sha256//{pin}' https://{address}/clock"
    );
    tracing::info!("or: chromium --ignore-certificate-errors-spki-list={pin} https://{address}/");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_cannot_be_had_is_told_with_what_to_do() {
        let address = ([127, 0, 0, 1], 80).into();
        let denied = of_the_system(io::ErrorKind::PermissionDenied);
        let own = || io::Error::other("its own words");
        for (error, words) in [
            (
                BindError::AddressInUse { address },
                "cannot listen on 127.0.0.1:80: another program listens there: end it, or use a free port with --listen \
                 127.0.0.1:0",
            ),
            (
                BindError::AddressDenied { address },
                "cannot listen on 127.0.0.1:80: permission denied: only root may use ports below 1024, so choose another port or put a \
                 proxy in front (docs/DEPLOY.md); a Unix socket needs a writable directory",
            ),
            (
                BindError::UnixSocket { path: "/a".into(), source: denied },
                "cannot listen on unix:/a: permission denied: only root may use ports below 1024, so choose another port or put a \
                 proxy in front (docs/DEPLOY.md); a Unix socket needs a writable directory",
            ),
            (
                BindError::Address { address, source: own() },
                "cannot listen on 127.0.0.1:80: its own words",
            ),
            (
                BindError::UnixSocket { path: "/a".into(), source: own() },
                "cannot listen on unix:/a: its own words",
            ),
        ] {
            assert_eq!(format!("{:#}", with_advice(error, String::new)), words);
        }
    }

    fn of_the_system(kind: io::ErrorKind) -> io::Error {
        let mut errors = (1..133).map(io::Error::from_raw_os_error);
        errors.find(|error| error.kind() == kind).unwrap()
    }
}
