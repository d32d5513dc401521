//! Compiles, finds, starts and stops the measured programs.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _, Write};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use crate::cpu::Cores;
use crate::load::{CalledService, Endpoint, Protocol, Topic};

const FLOOR: &str = include_str!("../../../bench/floor.c");
const XOR: &str = include_str!("../../../bench/xor.c");

/// The longest wait until a program has printed its addresses.
const START_MAX: Duration = Duration::from_secs(30);
/// The longest line of output that may contain an address.
const LINE_BYTES_MAX: u64 = 4 << 10;

#[derive(Clone, Debug)]
pub(crate) struct Program {
    path: PathBuf,
    args: Vec<String>,
    /// The services whose addresses the program prints.
    prints: &'static [Service],
    log: Option<PathBuf>,
}

impl Program {
    /// Returns the bare TCP echo in C. It also has a broadcast.
    pub(crate) fn floor(folder: &Path) -> anyhow::Result<Self> {
        let path = compile(FLOOR, "-O2", &folder.join("bench-floor"))?;
        let prints = &[Service::TcpEcho, Service::TcpBroadcast];
        Ok(Self { path, args: Vec::new(), prints, log: None })
    }

    /// Returns the XOR loop in C. Its arguments are still to be added.
    pub(crate) fn xor(folder: &Path) -> anyhow::Result<Self> {
        let path = compile(XOR, "-O3", &folder.join("bench-xor"))?;
        Ok(Self { path, args: Vec::new(), prints: &[], log: None })
    }

    /// Returns a WebSocket server. It also echoes over bare TCP if its arguments ask for that. Its standard error is
    /// appended to the file `log`.
    pub(crate) fn server(path: PathBuf, args: Vec<String>, log: PathBuf) -> Self {
        let has_tcp = args.iter().any(|arg| arg == "--tcp-echo");
        let prints: &[_] =
            if has_tcp { &[Service::Web, Service::TcpEcho] } else { &[Service::Web] };
        Self { path, args, prints, log: Some(log) }
    }

    pub(crate) fn with(&self, args: &[&str]) -> Self {
        let more = args.iter().map(|&arg| arg.to_owned());
        Self { args: self.args.iter().cloned().chain(more).collect(), ..self.clone() }
    }

    /// Starts the program on the server's core. Waits until it has printed its addresses.
    pub(crate) fn start(&self, cores: Cores) -> anyhow::Result<Server> {
        let mut command = Command::new(&self.path);
        command.args(&self.args);
        // Hostile peers send longer messages than `/echo` accepts by default.
        command.env("ANEMONE_LIMITS__ECHO__MESSAGE_BYTES_MAX", "16MiB");
        if let Some(log) = &self.log {
            let file = File::options().create(true).append(true).open(log);
            command.stderr(file.with_context(|| format!("opening {}", log.display()))?);
        }
        let started = cores.on_the_servers(|| Server::start(command, self.prints));
        started.with_context(|| match &self.log {
            Some(log) => {
                format!("starting {}; {} may say more", self.path.display(), log.display())
            }
            None => format!("starting {}", self.path.display()),
        })
    }

    /// Runs the program on the generator's core until it ends. Returns its output.
    pub(crate) fn output(&self, args: &[String]) -> anyhow::Result<String> {
        let mut command = Command::new(&self.path);
        // Ctrl-C at a terminal ends the measurements after it.
        let output = command.args(&self.args).args(args).process_group(0).output()?;
        ensure!(output.status.success(), "{} failed: {}", self.path.display(), output.status);
        Ok(String::from_utf8(output.stdout)?)
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its folder is no condition: an earlier program, which this one is compared with, is in another one.
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        f.write_str(&name)?;
        self.args.iter().try_for_each(|arg| write!(f, " {arg}"))
    }
}

/// Compiles a C program with the compiler that `CC` names, or with `cc`.
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

/// A service whose address a program prints.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Service {
    Web,
    /// The multiplexed protocol over TCP.
    Tcp,
    TcpEcho,
    TcpBroadcast,
}

/// A running server. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    process: Guarded,
    /// The output of the program. It is kept open, so that the program can print.
    _output: BufReader<ChildStdout>,
    addresses: BTreeMap<Service, SocketAddr>,
}

impl Server {
    /// Starts a program. Waits until it has printed the addresses of these services.
    pub(crate) fn start(command: Command, prints: &[Service]) -> anyhow::Result<Self> {
        Self::start_within(command, prints, START_MAX)
    }

