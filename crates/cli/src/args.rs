//! The command line.

mod client;
mod tips;

use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::str::FromStr;

use anemone_hub::{TopicName, TopicNameError};
use anemone_server::{AllowedHost, AllowedOrigin, TrustedProxy};
use anemone_sources::windsonic::UnitId;
use anemone_sources::windsonic::emulate::{Format, Rate};
use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use self::client::{Behind, Content, Field, Listing, Output, Pub, Reach, Sub, Topics};
pub(crate) use self::tips::with_tip;
use crate::config::{Listen, parse_address, parse_mode};
use crate::exit;
use crate::log::{LogForm, LogRequests};

/// Puts any data stream on the web over every web transport, from one handler, at one URL.
#[derive(Debug, Parser)]
#[command(name = "anemone", version, arg_required_else_help = true, after_long_help = exit::table())]
pub(crate) struct Args {
    /// Log what happens on each connection, too
    #[arg(long, short, global = true, help_heading = LOG)]
    pub(crate) verbose: bool,
    /// How to write the log
    #[arg(long, global = true, value_name = "FORM", value_enum, help_heading = LOG)]
    pub(crate) log: Option<LogForm>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve topics: of instruments, programs, files and this machine, and those that clients publish to
    Serve(Box<Serve>),
    /// Say what `serve` with the same flags would do, or all that is wrong with its configuration
    Check(Box<Serve>),
    /// Read a topic: print a line for each event, and go on where it was when a connection is lost
    ///
    /// On a terminal, control characters and those that reverse text are shown as JSON escapes, as \u001b; to a pipe or
    /// a file events go exactly as they are. It ends when nobody reads its output any more.
    #[command(after_long_help = exit::table())]
    Sub(Sub),
    /// Publish to a topic, each event once, and print its position
    ///
    /// The server keeps an event once its position is printed. From standard input the lines before a bad one are
    /// published, and the error names that line by its number.
    #[command(after_long_help = exit::table())]
    Pub(Pub),
    /// List the topics of a server, a line for each: its URL, how many events it keeps, and their bytes
    #[command(after_long_help = exit::table())]
    Topics(Topics),
    /// Emulate a Gill WindSonic anemometer on a pseudo-terminal
    Windsonic(Windsonic),
    /// Print what a shell needs to complete commands, flags and their values
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
    /// Write the manual pages into a directory, which is made if it is not there
    Man {
        /// Where to
        directory: PathBuf,
    },
}

/// A shell that completes what is typed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

// Headings of help texts.
const LOG: &str = "Log";
const LISTENING: &str = "Where it listens";
const LET_IN: &str = "Who is let in";
const SOURCES: &str = "Where events come from";
const KEPT: &str = "Where events are kept";
const LIMITS: &str = "Limits";
const TRYING: &str = "For trying things out";

