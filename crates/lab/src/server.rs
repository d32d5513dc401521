//! The programs that are measured: how to compile, start, find and stop them.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, bail, ensure};

use crate::cpu::Cores;
use crate::load::{CalledService, Endpoint, Protocol, Topic};

const FLOOR: &str = include_str!("../../../bench/floor.c");
const XOR: &str = include_str!("../../../bench/xor.c");

/// A program with its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    path: PathBuf,
    args: Vec<String>,
    announced: Addresses,
    /// The file for its log.
    log: Option<PathBuf>,
}

impl Program {
    /// Returns the bare TCP echo in C, which also has a broadcast.
    pub(crate) fn floor(folder: &Path) -> anyhow::Result<Self> {
        let path = compile(FLOOR, "-O2", &folder.join("bench-floor"))?;
        let announced = Addresses { web: false, tcp: true, tcp_broadcast: true };
        Ok(Self { path, args: Vec::new(), announced, log: None })
    }

    /// Returns the XOR loop in C, without its arguments.
    pub(crate) fn xor(folder: &Path) -> anyhow::Result<Self> {
        let path = compile(XOR, "-O3", &folder.join("bench-xor"))?;
        Ok(Self { path, args: Vec::new(), announced: Addresses::default(), log: None })
    }

    /// Returns a WebSocket server, which also echoes over bare TCP if its arguments say so. Its standard error is
    /// appended to the file `log`.
    pub(crate) fn server(path: PathBuf, args: Vec<String>, log: PathBuf) -> Self {
        let tcp = args.iter().any(|arg| arg == "--tcp-echo");
        let announced = Addresses { web: true, tcp, tcp_broadcast: false };
        Self { path, args, announced, log: Some(log) }
    }

    /// Adds arguments.
    pub(crate) fn with(&self, args: &[&str]) -> Self {
        let more = args.iter().map(|&arg| arg.to_owned());
        Self { args: self.args.iter().cloned().chain(more).collect(), ..self.clone() }
    }

    /// Starts it on the server's core and waits until it has printed its addresses.
    pub(crate) fn start(&self, cores: Cores) -> anyhow::Result<Server> {
        let mut command = Command::new(&self.path);
        command.args(&self.args).stdin(Stdio::null()).stdout(Stdio::piped());
        // Hostile peers send longer messages than `/echo` accepts by default.
        command.env("ANEMONE_LIMITS__ECHO__MESSAGE_BYTES_MAX", "16MiB");
        if let Some(log) = &self.log {
            let file = File::options().create(true).append(true).open(log);
            command.stderr(file.with_context(|| format!("opening {}", log.display()))?);
        }
        let child = cores.on_the_servers(|| {
            command.spawn().with_context(|| format!("starting {}", self.path.display()))
        })?;
        Server::new(child, self.announced).with_context(|| match &self.log {
            Some(log) => {
                format!("starting {}; {} may say more", self.path.display(), log.display())
            }
            None => format!("starting {}", self.path.display()),
        })
    }

    /// Runs it to its end on the generator's core, and returns its output.
    pub(crate) fn output(&self, args: &[String]) -> anyhow::Result<String> {
        let output = Command::new(&self.path).args(&self.args).args(args).output()?;
        ensure!(output.status.success(), "{} failed: {}", self.path.display(), output.status);
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// Compiles C with the compiler named by `CC`, or `cc`.
fn compile(source: &str, level: &str, output: &Path) -> anyhow::Result<PathBuf> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut child = Command::new(&compiler)
        .args([level, "-x", "c", "-", "-o"])
        .arg(output)
        .stdin(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting the C compiler {compiler}"))?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(source.as_bytes())?;
    }
    ensure!(child.wait()?.success(), "{compiler} does not compile {}", output.display());
    Ok(output.to_owned())
}

/// The addresses that a program will print.
#[derive(Clone, Copy, Debug, Default)]
struct Addresses {
    web: bool,
    tcp: bool,
    tcp_broadcast: bool,
}

/// The services whose address a program prints.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Service {
    Web,
    TcpEcho,
    TcpBroadcast,
}

