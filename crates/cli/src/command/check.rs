//! `anemone check`: prints what `anemone serve` would do with the same flags, or all errors.
//!
//! It reads the configuration and the certificate. It only checks that other things exist. A device, a file or a
//! program may come later, and an address may become free, so missing ones only cause warnings.

use std::fmt::Display;
use std::fs::FileType;
use std::net::TcpListener;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anemone_server::{Limits, PublishRight, TlsError, TopicRule, ViewRight};
use anemone_sources::exec::ExecOptions;

use super::missing::{program_missing, run_missing};
use super::offered::offered;
use super::serve::{
    NO_TOPICS, cannot_write, descriptors, makes_no_topics, refuse_other_contents, tls,
};
use crate::args;
use crate::config::{
    Config, ConfigError, Kind, Listen, Listening, Located, Place, Size, Source, Time, TlsFiles,
    files,
};
use crate::exit::Exit;
use crate::output::{print, report};

pub(crate) fn run(flags: &args::Serve) -> ExitCode {
    match Config::load(flags).and_then(|config| summary(&config)) {
        // If nobody reads the output, the exit status remains.
        Ok(lines) => print(lines).map_or(ExitCode::FAILURE, |_| ExitCode::SUCCESS),
        Err(error) => {
            let (count, s) = (error.count(), if error.count() == 1 { "" } else { "s" });
            report(&format!("{error}\n{count} error{s}"));
            Exit::of_config(&error).into()
        }
    }
}

/// Returns the lines about `serve`, or the reason why it would not start, as far as this machine shows.
fn summary(config: &Config) -> Result<Vec<String>, ConfigError> {
    let secure = tls(config).map_err(|error| {
        let (key, place) = key_of(&error, &config.tls);
        ConfigError::new(place, format!("{key}: {:#}", anyhow::Error::new(error)))
    })?;
    let mut warnings = Vec::from_iter(config.listening.warning());
    // The contents of an existing directory are not examined.
    if makes_no_topics(config) && config.data.dir.as_ref().is_none_or(|dir| !dir.exists()) {
        warnings.push(NO_TOPICS.to_owned());
    }
    warnings.extend(files::check(config)?);
    let data = data(config, &mut warnings)?;
    let scheme = if secure.is_some() { "https://" } else { "http://" };
    let mut lines = Vec::new();
    lines.extend(places(&config.listening, scheme));
    for (key, address, place) in config.listening.addresses() {
        // Another server may use it now, and be gone later.
        if let Err(error) = TcpListener::bind(address) {
            warnings.push(format!("{place}: {key}: cannot listen on {address} now: {error}"));
        }
    }
    if let (true, Some(file)) = (*config.tls.dev, &config.tls.dev_cert) {
        refuse_other_contents(file).map_err(|error| {
            ConfigError::new(
                file.place.clone(),
                format!("tls.dev_cert: {}: {error}", cannot_write(file)),
            )
        })?;
        lines.push(format!("tls      writes its certificate to {}", file.display()));
    }
    let listening = &config.listening;
    warnings.extend(listening.sockets().filter_map(socket_missing));
    match descriptors::foreseen(config) {
        Ok(fewer) => warnings.extend(fewer.map(|fewer| fewer.to_string())),
        Err(error) => warnings.push(format!("cannot start now: {error}")),
    }
    lines.extend(let_in(listening));
    lines.extend(limits(&config.limits));
    lines.push(data);
    config.sources.iter().for_each(|source| check_source(source, &mut warnings));
    warnings.extend(config.runs.iter().filter_map(run_missing));
    lines.extend(offered(config, ""));
    warnings.extend(config.topics.iter().flat_map(|rule| too_large(rule, &config.limits)));
    lines.extend(warnings.into_iter().map(|warning| format!("warning: {warning}")));
    let from = match &config.file {
        Some(file) => format!("{} is fine", file.display()),
        None => "fine, without a configuration file".to_owned(),
    };
    lines.push(from);
    Ok(lines)
}