/// What each of these says replaces what the configuration file and the environment say; `config` knows
/// the defaults.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Serve {
    /// Read this configuration file, or the one that ANEMONE_CONFIG names; flags count before it. anemone.toml in the
    /// sources has every key
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Log each request once it is over: method, path, status, transport, client, bytes, time and position; of polls and
    /// refusals that are alike only one a minute [default: off; with the flag alone: sampled]
    #[arg(
        long, value_name = "WHICH", value_enum, num_args = 0..=1, require_equals = true,
        default_missing_value = "sampled", help_heading = LOG
    )]
    pub(crate) log_requests: Option<LogRequests>,

    /// Listen on this address (port 0 takes a free one, 0.0.0.0 is every address of this machine), or on a Unix socket;
    /// may be given once for each [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT|unix:PATH", help_heading = LISTENING)]
    pub(crate) listen: Vec<Listen>,

    /// Who may connect to the Unix socket: its permissions, in octal digits [default: 660]
    #[arg(long, value_name = "MODE", value_parser = parse_mode, help_heading = LISTENING)]
    pub(crate) unix_mode: Option<u32>,

    /// Speak TLS with the certificate in this PEM file, its chain after it; read anew when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = LISTENING)]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The certificate's private key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = LISTENING)]
    pub(crate) tls_key: Option<PathBuf>,

    /// Speak TLS with a new certificate for localhost, which is kept in memory
    #[arg(long, conflicts_with_all = ["tls_cert", "tls_key"], help_heading = LISTENING)]
    pub(crate) tls_dev: bool,

    /// Write the certificate of --tls-dev, PEM, to this file at each start, or to standard output for -: `anemone sub --ca
    /// FILE` and `curl --cacert FILE` trust it
    #[arg(long, value_name = "FILE", requires = "tls_dev", help_heading = LISTENING)]
    pub(crate) tls_dev_cert: Option<PathBuf>,

    /// Show what there is: /topics/wind of an emulated WindSonic, /topics/host, topics scratch-* that programs on this
    /// machine may publish to, /echo and /broadcast
    #[arg(long, conflicts_with_all = ["serial", "baud", "polled"], help_heading = SOURCES)]
    pub(crate) demo: bool,

    /// Read the WindSonic on this serial device, as /dev/ttyUSB0
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

    /// Let pages of this origin read and publish, too: SCHEME://HOST[:PORT], or * for any; may be repeated
    #[arg(long = "allow-origin", value_name = "ORIGIN", help_heading = LET_IN)]
    pub(crate) allowed_origins: Vec<AllowedOrigin>,

    /// Answer to this name, too, beside localhost and the addresses listened on: NAME or *.NAME, or with :PORT for that
    /// port alone; may be repeated
    #[arg(long = "allow-host", value_name = "HOST", help_heading = LET_IN)]
    pub(crate) allowed_hosts: Vec<AllowedHost>,

    /// Believe what this proxy says of its clients in Forwarded or X-Forwarded-For, -Host and -Proto: IP or IP/BITS, or
    /// unix for all that come by the Unix socket; may be repeated
    #[arg(long = "trusted-proxy", value_name = "ADDR", help_heading = LET_IN)]
    pub(crate) trusted_proxies: Vec<TrustedProxy>,

    /// Speak the protocol of /ws on this address over bare TCP, too, each message after its length; never with TLS
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_address, help_heading = LISTENING)]
    pub(crate) tcp: Option<SocketAddr>,

    /// Publish the load of this machine to /topics/host, as --demo does
    #[arg(long, help_heading = SOURCES)]
    pub(crate) host: bool,

    /// Send bytes back as they come on this address, over bare TCP: the least that a transport can cost
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_address, help_heading = LISTENING)]
    pub(crate) tcp_echo: Option<SocketAddr>,

    /// Send what comes to /echo back, by POST and WebSocket
    #[arg(long, help_heading = TRYING)]
    pub(crate) echo: bool,

    /// Send each message on the WebSocket /broadcast to everyone who is connected to it
    #[arg(long, help_heading = TRYING)]
    pub(crate) broadcast: bool,

    /// Keep topics in this directory, across restarts [default: in memory]
    #[arg(long, value_name = "DIR", help_heading = KEPT)]
    pub(crate) data: Option<PathBuf>,

    /// Take the data directory, which was moved or copied, for the one that it was: positions stay good. For the first
    /// start after a move; not after a backup was restored, for then readers have to be told what is gone
    #[arg(long, help_heading = KEPT)]
    pub(crate) adopt_data: bool,

    /// When events are flushed to the disk. always: before they are acknowledged; interval: every second; never: when the
    /// system sees fit [default: interval]
    #[arg(long, value_enum, value_name = "WHEN", help_heading = KEPT)]
    pub(crate) fsync: Option<Fsync>,

    /// Publish the lines of standard input to this topic; JSON stays JSON, other lines become strings
    #[arg(long, value_name = "TOPIC", help_heading = SOURCES)]
    pub(crate) stdin: Option<TopicName>,

    /// Run this command line, and publish the lines of its output to this topic; may be repeated
    #[arg(long, value_name = "TOPIC=COMMAND", help_heading = SOURCES)]
    pub(crate) exec: Vec<TopicFrom>,

    /// Follow this file as it grows, and publish its lines to this topic; may be repeated
    #[arg(long, value_name = "TOPIC=PATH", help_heading = SOURCES)]
    pub(crate) file: Vec<TopicFrom>,

    /// Serve the files of this directory at /, in the place of the built-in page: a page of your own, beside the topics
    #[arg(long = "static", value_name = "DIR")]
    pub(crate) static_dir: Option<PathBuf>,

    /// Threads that serve connections, 1 to 1024 [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = threads, help_heading = LIMITS)]
    pub(crate) threads: Option<NonZero<usize>>,

    /// Most memory held for clients, all together, as 256MiB; above it requests are answered with 503
    /// [default: half of what the machine or its control group has]
    #[arg(long, value_name = "SIZE", value_parser = memory_max, help_heading = LIMITS)]
    pub(crate) memory_max: Option<usize>,

    /// Most connections at once, 1 to 1000000 [default: 10000]
    #[arg(long, value_name = "N", value_parser = connections_max, help_heading = LIMITS)]
    pub(crate) connections_max: Option<usize>,
}

/// A topic and where its events come from.
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
                Err("expected a topic's name, =, and a command or a path, as cpu='vmstat 1' or log=app.log"
                    .to_owned())
            }
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Windsonic {
    /// Make this symbolic link to the pseudo-terminal, as a name that stays the same
    ///
    /// The link is removed at the end, but not when this process is killed (SIGKILL). Then it leads nowhere, and may later
    /// lead to somebody's terminal, until the next emulator with the same link replaces it.
    #[arg(long, value_name = "PATH")]
    pub(crate) link: Option<PathBuf>,

    /// Messages a second when switched on: 1, 2 or 4
    #[arg(long, value_name = "HZ", default_value = "1", value_parser = rate)]
    pub(crate) rate: Rate,

    /// What it sends when switched on
    #[arg(long, value_enum, default_value_t = Mode::Polar)]
    pub(crate) mode: Mode,

    /// Unit identifier, A to Z
    #[arg(long, value_name = "LETTER", default_value_t)]
    pub(crate) unit: UnitId,

    /// What the wind and the noise are drawn from; the same seed gives the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Send the lines of this recording, over and over, instead of a model's wind
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,

    /// Damage a message on purpose with this probability, 0 to 1
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = probability)]
    pub(crate) noise: f64,
}

