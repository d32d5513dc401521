//! Checks across settings, wherever they come from.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use anemone_hub::TopicName;
use anemone_server::{PublishRight, UnixSocket};
use anemone_sources::serial_lines::SerialLinesOptions;
use anemone_sources::windsonic;

use super::fault::Faults;
use super::files;
use super::place::{Located, Place};
use super::runs::RunProgram;
use super::sources::{Kind, Source};
use super::whole::{COMPUTATIONS, Config, MESSAGES, PROPAGATION, Part};
use crate::args::Fsync;
use crate::pages;

pub(super) fn validate(config: &Config, faults: &Faults) {
    addresses(config, faults);
    tls(config, faults);
    data(config, faults);
    topics(config, faults);
    sources(config, faults);
    owners(config, faults);
    files::validate(config, faults);
    runs(config, faults);
}

/// Checks that no two listeners have the same place, that a path fits a socket, and that others cannot reach a place for this
/// machine alone. With port 0, each gets a different port.
fn addresses(config: &Config, faults: &Faults) {
    let mut taken: Vec<(&str, SocketAddr)> = Vec::new();
    for (key, address, place) in config.listening.addresses() {
        let is_taken = |other: &SocketAddr| {
            let any = address.ip().is_unspecified() || other.ip().is_unspecified();
            address.port() != 0
                && address.port() == other.port()
                && (any || address.ip() == other.ip())
        };
        if let Some((first, other)) = taken.iter().find(|(_, other)| is_taken(other)) {
            faults.add(place, format!("{key}: {address} is taken by {first}, {other}"));
        }
        if key == "listen_local" && !address.ip().to_canonical().is_loopback() {
            let fault = format!(
                "{key}: other machines may reach {address}: expected a loopback address, such as 127.0.0.1:{}, or unix:PATH",
                address.port()
            );
            faults.add(place, fault);
        }
        taken.push((key, address));
    }
    sockets(config, faults);
}

fn sockets(config: &Config, faults: &Faults) {
    let mut taken: Vec<(&str, &Path)> = Vec::new();
    for (key, path, place) in config.listening.sockets() {
        if let Err(error) = UnixSocket::check_path(path) {
            faults.add(place, format!("{key}: {error}"));
        }
        if let Some((first, _)) = taken.iter().find(|(_, other)| *other == path) {
            faults.add(place, format!("{key}: unix:{} is taken by {first}", path.display()));
        }
        taken.push((key, path));
    }
}

fn tls(config: &Config, faults: &Faults) {
    let tls = &config.tls;
    match (&tls.cert, &tls.key) {
        (Some(cert), None) => {
            faults.add(&cert.place, "tls.cert: tls.key, the certificate's private key, is missing");
        }
        (None, Some(key)) => {
            faults.add(&key.place, "tls.key: tls.cert, the certificate of this key, is missing");
        }
        _ => {}
    }
    if let (Some(cert), true) = (&tls.cert, *tls.dev) {
        let fault = format!("tls.dev: there already is a certificate, tls.cert at {}", cert.place);
        faults.add(&tls.dev.place, fault);
    }
    let place = tls.cert.as_ref().map_or(&tls.dev.place, |cert| &cert.place);
    let has_address = config.listening.listen.iter().any(|listen| listen.address().is_some());
    if let (Place::Flag(_), false) = (place, has_address) {
        faults.add(place, "TLS needs an address: a Unix socket never speaks TLS");
    }
}

/// Checks that flushing is set only together with a data directory.
fn data(config: &Config, faults: &Faults) {
    let (data, place) = (&config.data, &config.data.fsync.place);
    let believes = match place {
        Place::Default => false,
        Place::Flag(_) => true,
        Place::File(..) | Place::Variable(_) => *data.fsync != Fsync::Interval,
    };
    if believes && data.dir.is_none() {
        let fault = "data.fsync: flushing needs a data directory: data.dir, or --data";
        faults.add(place, fault);
    }
    if data.adopt && data.dir.is_none() {
        faults.add(
            &Place::Flag("--adopt-data"),
            "there is no data directory to adopt: data.dir, or --data",
        );
    }
}

fn topics(config: &Config, faults: &Faults) {
    for rule in &config.topics {
        if let Some(name) = rule.topics.name().filter(|name| is_of_messages(config, name)) {
            faults.add(&rule.place, format!("topic.name: {}", of_messages(name)));
        }
    }
    for (index, rule) in config.topics.iter().enumerate() {
        let earlier = &config.topics[..index];
        if let Some(first) = earlier.iter().find(|other| other.topics == rule.topics) {
            let fault = format!(
                "topic.name: there already is a rule for {}, at {}",
                rule.topics, first.place
            );
            faults.add(&rule.place, fault);
        }
    }
}