/// A running server, which is killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    /// Kept open, so that the program can print.
    output: BufReader<ChildStdout>,
    web: Option<SocketAddr>,
    tcp: Option<SocketAddr>,
    tcp_broadcast: Option<SocketAddr>,
}

impl Server {
    fn new(mut child: Child, expected: Addresses) -> anyhow::Result<Self> {
        let output = child.stdout.take().context("no standard output")?;
        let (web, tcp, tcp_broadcast) = (None, None, None);
        let mut server = Self { child, output: BufReader::new(output), web, tcp, tcp_broadcast };
        while (expected.web && server.web.is_none())
            || (expected.tcp && server.tcp.is_none())
            || (expected.tcp_broadcast && server.tcp_broadcast.is_none())
        {
            let mut line = String::new();
            if server.output.read_line(&mut line)? == 0 {
                bail!("it ended, or closed its output, before it said where it listens");
            }
            match announced(line.trim()) {
                Some((Service::Web, address)) => server.web = Some(address),
                Some((Service::TcpEcho, address)) => server.tcp = Some(address),
                Some((Service::TcpBroadcast, address)) => server.tcp_broadcast = Some(address),
                None => {}
            }
        }
        Ok(server)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the endpoint of its echo over `protocol`, if it has one.
    pub(crate) fn endpoint(&self, protocol: Protocol, path: &str) -> Option<Endpoint> {
        self.service(protocol, self.tcp, path)
    }

    /// Returns the endpoint of its broadcast over `protocol`, if it has one.
    pub(crate) fn broadcast(&self, protocol: Protocol, path: &str) -> Option<Endpoint> {
        self.service(protocol, self.tcp_broadcast, path)
    }

    /// Returns a service at this path, which replies with this body, if it has any.
    pub(crate) fn called(&self, path: &str, body: &str) -> Option<CalledService> {
        Some(CalledService { address: self.web?, path: path.to_owned(), body: body.to_owned() })
    }

    /// Returns a topic of the server, if it has any.
    pub(crate) fn topic(&self, path: &str) -> Option<Topic> {
        Some(Topic { address: self.web?, path: path.to_owned() })
    }

    fn service(&self, protocol: Protocol, tcp: Option<SocketAddr>, path: &str) -> Option<Endpoint> {
        let address = match protocol {
            Protocol::Tcp => tcp,
            Protocol::WebSocket => self.web,
        }?;
        Some(Endpoint { address, protocol, path: path.to_owned() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Parses `listening on http://ADDR:PORT` (or `https://`, `ws://`), `tcp echo on ADDR:PORT` and `tcp broadcast on
/// ADDR:PORT`.
fn announced(line: &str) -> Option<(Service, SocketAddr)> {
    if let Some(address) = line.strip_prefix("tcp echo on ") {
        return Some((Service::TcpEcho, address.parse().ok()?));
    }
    if let Some(address) = line.strip_prefix("tcp broadcast on ") {
        return Some((Service::TcpBroadcast, address.parse().ok()?));
    }
    let url = line.strip_prefix("listening on ")?;
    let schemes = ["http://", "https://", "ws://"];
    let address = schemes.iter().find_map(|scheme| url.strip_prefix(scheme))?;
    Some((Service::Web, address.trim_end_matches('/').parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_server_are_understood() {
        let web = |port| Some((Service::Web, SocketAddr::from(([127, 0, 0, 1], port))));
        assert_eq!(announced("listening on http://127.0.0.1:8080"), web(8080));
        assert_eq!(announced("listening on https://127.0.0.1:8443"), web(8443));
        assert_eq!(announced("listening on ws://127.0.0.1:81/"), web(81));
        let tcp = |service, port| Some((service, SocketAddr::from(([127, 0, 0, 1], port))));
        assert_eq!(announced("tcp echo on 127.0.0.1:82"), tcp(Service::TcpEcho, 82));
        assert_eq!(announced("tcp broadcast on 127.0.0.1:83"), tcp(Service::TcpBroadcast, 83));
        assert_eq!(announced("listening on the wind"), None);
        assert_eq!(announced("ready"), None);
    }
}