    fn start_within(
        mut command: Command,
        prints: &[Service],
        most: Duration,
    ) -> anyhow::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = Guarded::start(command)?;
        let output = process.child.stdout.take().context("no standard output")?;
        let (sender, addresses) = mpsc::channel();
        let prints = prints.to_vec();
        // It ends with the output, and so with the process.
        thread::spawn(move || sender.send(addresses_of(BufReader::new(output), &prints)));
        let Ok(said) = addresses.recv_timeout(most) else {
            bail!("it did not print its address within {} s", most.as_secs());
        };
        let (output, addresses) = said?;
        Ok(Self { process, _output: output, addresses })
    }

    pub(crate) fn address(&self, service: Service) -> Option<SocketAddr> {
        self.addresses.get(&service).copied()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// Returns the endpoint of the server's echo over `protocol`; `None` if there is none.
    pub(crate) fn endpoint(&self, protocol: Protocol, path: &str) -> Option<Endpoint> {
        self.service(protocol, Service::TcpEcho, path)
    }

    /// Returns the endpoint of the server's broadcast over `protocol`; `None` if there is none.
    pub(crate) fn broadcast(&self, protocol: Protocol, path: &str) -> Option<Endpoint> {
        self.service(protocol, Service::TcpBroadcast, path)
    }

    /// Returns the service at this path, whose replies have this body. Returns `None` if the server has no web address.
    pub(crate) fn called(&self, path: &str, body: &str) -> Option<CalledService> {
        Some(CalledService {
            address: self.address(Service::Web)?,
            path: path.to_owned(),
            body: body.to_owned(),
        })
    }

    pub(crate) fn topic(&self, path: &str) -> Option<Topic> {
        Some(Topic { address: self.address(Service::Web)?, path: path.to_owned() })
    }

    fn service(&self, protocol: Protocol, tcp: Service, path: &str) -> Option<Endpoint> {
        let service = if protocol == Protocol::Tcp { tcp } else { Service::Web };
        Some(Endpoint { address: self.address(service)?, protocol, path: path.to_owned() })
    }
}

/// A process that ends when this is dropped. It also ends with this process, however this process
/// ends.
#[derive(Debug)]
struct Guarded {
    child: Child,
    /// A shell that reads from a pipe. Only this process has the other end. When the pipe ends, the shell ends its
    /// process group.
    guard: Child,
}

impl Guarded {
    fn start(mut command: Command) -> std::io::Result<Self> {
        let guard = Command::new("sh")
            .args(["-c", "trap '' HUP INT QUIT TERM; read -r _; kill -KILL 0"])
            // Ctrl-C at a terminal is for this program, which still measures for a moment.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let group = i32::try_from(guard.id()).map_err(std::io::Error::other)?;
        let child = command.process_group(group).spawn();
        // Without its pipe the guard ends by itself.
        Ok(Self { child: child?, guard })
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        for process in [&mut self.child, &mut self.guard] {
            // It may have ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Reads the output of a program until it has printed the addresses of these services.
fn addresses_of(
    mut output: BufReader<ChildStdout>,
    prints: &[Service],
) -> anyhow::Result<(BufReader<ChildStdout>, BTreeMap<Service, SocketAddr>)> {
    let mut addresses = BTreeMap::new();
    while prints.iter().any(|service| !addresses.contains_key(service)) {
        let mut line = String::new();
        if output.by_ref().take(LINE_BYTES_MAX).read_line(&mut line)? == 0 {
            bail!("it ended, or closed its output, before it printed its address");
        }
        addresses.extend(announced(line.trim()));
    }
    Ok((output, addresses))
}

/// Parses `listening on http://ADDR:PORT` (or `https://`, `ws://`), `tcp on ADDR:PORT`, `tcp echo on ADDR:PORT` and `tcp broadcast on
/// ADDR:PORT`.
fn announced(line: &str) -> Option<(Service, SocketAddr)> {
    let begins = [
        ("listening on http://", Service::Web),
        ("listening on https://", Service::Web),
        ("listening on ws://", Service::Web),
        ("tcp on ", Service::Tcp),
        ("tcp echo on ", Service::TcpEcho),
        ("tcp broadcast on ", Service::TcpBroadcast),
    ];
    begins.into_iter().find_map(|(begin, service)| {
        let address = line.strip_prefix(begin)?.trim_end_matches('/');
        Some((service, address.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_ends_with_the_one_that_guards_it() {
        let mut sleep = Command::new("sleep");
        sleep.arg("600");
        let mut guarded = Guarded::start(sleep).unwrap();
        // As the kernel does when this process is killed.
        drop(guarded.guard.stdin.take());
        assert!(!guarded.child.wait().unwrap().success());
    }

    #[test]
    fn a_program_that_does_not_say_where_it_listens_is_not_waited_for_without_an_end() {
        let mut sleep = Command::new("sleep");
        sleep.arg("600");
        let error = Server::start_within(sleep, &[Service::Web], Duration::ZERO).unwrap_err();
        assert_eq!(error.to_string(), "it did not print its address within 0 s");
        let mut echo = Command::new("echo");
        echo.arg("hello");
        let error = Server::start(echo, &[Service::Web]).unwrap_err();
        assert!(error.to_string().starts_with("it ended, or closed its output"), "{error}");
    }

    #[test]
    fn the_lines_of_a_server_are_understood() {
        let web = |port| Some((Service::Web, SocketAddr::from(([127, 0, 0, 1], port))));
        assert_eq!(announced("listening on http://127.0.0.1:8080"), web(8080));
        assert_eq!(announced("listening on https://127.0.0.1:8443"), web(8443));
        assert_eq!(announced("listening on ws://127.0.0.1:81/"), web(81));
        let tcp = |service, port| Some((service, SocketAddr::from(([127, 0, 0, 1], port))));
        assert_eq!(announced("tcp on 127.0.0.1:81"), tcp(Service::Tcp, 81));
        assert_eq!(announced("tcp echo on 127.0.0.1:82"), tcp(Service::TcpEcho, 82));
        assert_eq!(announced("tcp broadcast on 127.0.0.1:83"), tcp(Service::TcpBroadcast, 83));
        assert_eq!(announced("listening on the wind"), None);
        assert_eq!(announced("ready"), None);
    }
}