fn sources(config: &Config, faults: &Faults) {
    let mut stdin: Option<&Source> = None;
    let mut devices: Vec<(&std::path::Path, &Place)> = Vec::new();
    for source in &config.sources {
        match &source.kind {
            Kind::Stdin(_) => {
                if let Some(first) = stdin {
                    let fault = format!(
                        "only one source can read standard input, and it already goes to {} ({})",
                        *first.topic, first.topic.place
                    );
                    faults.add(&source.topic.place, fault);
                }
                stdin = Some(source);
            }
            Kind::Serial(Located { value: windsonic::WindsonicOptions { path, .. }, place })
            | Kind::SerialLines(Located { value: SerialLinesOptions { path, .. }, place }) => {
                if let Some((_, first)) = devices.iter().find(|(other, _)| *other == path) {
                    let path = path.display();
                    let fault =
                        format!("source.device: another source already reads {path}, at {first}");
                    faults.add(place, fault);
                }
                devices.push((path, place));
            }
            Kind::Exec(..) | Kind::File(_) | Kind::Host(_) | Kind::Demo(_) => {}
        }
    }
}

/// Checks that each topic has one source, and that a source's own topics have no other.
fn owners(config: &Config, faults: &Faults) {
    let mut owners: BTreeMap<TopicName, &Source> = BTreeMap::new();
    for source in &config.sources {
        let (topic, place) = (&*source.topic, &source.topic.place);
        if format!("{topic}.status").parse::<TopicName>().is_err() {
            let fault =
                "source.topic: the name is too long to append .status: at most 121 characters";
            faults.add(place, fault);
        }
        for (name, part) in source.topics() {
            if is_of_messages(config, &name) {
                faults.add(place, format!("source.topic: {}", of_messages(&name)));
            }
            if let Some(first) = owners.get(&name) {
                faults.add(place, format!("source.topic: {}", taken(&name, first)));
                break;
            }
            if part == Part::Status {
                status_is_its_own(config, &name, faults);
            }
            owners.insert(name, source);
        }
    }
}

fn is_of_messages(config: &Config, name: &TopicName) -> bool {
    config.messages.is_some() && name.as_str() == MESSAGES
}

fn of_messages(name: &TopicName) -> String {
    format!("{name} has the records of the demo: choose another name, or do without the demo")
}

fn taken(name: &TopicName, first: &Source) -> String {
    match (&first.kind, &first.topic.place) {
        (Kind::Host(_), Place::Default) => format!(
            "{name} already has the load of this machine; host = false turns that off, and a source of type \
             \"host\" publishes it to another topic"
        ),
        (Kind::Demo(_), place) => format!("{name} already has the emulated instrument of {place}"),
        (kind, place) => format!("{name} already has a source, \"{}\" at {place}", kind.name()),
    }
}

fn status_is_its_own(config: &Config, name: &TopicName, faults: &Faults) {
    let of_status = config.topics.iter().find(|rule| rule.topics.name() == Some(name));
    if let Some(rule) = of_status.filter(|rule| rule.publish != PublishRight::Nobody) {
        let fault = format!(
            "topic.publish: {name} is the status of a source, and only that source may publish to it"
        );
        faults.add(&rule.place, fault);
    }
}

/// Checks that each program has a path that nothing else has.
fn runs(config: &Config, faults: &Faults) {
    for (index, run) in config.runs.iter().enumerate() {
        if let Some(fault) = run_fault(config, index, run) {
            faults.add(&run.path.place, format!("run.path: {fault}"));
        }
    }
}

fn run_fault(config: &Config, index: usize, run: &RunProgram) -> Option<String> {
    let path = run.path.as_str();
    if let Err(error) = run.mount() {
        return Some(error.to_string());
    }
    if path == "/" || pages::hides(path) {
        return Some(format!(
            "{path} has files of the built-in page, which would then be hidden: choose another path"
        ));
    }
    if let Some(first) = config.runs[..index].iter().find(|first| *first.path == *path) {
        return Some(format!("{path} already has a program, at {}", first.path.place));
    }
    if config.messages.is_some() && path.strip_prefix('/') == Some(MESSAGES) {
        return Some(format!("{path} has the messages of the demo"));
    }
    if config.messages.is_some() && path == COMPUTATIONS {
        return Some(format!("{path} has the computations of the demo"));
    }
    if config.messages.is_some() && path == PROPAGATION {
        return Some(format!("{path} has the coverages of the demo"));
    }
    let below = format!("{path}/");
    let dir = config.files.iter().find(|dir| dir.path.as_str().starts_with(&below))?;
    Some(format!("{} has the files of {} ({})", dir.path, dir.dir.display(), dir.place))
}
