//! The built binary as a process, and plain HTTP requests to it.

use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{
    Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio,
};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Longest time that a process may run or a reply may take; only a failing test takes this long.
pub const LONG: Duration = Duration::from_secs(600);

/// `anemone` with these arguments, and no settings from the environment of the tests. Cargo gives the path of the program to
/// the integration tests of `anemone-cli`, and to no others.
pub fn command(args: &[&str]) -> Command {
    let program =
        std::env::var_os("CARGO_BIN_EXE_anemone").expect("cargo runs the tests of its package");
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"ANEMONE_") {
            command.env_remove(name);
        }
    }
    command.args(args);
    command
}

/// Kills a process that runs too long, which ends every wait for it. Dropping the watchdog calls it off.
pub struct Watchdog {
    _alive: Sender<()>,
}

impl Watchdog {
    pub fn of(child: &Child) -> Self {
        let pid = Pid::from_child(child);
        let (alive, ended) = mpsc::channel::<()>();
        thread::spawn(move || {
            if ended.recv_timeout(LONG) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Self { _alive: alive }
    }
}

/// A server whose log the test reads. It runs until this is dropped, but no longer than its watchdog allows.
pub struct Logging {
    /// The URL where it listens.
    pub url: String,
    pub log: BufReader<ChildStderr>,
    child: Child,
    _watchdog: Watchdog,
}

impl Logging {
    /// Starts a server, and waits until it listens. The command sets `RUST_LOG`.
    pub fn start(mut command: Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let watchdog = Watchdog::of(&child);
        let log = BufReader::new(child.stderr.take().unwrap());
        let url = listening_url(&mut BufReader::new(child.stdout.as_mut().unwrap()));
        Self { url, log, child, _watchdog: watchdog }
    }

    /// Starts an example of the crate, which logs its address.
    pub fn example(name: &str) -> Self {
        let mut child = Command::new(example(name)).stderr(Stdio::piped()).spawn().unwrap();
        let watchdog = Watchdog::of(&child);
        let mut log = BufReader::new(child.stderr.take().unwrap());
        Self { url: listening_url(&mut log), log, child, _watchdog: watchdog }
    }

    pub fn address(&self) -> SocketAddr {
        let (_, address) = self.url.split_once("://").unwrap();
        address.trim_end_matches('/').parse().unwrap()
    }

    pub fn terminate(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// The next line of its log for which `is_wanted` holds.
    pub fn line(&mut self, wanted: &str, is_wanted: impl Fn(&str) -> bool) -> String {
        let mut passed = String::new();
        loop {
            let mut line = String::new();
            let len = self.log.read_line(&mut line).unwrap();
            assert_ne!(len, 0, "not said: {wanted}\n{passed}");
            if is_wanted(line.trim_end()) {
                return line.trim_end().to_owned();
            }
            passed += &line;
        }
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listening_url(said: &mut impl BufRead) -> String {
    let mut first = String::new();
    said.read_line(&mut first).unwrap();
    first.trim_end().strip_prefix("listening on ").expect(&first).to_owned()
}

/// The program of an example, which cargo builds beside the tests of a whole package, but not with `cargo test --test NAME`.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let build = format!("cargo build --package {package} --examples");
    assert!(
        program.exists(),
        "the test needs the example {name}, which is not built: first run {build}"
    );
    program
}

/// Runs a command with this input, and returns its output and its exit status.
pub fn output(mut command: Command, input: &str) -> Output {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let _watchdog = Watchdog::of(&child);
    // A command that does not read may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// A process of `anemone`. It runs until this is dropped, but no longer than its watchdog allows.
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
    _watchdog: Watchdog,
}

impl Process {
    pub fn start(args: &[&str]) -> Self {
        Self::spawn(command(args))
    }

    pub fn spawn(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let watchdog = Watchdog::of(&child);
        let stdout = Some(BufReader::new(stdout));
        Self { stdin, stdout, _watchdog: watchdog, child }
    }

    /// Writes to its standard input, which stays open.
    pub fn write(&mut self, text: &str) {
        self.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Takes its standard input; dropping that closes it.
    pub fn take_input(&mut self) -> ChildStdin {
        self.stdin.take().unwrap()
    }

    /// Returns the next line of output.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.as_mut().unwrap().read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Closes its output, and waits for the end.
    pub fn hang_up(mut self) -> ExitStatus {
        self.stdout = None;
        self.child.wait().unwrap()
    }

    pub fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `anemone serve` on a free port with these arguments, and its address.
pub fn serve(args: &[&str]) -> (Process, SocketAddr) {
    listening(command(&[SERVE, args].concat()))
}

/// The arguments that start a server on a free port.
pub const SERVE: &[&str] = &["serve", "--listen", "127.0.0.1:0"];

/// A command that serves, and its address.
pub fn listening(command: Command) -> (Process, SocketAddr) {
    let mut server = Process::spawn(command);
    let line = server.line();
    let address = line.strip_prefix("listening on http://").expect(&line).parse().unwrap();
    (server, address)
}

/// Sends a request without a body on a new connection.
pub fn request(address: SocketAddr, head: &str) -> TcpStream {
    try_request(address, head).unwrap()
}

fn try_request(address: SocketAddr, head: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LONG))?;
    write!(stream, "{head}\r\nHost: {address}\r\n\r\n")?;
    Ok(stream)
}

/// Reads up to these bytes, and no further.
pub fn read_until(stream: &mut impl Read, end: &[u8]) {
    let mut seen = Vec::new();
    while !seen.ends_with(end) {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        seen.extend(byte);
    }
}

/// The reply, head and body, to a request with these first lines and this body.
pub fn ask(address: SocketAddr, head: &str, body: &str) -> String {
    try_ask(address, head, body).unwrap()
}

/// As [`ask`]; an error where the server closes the connection without a reply.
pub fn try_ask(address: SocketAddr, head: &str, body: &str) -> io::Result<String> {
    let mut head = format!("{head}\r\nConnection: close");
    if !body.is_empty() {
        head += &format!("\r\nContent-Length: {}", body.len());
    }
    let mut stream = try_request(address, &head)?;
    stream.write_all(body.as_bytes())?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    Ok(reply)
}

/// The reply, head and body, to a GET that succeeds.
pub fn get(address: SocketAddr, path: &str) -> String {
    let reply = ask(address, &format!("GET {path} HTTP/1.1"), "");
    assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
    reply
}

/// Returns the bytes in a field of `/proc/PID/status`; `self` stands for this process.
pub fn status_bytes(pid: impl Display, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_start_matches(':').trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

/// The bytes that this process has in memory, with a server and clients in it.
pub fn resident_bytes() -> u64 {
    status_bytes("self", "VmRSS")
}
