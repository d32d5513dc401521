//! The command line.

mod client;
mod device;
mod services;
mod tips;
mod url;

use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::str::FromStr;

use anemone_hub::{TopicName, TopicNameError};
use anemone_server::{AllowedHost, AllowedOrigin, Limit, Limits, TrustedProxy};
use anemone_sources::windsonic::UnitId;
use anemone_sources::windsonic::emulate::{Format, Rate};
use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use self::client::{
    Behind, ContentArg, Doctor, Field, Listing, Output, Pub, Reach, Sub, Topics,
};
pub(crate) use self::device::DeviceFrom;
use self::device::baud;
pub(crate) use self::services::{
    Body, Call, CallOutput, CallVia, Run, RunListing, RunOutput, Runs,
};
pub(crate) use self::tips::with_tip;
pub(crate) use self::url::{of_topic, shell_word, split};
use crate::config::{KeepLimit, Listen, Size, THREADS_MAX, parse_address, parse_mode};
use crate::exit;
use crate::log::{LogForm, LogRequests};

/// Puts any data stream on the web at one URL, over every web transport.
#[derive(Debug, Parser)]
#[command(name = "anemone", version, arg_required_else_help = true, after_long_help = exit::table())]
pub(crate) struct Args {
    /// Also log what happens on each connection
    #[arg(long, short, global = true, help_heading = LOG)]
    pub(crate) verbose: bool,
    /// The format of the log
    #[arg(long, global = true, value_name = "FORMAT", value_enum, help_heading = LOG)]
    pub(crate) log: Option<LogForm>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve topics from instruments, programs, files, this machine and clients that publish
    Serve(Box<Serve>),
    /// Print what `serve` with the same flags would do, or every error in its configuration
    Check(Box<Serve>),
    /// Read a topic: print a line for each event, and resume where it was when a connection is lost
    ///
    /// A terminal shows control characters, and characters that reverse text, as JSON escapes such as \u001b. A pipe or
    /// a file gets each event unchanged. The command ends when the reader of its output has gone.
    #[command(after_long_help = exit::table())]
    Sub(Sub),
    /// Publish to a topic, each event once, and print its position
    ///
    /// Once a position is printed, the server has stored that event. If a line of standard input is not a valid event, the
    /// lines before it are published, and the error gives its line number.
    #[command(after_long_help = exit::table())]
    Pub(Pub),
    /// List the topics of a server, one a line: the URL, the number of events it retains, and their bytes
    #[command(after_long_help = exit::table())]
    Topics(Topics),
    /// Call a service, and print its reply; each item of a stream as it comes
    ///
    /// The exit status says whether the server refused the call. The words of a refusal go to standard error, unless the
    /// service has its own, which go to standard output.
    #[command(after_long_help = exit::table())]
    Call(Call),
    /// Start a run, a long computation, and watch it to its end: print its partial results and its result
    ///
    /// The run goes on when this command ends: after Ctrl-C, the command says how to watch it again and how to cancel it.
    #[command(after_long_help = exit::table())]
    Run(Run),
    /// List the runs of a server, the newest first, or cancel one; the list is only for clients on the server's machine
    #[command(after_long_help = exit::table())]
    Runs(Runs),
    /// Measure which transport serves best on this network: an answer, with every round that it rests on
    ///
    /// Without --target, the command measures a server that it starts on this machine. It prints a report as Markdown. Ctrl-C
    /// ends it early, and the report tells what was measured by then.
    #[command(arg_required_else_help = true, after_long_help = exit::table())]
    Lab(anemone_lab::lab::Options),
    /// Examine the way to a server: find what a proxy does to streams, WebSockets and quiet connections, and the setting that changes it
    ///
    /// It opens a dozen connections, and publishes nothing. Its exit status is 13 if something is wrong.
    #[command(after_long_help = exit::table())]
    Doctor(Doctor),
    /// Emulate a Gill WindSonic anemometer on a pseudo-terminal
    Windsonic(Windsonic),
    /// Print a script that lets a shell complete commands, flags and their values
    ///
    /// bash: anemone completions bash > ~/.local/share/bash-completion/completions/anemone
    ///
    /// zsh: anemone completions zsh > "${fpath[1]}/_anemone"
    ///
    /// fish: anemone completions fish > ~/.config/fish/completions/anemone.fish
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages to a directory, and create it if needed
    Man {
        /// The directory
        directory: PathBuf,
    },
}

