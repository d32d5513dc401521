//! The flags of the command line, which override everything else.
//!
//! A flag replaces the value of its key. Flags that name a source or a directory add one; two for the same topic or
//! path are refused, wherever they come from.

use std::path::PathBuf;

use anemone_server::{StaticDir, StaticPath};
use anemone_sources::exec::Command;
use anemone_sources::windsonic::Mode;
use anemone_sources::{exec, file, serial_lines, stdin, windsonic};

use super::fault::Faults;
use super::keep::Keep;
use super::listen::Listen;
use super::place::{Located, Place};
use super::runs;
use super::settings::{Listening, TlsFiles, each};
use super::sources::{Kind, Source, StderrTo};
use super::whole::{Config, Shorthands, source};
use crate::args::{self, DeviceFrom, TopicFrom};

pub(super) fn apply(
    flags: &args::Serve,
    config: &mut Config,
    short: &mut Shorthands,
    faults: &Faults,
) {
    config.log_requests = flags.log_requests.unwrap_or(config.log_requests);
    listen(flags, &mut config.listening, faults);
    config.limits.memory_max = flags.memory_max.or(config.limits.memory_max);
    if let Some(connections_max) = flags.connections_max {
        config.limits.connections_max = connections_max;
    }
    if flags.tls_dev || flags.tls_cert.is_some() {
        config.tls = tls(flags);
    }
    replace_some(&mut config.data.dir, "--data", flags.data.clone());
    replace(&mut config.data.fsync, "--fsync", flags.fsync);
    match Keep::of(&flags.keep) {
        Ok(keep) => {
            config.keep.age = keep.age.or(config.keep.age);
            config.keep.bytes = keep.bytes.or(config.keep.bytes);
        }
        Err(fault) => faults.add(&Place::Flag("--keep"), fault),
    }
    config.data.adopt = flags.adopt_data;
    if flags.demo {
        short.demo = Some(Located::new(true, Place::Flag("--demo")));
    }
    let has_demo = short.demo.as_ref().is_some_and(|demo| demo.value);
    if flags.unit.is_some() && flags.serial.is_none() && !has_demo {
        let fault = "this letter needs an instrument: --serial DEVICE, or --demo";
        faults.add(&Place::Flag("--unit"), fault);
    }
    if flags.host {
        short.host = Some(true);
    }
    config.sources.extend(sources(flags));
    config.runs.extend(flags.run.iter().map(|run| runs::of_flag(&run.path, &run.command)));
    config.files.extend(
        flags.static_dir.iter().map(|dir| {
            Located::new(StaticDir::new(StaticPath::root(), dir), Place::Flag("--static"))
        }),
    );
}

/// Applies the flags for listening and access.
fn listen(flags: &args::Serve, listening: &mut Listening, faults: &Faults) {
    if !flags.listen.is_empty() {
        listening.listen = places("--listen", &flags.listen, faults);
    }
    if !flags.listen_local.is_empty() {
        listening.listen_local = places("--listen-local", &flags.listen_local, faults);
    }
    if let Some(mode) = flags.unix_mode {
        listening.unix_mode = mode;
        if listening.sockets().next().is_none() {
            let fault = "these permissions need a Unix socket: --listen unix:PATH";
            faults.add(&Place::Flag("--unix-mode"), fault);
        }
    }
    replace_some(&mut listening.tcp, "--tcp", flags.tcp);
    replace_some(&mut listening.tcp_echo, "--tcp-echo", flags.tcp_echo);
    listening.threads = flags.threads.or(listening.threads);
    if !flags.allowed_origins.is_empty() {
        listening.allow_origins.clone_from(&flags.allowed_origins);
    }
    listening.echo |= flags.echo;
    listening.broadcast |= flags.broadcast;
    if !flags.trusted_proxies.is_empty() {
        listening.trusted_proxies.clone_from(&flags.trusted_proxies);
    }
    if !flags.allowed_hosts.is_empty() {
        listening.allow_hosts.clone_from(&flags.allowed_hosts);
    }
}

fn places(flag: &'static str, places: &[Listen], faults: &Faults) -> Vec<Located<Listen>> {
    let place = Place::Flag(flag);
    if let Err(fault) = Listen::check_number(places) {
        faults.add(&place, fault);
    }
    each(places.to_vec(), &place)
}

fn tls(flags: &args::Serve) -> TlsFiles {
    let file = |flag, path: &Option<PathBuf>| {
        path.clone().map(|path| Located::new(path, Place::Flag(flag)))
    };
    TlsFiles {
        cert: file("--tls-cert", &flags.tls_cert),
        key: file("--tls-key", &flags.tls_key),
        dev: Located::new(flags.tls_dev, Place::Flag("--tls-dev")),
        dev_cert: file("--tls-dev-cert", &flags.tls_dev_cert),
    }
}

fn replace<T>(setting: &mut Located<T>, flag: &'static str, value: Option<T>) {
    if let Some(value) = value {
        *setting = Located::new(value, Place::Flag(flag));
    }
}

fn replace_some<T>(setting: &mut Option<Located<T>>, flag: &'static str, value: Option<T>) {
    if let Some(value) = value {
        *setting = Some(Located::new(value, Place::Flag(flag)));
    }
}

fn sources(flags: &args::Serve) -> Vec<Source> {
    let mut sources = Vec::new();
    if let Some(device) = &flags.serial {
        let place = Place::Flag("--serial");
        let default = windsonic::WindsonicOptions::new(device);
        let options = windsonic::WindsonicOptions {
            baud: flags.baud.unwrap_or(default.baud),
            unit: flags.unit.unwrap_or(default.unit),
            mode: match (flags.configure, flags.polled) {
                (true, _) => Mode::Configure,
                (false, true) => Mode::Polled,
                (false, false) => Mode::Listen,
            },
            ..default
        };
        let kind = Kind::Serial(Located::new(options, place.clone()));
        sources.extend(source("wind", &place, kind));
    }
    for DeviceFrom { topic, device, baud, framing } in &flags.serial_lines {
        let place = Place::Flag("--serial-lines");
        let default = serial_lines::SerialLinesOptions::new(device);
        let options = serial_lines::SerialLinesOptions {
            baud: baud.unwrap_or(default.baud),
            framing: framing.unwrap_or(default.framing),
            ..default
        };
        let topic = Located::new(topic.clone(), place.clone());
        sources.push(Source { topic, kind: Kind::SerialLines(Located::new(options, place)) });
    }
    for TopicFrom { topic, from } in &flags.exec {
        let options = exec::ExecOptions::new(Command::Shell(from.clone().into()));
        let topic = Located::new(topic.clone(), Place::Flag("--exec"));
        sources.push(Source { topic, kind: Kind::Exec(Box::new(options), StderrTo::Log) });
    }
    for TopicFrom { topic, from } in &flags.file {
        let topic = Located::new(topic.clone(), Place::Flag("--file"));
        sources.push(Source { topic, kind: Kind::File(file::FileOptions::new(from)) });
    }
    if let Some(topic) = &flags.stdin {
        let topic = Located::new(topic.clone(), Place::Flag("--stdin"));
        sources.push(Source { topic, kind: Kind::Stdin(stdin::StdinOptions::default()) });
    }
    sources
}