fn places(listening: &Listening, scheme: &str) -> Vec<String> {
    let sites = listening.places().map(|(key, listen)| {
        let (scheme, alone) = match key {
            "listen_local" => ("http://", ", for this machine alone"),
            _ => (scheme, ""),
        };
        match &listen.value {
            Listen::Address(address) => format!("listen   {scheme}{address}{alone}"),
            unix => format!("listen   {unix}, permissions {:o}{alone}", listening.unix_mode),
        }
    });
    let others = [("tcp", &listening.tcp), ("tcp_echo", &listening.tcp_echo)];
    let others = others.into_iter().filter_map(|(key, address)| {
        address.as_ref().map(|address| format!("{key:<8} {}", **address))
    });
    sites.chain(others).collect()
}

/// Returns the reason why a socket could not be created at this path now, if there is one.
fn socket_missing((key, socket, place): (&str, &Path, &Place)) -> Option<String> {
    let path = socket.display();
    let directory = socket.parent().filter(|parent| *parent != Path::new(""));
    let directory = directory.unwrap_or(Path::new("."));
    let fault = match socket.symlink_metadata() {
        Ok(found) if !found.file_type().is_socket() => format!("{path} exists and is not a socket"),
        Ok(_) if UnixStream::connect(socket).is_ok() => {
            format!("another program listens on {path} now")
        }
        _ => {
            let error = rustix::fs::access(directory, rustix::fs::Access::WRITE_OK).err()?;
            format!("cannot write to {} now: {error}", directory.display())
        }
    };
    Some(format!("{place}: {key}: {fault}"))
}

/// Returns the lines about access, and about services besides topics.
fn let_in(listening: &Listening) -> [String; 5] {
    let offered = [("/echo", listening.echo), ("/broadcast", listening.broadcast)];
    let offered: Vec<_> = offered.iter().filter(|(_, is_there)| *is_there).collect();
    let offered = joined("neither /echo nor /broadcast", offered.iter().map(|(path, _)| path));
    let hosts = joined("none", &listening.allow_hosts);
    let mut addresses = listening.places().filter_map(|(_, at)| at.address());
    let is_everywhere = addresses.any(|address| address.ip().is_unspecified());
    let own_hosts = match is_everywhere {
        true => "localhost, every address, and this machine's NAME and NAME.local",
        false => "localhost, loopback addresses and addresses listened on",
    };
    let origins = joined("none", &listening.allow_origins);
    let proxies = joined("none", &listening.trusted_proxies);
    [
        format!("offered  {offered}"),
        format!("hosts    {own_hosts}; allow_hosts: {hosts}"),
        format!("origins  the server's own; allow_origins: {origins}"),
        format!("proxies  trusted_proxies: {proxies}"),
        format!(
            "seen by  connections_to: {}; runs_to: {}",
            seen_by(listening.connections_to),
            seen_by(listening.runs_to)
        ),
    ]
}

/// Returns the word for the clients that may see a list.
fn seen_by(right: ViewRight) -> &'static str {
    match right {
        ViewRight::Local => "loopback",
        ViewRight::Anyone => "anyone",
    }
}

/// Joins texts; `none` if there are none.
fn joined(none: &str, all: impl IntoIterator<Item = impl Display>) -> String {
    let all: Vec<_> = all.into_iter().map(|one| one.to_string()).collect();
    if all.is_empty() { none.to_owned() } else { all.join(", ") }
}

/// Returns the lines about limits on all clients together.
fn limits(limits: &Limits) -> [String; 2] {
    let of_address = match limits.connections_per_address_max {
        Some(max) => max.to_string(),
        None => "a tenth of that (default)".to_owned(),
    };
    let memory = match limits.memory_max {
        Some(bytes) => Size(bytes as u64).to_string(),
        None => format!(
            "{} MiB (default: half of the memory of this machine or its control group)",
            limits.memory_bytes_max() >> 20
        ),
    };
    [
        format!(
            "limits   connections_max: {}; connections_per_address_max: {of_address}",
            limits.connections_max
        ),
        format!("limits   memory_max: {memory}"),
    ]
}

fn key_of(error: &TlsError, tls: &TlsFiles) -> (&'static str, Place) {
    let is_key = |path: &PathBuf| tls.key.as_ref().is_some_and(|key| key.value == *path);
    let of_key = match error {
        TlsError::NoKey { .. } | TlsError::BadKey { .. } | TlsError::KeyMismatch { .. } => true,
        TlsError::Unreadable { path, .. }
        | TlsError::TooBig { path, .. }
        | TlsError::NotPem { path, .. } => is_key(path),
        _ => false,
    };
    let (name, file) = if of_key { ("tls.key", &tls.key) } else { ("tls.cert", &tls.cert) };
    (name, file.as_ref().map(|file| file.place.clone()).unwrap_or_default())
}