/// A shell that completes command lines.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

// Headings of help texts.
const LOG: &str = "Log";
const LISTENING: &str = "Listening";
const LET_IN: &str = "Access";
const SOURCES: &str = "Sources";
const SERVICES: &str = "Services";
const KEPT: &str = "Storage";
const LIMITS: &str = "Limits";
const TRYING: &str = "Experiments";

/// The flags of `serve`. Each overrides the configuration file and the environment; `config` has the defaults.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Serve {
    /// Read this configuration file [default: the one that ANEMONE_CONFIG names]. Flags override it. anemone.toml in the
    /// source repository documents every key
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Log each request when it is over: method, path, status, transport, client, bytes, time and position; similar polls
    /// and refusals share one line a minute [default: off; with the flag alone: sampled]
    #[arg(
        long, value_name = "WHICH", value_enum, num_args = 0..=1, require_equals = true,
        default_missing_value = "sampled", help_heading = LOG
    )]
    pub(crate) log_requests: Option<LogRequests>,

    /// Listen on this address (port 0 picks a free port, 0.0.0.0 is every address of this machine) or on a Unix socket;
    /// may be repeated [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT|unix:PATH", help_heading = LISTENING)]
    pub(crate) listen: Vec<Listen>,

    /// Also listen here, for programs and browsers of this machine alone: a loopback address or a Unix socket, without TLS. No
    /// client there is a trusted proxy; may be repeated [default: none]
    #[arg(long, value_name = "ADDR:PORT|unix:PATH", help_heading = LISTENING)]
    pub(crate) listen_local: Vec<Listen>,

    /// Permissions of the Unix sockets, in octal digits: they decide who may connect [default: 660]
    #[arg(long, value_name = "MODE", value_parser = parse_mode, help_heading = LISTENING)]
    pub(crate) unix_mode: Option<u32>,

    /// Speak TLS with the certificate in this PEM file, followed by its chain; reloaded when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = LISTENING)]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The certificate's private key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = LISTENING)]
    pub(crate) tls_key: Option<PathBuf>,

    /// Speak TLS with a new certificate for localhost, held only in memory
    #[arg(long, conflicts_with_all = ["tls_cert", "tls_key"], help_heading = LISTENING)]
    pub(crate) tls_dev: bool,

    /// Write the certificate of --tls-dev to this PEM file at each start, or to standard output for -; `anemone sub --ca
    /// FILE` and `curl --cacert FILE` then trust it
    #[arg(long, value_name = "FILE", requires = "tls_dev", help_heading = LISTENING)]
    pub(crate) tls_dev_cert: Option<PathBuf>,

    /// Serve a demonstration: /topics/wind from an emulated WindSonic, /topics/host, topics scratch-* that programs on this
    /// machine may publish to, the resource /messages, the run services /computations and /propagation, /echo and
    /// /broadcast
    #[arg(long, conflicts_with_all = ["serial", "baud", "polled"], help_heading = SOURCES)]
    pub(crate) demo: bool,

    /// Read the WindSonic on this serial device, such as /dev/ttyUSB0
    #[arg(long, value_name = "DEVICE", help_heading = SOURCES)]
    pub(crate) serial: Option<PathBuf>,

    /// Speed of the serial line, in bits per second, 50 to 4000000 [default: 9600]
    #[arg(long, value_name = "RATE", value_parser = baud, requires = "serial", help_heading = SOURCES)]
    pub(crate) baud: Option<u32>,

    /// The instrument's unit identifier, A to Z [default: Q]
    #[arg(long, value_name = "LETTER", help_heading = SOURCES)]
    pub(crate) unit: Option<UnitId>,

    /// First put the instrument into continuous mode, polar, 4 messages a second
    #[arg(long, requires = "serial", conflicts_with = "polled", help_heading = SOURCES)]
    pub(crate) configure: bool,

    /// Ask the instrument for each message instead of listening, 4 times a second
    #[arg(long, requires = "serial", help_heading = SOURCES)]
    pub(crate) polled: bool,

    /// Allow pages of this origin to read and publish: SCHEME://HOST[:PORT], SCHEME://*.NAME, null for files and sandboxed
    /// frames (anybody's), or * for any; may be repeated
    #[arg(long = "allow-origin", value_name = "ORIGIN", help_heading = LET_IN)]
    pub(crate) allowed_origins: Vec<AllowedOrigin>,

    /// Also answer requests for this host, besides localhost and the addresses listened on: NAME or *.NAME, with :PORT to
    /// allow only that port; may be repeated
    #[arg(long = "allow-host", value_name = "HOST", help_heading = LET_IN)]
    pub(crate) allowed_hosts: Vec<AllowedHost>,

    /// Believe what this proxy says about its clients in Forwarded or X-Forwarded-For, -Host and -Proto: IP or IP/BITS, or
    /// unix for every client on a Unix socket; may be repeated
    #[arg(long = "trusted-proxy", value_name = "ADDR", help_heading = LET_IN)]
    pub(crate) trusted_proxies: Vec<TrustedProxy>,

    /// Also speak the protocol of /ws on this address over bare TCP, each message prefixed by its length; never with TLS
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_address, help_heading = LISTENING)]
    pub(crate) tcp: Option<SocketAddr>,

    /// Publish the load of this machine to /topics/host, as --demo does
    #[arg(long, help_heading = SOURCES)]
    pub(crate) host: bool,

    /// Echo bytes on this address over bare TCP, to measure the least that a transport can cost
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_address, help_heading = LISTENING)]
    pub(crate) tcp_echo: Option<SocketAddr>,

    /// Serve /echo, which sends back each body of a POST and each WebSocket message
    #[arg(long, help_heading = TRYING)]
    pub(crate) echo: bool,

    /// Serve the WebSocket /broadcast, which sends each message to every client connected to it
    #[arg(long, help_heading = TRYING)]
    pub(crate) broadcast: bool,

    /// Store topics in this directory, so that they survive restarts [default: in memory]
    #[arg(long, value_name = "DIR", help_heading = KEPT)]
    pub(crate) data: Option<PathBuf>,

    /// Keep events for this long, such as 30d, or this many bytes of all topics together, such as 10GiB; may be repeated
    /// for both. Rules for topics in the configuration come first [default: 1GiB; in memory at most a quarter of
    /// --memory-max]
    #[arg(long, value_name = "AGE|SIZE", value_delimiter = ',', help_heading = KEPT)]
    pub(crate) keep: Vec<KeepLimit>,

    /// Accept a data directory that was moved or copied as the original, so that positions stay valid. Use it for the first
    /// start after a move, but not after restoring a backup: readers must then learn which events are gone
    #[arg(long, help_heading = KEPT)]
    pub(crate) adopt_data: bool,

    /// Set when events are flushed to the disk. always: before they are acknowledged; interval: every second; never:
    /// when the operating system decides [default: interval]
    #[arg(long, value_enum, value_name = "WHEN", help_heading = KEPT)]
    pub(crate) fsync: Option<Fsync>,

    /// Publish each line of standard input to this topic; JSON stays JSON, other lines become strings
    #[arg(long, value_name = "TOPIC", help_heading = SOURCES)]
    pub(crate) stdin: Option<TopicName>,

    /// Publish each line that the device on this serial line writes to this topic, at BAUD bits per second [default: 9600]
    /// and with FRAMING [default: 8N1], as in attic=/dev/ttyUSB0@115200 or scale=/dev/ttyS0@9600,7E1; may be repeated
    #[arg(long, value_name = "TOPIC=DEVICE[@BAUD[,FRAMING]]", help_heading = SOURCES)]
    pub(crate) serial_lines: Vec<DeviceFrom>,

    /// Run this command line and publish each line of its output to this topic; may be repeated
    #[arg(long, value_name = "TOPIC=COMMAND", help_heading = SOURCES)]
    pub(crate) exec: Vec<TopicFrom>,

    /// Follow this file as it grows and publish each new line to this topic; may be repeated
    #[arg(long, value_name = "TOPIC=PATH", help_heading = SOURCES)]
    pub(crate) file: Vec<TopicFrom>,

    /// Run this command line for each run that a program on this machine starts at /NAME: its standard input is the body of
    /// the request, and each line of its output a partial result; may be repeated
    #[arg(long, value_name = "NAME=COMMAND", help_heading = SERVICES)]
    pub(crate) run: Vec<RunFrom>,

    /// Serve the files of this directory at /, so that your own page replaces the built-in one
    #[arg(long = "static", value_name = "DIR")]
    pub(crate) static_dir: Option<PathBuf>,

    /// Number of threads that serve connections, 1 to 1024 [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = threads, help_heading = LIMITS)]
    pub(crate) threads: Option<NonZero<usize>>,

    /// Most memory held for all clients together, such as 256MiB; above it the server answers requests with 503
    /// [default: half of the memory of the machine or its control group]
    #[arg(long, value_name = "SIZE", value_parser = memory_max, help_heading = LIMITS)]
    pub(crate) memory_max: Option<usize>,

    /// Most connections at once, 1 to 1000000 [default: 10000]
    #[arg(long, value_name = "N", value_parser = connections_max, help_heading = LIMITS)]
    pub(crate) connections_max: Option<usize>,
}