/// When the disk is flushed.
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

fn baud(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(baud) if (50..=4_000_000).contains(&baud) => Ok(baud),
        _ => Err("a serial line has 50 to 4000000 bits per second".to_owned()),
    }
}

fn threads(text: &str) -> Result<NonZero<usize>, String> {
    match text.parse::<NonZero<usize>>() {
        Ok(threads) if threads.get() <= 1024 => Ok(threads),
        _ => Err("1 to 1024 threads are possible".to_owned()),
    }
}

fn memory_max(text: &str) -> Result<usize, String> {
    match crate::config::parse_size(text) {
        Ok(bytes) if bytes >= 1 << 20 => Ok(usize::try_from(bytes).unwrap_or(usize::MAX)),
        _ => Err("a size from 1MiB, as 256MiB".to_owned()),
    }
}

fn connections_max(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (1..=1_000_000).contains(&number) => Ok(number),
        _ => Err("1 to 1000000 connections are possible".to_owned()),
    }
}

fn rate(text: &str) -> Result<Rate, String> {
    text.parse()
        .ok()
        .and_then(Rate::from_hz)
        .ok_or_else(|| "the instrument has 1, 2 and 4 Hz".to_owned())
}

fn probability(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(p) if (0.0..=1.0).contains(&p) => Ok(p),
        _ => Err("a probability is a number from 0 to 1".to_owned()),
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
    fn the_help_says_where_a_unix_socket_can_be_named() {
        let mut command = Args::command();
        let serve = command.find_subcommand_mut("serve").unwrap();
        let help = |id: &str| {
            let argument = serve.get_arguments().find(|argument| argument.get_id() == id).unwrap();
            argument.get_help().unwrap().to_string()
        };
        assert_eq!(
            help("listen"),
            "Listen on this address (port 0 takes a free one, 0.0.0.0 is every address of this machine), or on a Unix \
             socket; may be given once for each [default: 127.0.0.1:8080]"
        );
        assert_eq!(
            help("unix_mode"),
            "Who may connect to the Unix socket: its permissions, in octal digits [default: 660]"
        );
        assert_eq!(
            help("trusted_proxies"),
            "Believe what this proxy says of its clients in Forwarded or X-Forwarded-For, -Host and -Proto: IP or IP/BITS, \
             or unix for all that come by the Unix socket; may be repeated"
        );
    }

    #[test]
    fn bad_values_are_told_what_is_allowed() {
        for (args, part) in [
            ("windsonic --rate 3", "1, 2 and 4 Hz"),
            ("windsonic --noise 1.5", "0 to 1"),
            ("windsonic --unit q7", "A to Z"),
            ("serve --allow-origin nonsense", "SCHEME://HOST"),
            ("serve --allow-host http://a", "NAME or *.NAME"),
            ("serve --trusted-proxy a", "IP or IP/BITS"),
            ("serve --demo --serial x", "cannot be used with"),
            ("serve --polled", "--serial"),
            ("sub", "<URL>"),
            ("sub http://a/ --after now", "4zq81x-42"),
            ("sub http://a/ --via smoke", "long-poll"),
            ("sub http://a/ --count 0", ": expected how many events to wait for, at least 1\n"),
            ("pub http://a/ 1 --type xml", "ndjson"),
            (
                "serve --listen a.example:80",
                ": expected IP:PORT, as 127.0.0.1:8080, 0.0.0.0:80 or [::1]:8080, or unix:PATH\n",
            ),
            (
                "serve --listen 8081",
                ": a port alone: expected 127.0.0.1:8081, for this machine alone, or 0.0.0.0:8081, for others, too\n",
            ),
            (
                "serve --listen :8081",
                ": a port alone: expected 127.0.0.1:8081, for this machine alone, or 0.0.0.0:8081, for others, too\n",
            ),
            (
                "serve --tcp 8081",
                ": a port alone: expected 127.0.0.1:8081, for this machine alone, or 0.0.0.0:8081, for others, too\n",
            ),
            ("serve --tcp a", ": expected IP:PORT, as 127.0.0.1:8080, 0.0.0.0:80 or [::1]:8080\n"),
            ("serve --listen unix:", "the path"),
            ("serve --unix-mode 8", "three octal digits, as \"660\""),
            ("serve --unix-mode 1777", "three octal digits, as \"660\""),
            ("serve --threads 0", "1 to 1024"),
            ("serve --threads 1025", "1 to 1024"),
            ("serve --tls-cert a.pem", "--tls-key"),
            ("serve --tls-key a.key", "--tls-cert"),
            ("serve --tls-dev-cert a.pem", "--tls-dev"),
            ("serve --tls-dev --tls-cert a.pem --tls-key a.key", "cannot be used with"),
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