fn data(config: &Config, warnings: &mut Vec<String>) -> Result<String, ConfigError> {
    let Some(dir) = &config.data.dir else { return Ok("data     in memory".to_owned()) };
    let path = dir.display();
    let existing = dir.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    if !existing.is_dir() {
        let fault = format!("data.dir: {} is not a directory", existing.display());
        return Err(ConfigError::new(dir.place.clone(), fault));
    }
    if let Err(error) = rustix::fs::access(existing, rustix::fs::Access::WRITE_OK) {
        let place = &dir.place;
        warnings
            .push(format!("{place}: data.dir: cannot write to {}: {error}", existing.display()));
    }
    let fsync = match config.data.options().fsync {
        anemone_hub::Fsync::Always => "flushed before it is acknowledged".to_owned(),
        anemone_hub::Fsync::Interval(interval) => format!("flushed every {}", Time(interval)),
        anemone_hub::Fsync::Never => "flushed when the operating system decides".to_owned(),
    };
    Ok(format!("data     in {path}, {fsync}"))
}

/// Warns if something that a source needs is missing now.
fn check_source(source: &Source, warnings: &mut Vec<String>) {
    let place = &source.topic.place;
    let mut check_path = |what: &str, path: &Path, is_one: fn(FileType) -> bool| {
        let fault = match path.metadata() {
            Ok(found) if is_one(found.file_type()) => return,
            Ok(_) => format!("{} is not a {what}", path.display()),
            Err(error) => format!("the {what} {} does not exist now: {error}", path.display()),
        };
        warnings.push(format!("{place}: {fault}"));
    };
    match &source.kind {
        Kind::Serial(options) => {
            check_path("serial device", &options.path, |found| found.is_char_device());
        }
        Kind::SerialLines(options) => {
            check_path("serial device", &options.path, |found| found.is_char_device());
        }
        Kind::Exec(options, _) => {
            if let Some(directory) = &options.directory {
                check_path("directory", directory, |found| found.is_dir());
            }
            let ExecOptions { command, environment, directory, .. } = &**options;
            let missing = program_missing(command, directory.as_deref(), environment);
            warnings.extend(missing.map(|missing| format!("{place}: {missing}")));
        }
        Kind::File(options) => {
            check_path("file", &options.path, |found| found.is_file());
            let path = options.path.as_path();
            let read = rustix::fs::access(path, rustix::fs::Access::READ_OK);
            if let (true, Err(error)) = (path.is_file(), read) {
                warnings.push(format!("{place}: cannot read {} now: {error}", path.display()));
            }
        }
        Kind::Stdin(_) | Kind::Host(_) | Kind::Demo(_) => {}
    }
}

/// Returns warnings about limits of transports that are below a rule's limit.
fn too_large(rule: &Located<TopicRule>, limits: &Limits) -> Vec<String> {
    let event_bytes = rule.event_bytes_max as u64;
    let line_bytes = limits.multiplexed_line_bytes_max as u64;
    let ways = [
        ("limits.batch_bytes_max", limits.batch_bytes_max as u64, 0),
        ("limits.websocket.message_bytes_max", limits.websocket.message_bytes_max, 0),
        ("limits.multiplexed.message_bytes_max", limits.multiplexed.message_bytes_max, line_bytes),
    ];
    let told = |(key, bytes_max, beside): (&str, u64, u64)| {
        let (place, bytes) = (&rule.place, Size(event_bytes));
        let needed = Size(event_bytes + beside);
        format!(
            "{place}: events of {} may have {bytes}, which needs {key} of at least {needed}, but it is {}",
            rule.topics,
            Size(bytes_max)
        )
    };
    let is_short = |way: &(&str, u64, u64)| event_bytes + way.2 > way.1;
    match rule.publish {
        PublishRight::Nobody => Vec::new(),
        PublishRight::Loopback | PublishRight::Anyone => {
            ways.into_iter().filter(is_short).map(told).collect()
        }
    }
}