/// A topic and the source of its events.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct TopicFrom {
    pub(crate) topic: TopicName,
    pub(crate) from: String,
}

impl FromStr for TopicFrom {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((topic, from)) if !from.trim().is_empty() => {
                let topic = topic.parse().map_err(|error: TopicNameError| error.to_string())?;
                Ok(Self { topic, from: from.to_owned() })
            }
            _ => {
                Err("expected a topic's name, =, and a command or a path, such as cpu='vmstat 1' or log=app.log"
                    .to_owned())
            }
        }
    }
}

/// A path for runs, and the command line that does their work.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct RunFrom {
    /// The path, which begins with a slash.
    pub(crate) path: String,
    pub(crate) command: String,
}

impl FromStr for RunFrom {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text.split_once('=') {
            Some((name, command)) if !name.is_empty() && !command.trim().is_empty() => {
                let path = format!("/{}", name.strip_prefix('/').unwrap_or(name));
                Ok(Self { path, command: command.to_owned() })
            }
            _ => Err("expected a name, =, and a command, such as primes='python3 primes.py'"),
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Windsonic {
    /// Create this symbolic link to the pseudo-terminal, so that it has a fixed name
    ///
    /// The command removes the link when it ends, unless it is killed (SIGKILL). A link that stays behind leads nowhere and may
    /// later lead to another user's terminal, until the next emulator with the same link replaces it.
    #[arg(long, value_name = "PATH")]
    pub(crate) link: Option<PathBuf>,

    /// Messages a second after power-on: 1, 2 or 4
    #[arg(long, value_name = "HZ", default_value = "1", value_parser = rate)]
    pub(crate) rate: Rate,

    /// Messages that it sends after power-on
    #[arg(long, value_enum, default_value_t = Mode::Polar)]
    pub(crate) mode: Mode,

    /// Unit identifier, A to Z
    #[arg(long, value_name = "LETTER", default_value_t)]
    pub(crate) unit: UnitId,

    /// Seed of the wind and the noise; the same seed repeats the same values
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Send the measurements of this recording, over and over, instead of simulated wind: lines of the instrument, or what
    /// `anemone sub` and `curl` wrote down. Other lines are left out and counted
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,

    /// Probability with which it damages a message on purpose, 0 to 1
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = probability)]
    pub(crate) noise: f64,
}

/// The time at which the disk is flushed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum Fsync {
    Always,
    Interval,
    Never,
}

/// The messages of the emulated instrument (its settings M1 to M5).
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Mode {
    /// Direction and speed, by itself (M2)
    Polar,
    /// Speeds along two axes, by itself (M1)
    Uv,
    /// Direction and speed, when asked (M4)
    PolarPolled,
    /// Speeds along two axes, when asked (M3)
    UvPolled,
    /// NMEA 0183 sentences, by itself (M5)
    Nmea,
}

impl From<Mode> for Format {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Polar => Self::PolarContinuous,
            Mode::Uv => Self::UvContinuous,
            Mode::PolarPolled => Self::PolarPolled,
            Mode::UvPolled => Self::UvPolled,
            Mode::Nmea => Self::Nmea,
        }
    }
}

fn threads(text: &str) -> Result<NonZero<usize>, String> {
    match text.parse::<NonZero<usize>>() {
        Ok(threads) if threads.get() <= THREADS_MAX => Ok(threads),
        _ => Err(format!("expected 1 to {THREADS_MAX} threads")),
    }
}

fn memory_max(text: &str) -> Result<usize, String> {
    let Limit { least, most, .. } = Limits::MEMORY_MAX;
    match crate::config::parse_size(text) {
        Ok(bytes) if (least..=most).contains(&bytes) => {
            usize::try_from(bytes).map_err(|error| error.to_string())
        }
        _ => Err(format!("expected a size of {} to {}, such as 256MiB", Size(least), Size(most))),
    }
}

fn connections_max(text: &str) -> Result<usize, String> {
    let Limit { least, most, .. } = Limits::CONNECTIONS_MAX;
    match text.parse() {
        Ok(number) if (least..=most).contains(&(number as u64)) => Ok(number),
        _ => Err(format!("expected {least} to {most} connections")),
    }
}

fn rate(text: &str) -> Result<Rate, String> {
    text.parse()
        .ok()
        .and_then(Rate::from_hz)
        .ok_or_else(|| "expected a rate of the instrument: 1, 2 or 4 Hz".to_owned())
}

fn probability(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(p) if (0.0..=1.0).contains(&p) => Ok(p),
        _ => Err("expected a probability, 0 to 1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn both_doctors_wait_as_long_for_the_beginning_of_a_stream() {
        let mut command = Args::command();
        let doctor = command.find_subcommand_mut("doctor").unwrap();
        let argument = doctor.get_arguments().find(|one| one.get_id() == "begin_max").unwrap();
        let of_page = format!("{}s", anemone_lab::doctor::begin_max().as_secs());
        assert_eq!(argument.get_default_values(), [&*of_page]);
    }

    /// Returns the arguments of the commands `anemone …` in this line of a document, divided by the shell.
    #[cfg(unix)]
    fn commands(line: &str) -> Vec<Vec<String>> {
        let line = line.split("  #").next().unwrap().split(" 2>").next().unwrap();
        let commands = line.split(" | ").filter(|part| part.starts_with("anemone "));
        let arguments = |command: &str| {
            let script = format!("printf '%s\\n' {command}");
            let said = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            String::from_utf8(said.stdout).unwrap().lines().map(str::to_owned).collect()
        };
        commands.map(arguments).collect()
    }

    #[cfg(unix)]
    #[test]
    fn every_command_of_a_document_is_one() {
        let mut count = 0;
        for document in anemone_testing::documents::all() {
            for block in document.blocks().iter().filter(|block| block.language.is_none()) {
                for arguments in block.code.lines().flat_map(commands) {
                    let said = Args::try_parse_from(&arguments).err();
                    assert!(said.is_none(), "{}: {}", document.path, said.unwrap());
                    count += 1;
                }
            }
        }
        assert!(count >= 50, "{count} commands");
    }

    #[test]
    fn the_help_says_where_a_unix_socket_can_be_named() {
        let mut command = Args::command();
        let serve = command.find_subcommand_mut("serve").unwrap();
        let help = |id: &str| {
            let argument = serve.get_arguments().find(|argument| argument.get_id() == id).unwrap();
            argument.get_help().unwrap().to_string()
        };
        assert_eq!(
            help("listen"),
            "Listen on this address (port 0 picks a free port, 0.0.0.0 is every address of this machine) or on a Unix \
             socket; may be repeated [default: 127.0.0.1:8080]"
        );
        assert_eq!(
            help("unix_mode"),
            "Permissions of the Unix sockets, in octal digits: they decide who may connect [default: 660]"
        );
        assert_eq!(
            help("trusted_proxies"),
            "Believe what this proxy says about its clients in Forwarded or X-Forwarded-For, -Host and -Proto: IP or IP/BITS, \
             or unix for every client on a Unix socket; may be repeated"
        );
    }

    #[test]
    fn bad_values_are_told_what_is_allowed() {
        for (args, part) in [
            ("windsonic --rate 3", "1, 2 or 4 Hz"),
            ("windsonic --noise 1.5", "0 to 1"),
            ("windsonic --unit q7", "A to Z"),
            (
                "serve --allow-origin nonsense",
                "no scheme, write http://nonsense or https://nonsense",
            ),
            ("serve --allow-host http://a", "NAME or *.NAME"),
            ("serve --trusted-proxy a", "IP or IP/BITS"),
            ("serve --demo --serial x", "cannot be used with"),
            ("serve --polled", "--serial"),
            ("sub", "<URL>"),
            ("sub http://a/ --after now", "4zq81x-42"),
            ("sub http://a/ --via smoke", "long-poll"),
            ("sub http://a/ --count 0", ": expected a number of events to wait for, at least 1\n"),
            ("pub http://a/ 1 --type xml", "ndjson"),
            (
                "serve --listen a.example:80",
                ": expected IP:PORT, such as 127.0.0.1:8080, 0.0.0.0:80 or [::1]:8080, or unix:PATH\n",
            ),
            (
                "serve --listen 8081",
                ": a port without an address: expected 127.0.0.1:8081, for this machine only, or 0.0.0.0:8081, for other machines, too\n",
            ),
            (
                "serve --listen :8081",
                ": a port without an address: expected 127.0.0.1:8081, for this machine only, or 0.0.0.0:8081, for other machines, too\n",
            ),
            (
                "serve --tcp 8081",
                ": a port without an address: expected 127.0.0.1:8081, for this machine only, or 0.0.0.0:8081, for other machines, too\n",
            ),
            (
                "serve --tcp a",
                ": expected IP:PORT, such as 127.0.0.1:8080, 0.0.0.0:80 or [::1]:8080\n",
            ),
            ("serve --listen unix:", "the path"),
            ("serve --unix-mode 8", "three octal digits, such as \"660\""),
            ("serve --unix-mode 1777", "three octal digits, such as \"660\""),
            ("serve --threads 0", "1 to 1024"),
            ("serve --threads 1025", "1 to 1024"),
            ("serve --tls-cert a.pem", "--tls-key"),
            ("serve --tls-key a.key", "--tls-cert"),
            ("serve --tls-dev-cert a.pem", "--tls-dev"),
            ("serve --tls-dev --tls-cert a.pem --tls-key a.key", "cannot be used with"),
            ("serve --run primes", "expected a name, =, and a command"),
            ("serve --run =true", "expected a name, =, and a command"),
            ("serve --exec a", "a topic's name, ="),
            ("serve --file a=", "a topic's name, ="),
            ("serve --exec a=\u{a0}", "a topic's name, ="),
            ("serve --exec é=true", "A-Z a-z 0-9"),
            ("serve --stdin é", "A-Z a-z 0-9"),
            ("serve --connections-max 0", "1 to 1000000"),
            ("check --connections-max 1000001", "1 to 1000000"),
            ("serve --fsync often", "always, interval, never"),
            ("completions", "<SHELL>"),
            ("completions tcsh", "bash, zsh, fish"),
            ("serve --serial x --baud 0", "50 to 4000000"),
            ("serve --serial x --baud 49", "50 to 4000000"),
            ("serve --serial x --baud 4000001", "50 to 4000000"),
            ("serve --serial x --baud 4294967295", "50 to 4000000"),
        ] {
            let error = Args::try_parse_from(["anemone"].into_iter().chain(args.split(' ')));
            let error = error.expect_err(args).to_string();
            assert!(error.contains(part), "{args}: {error}");
        }
    }
}
