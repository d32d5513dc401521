//! The built binary as a process, and plain HTTP to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// No wait here takes this long, on any machine.
const LONG: Duration = Duration::from_secs(60);

/// `anemone`, until dropped. It is killed when it takes too long, which ends every wait for it.
pub(crate) struct Process {
    child: Child,
    stdout: BufReader<ChildStdout>,
    _alive: Sender<()>,
}

impl Process {
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anemone"));
        let mut child = command.args(args).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let pid = Pid::from_child(&child);
        let (alive, ended) = mpsc::channel::<()>();
        thread::spawn(move || {
            if ended.recv_timeout(LONG) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Self { child, stdout, _alive: alive }
    }

    /// The next line it says.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `anemone serve` on a free port, with these arguments, and where it listens.
pub(crate) fn serve(args: &[&str]) -> (Process, SocketAddr) {
    let mut server = Process::start(&[&["serve", "--listen", "127.0.0.1:0"], args].concat());
    let line = server.line();
    let address = line.strip_prefix("listening on http://").expect(&line).parse().unwrap();
    (server, address)
}

/// A connection on which a request was sent.
pub(crate) fn request(address: SocketAddr, head: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    write!(stream, "{head}\r\nHost: {address}\r\n\r\n").unwrap();
    stream
}

/// The reply to a GET, head and body.
pub(crate) fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = request(address, &format!("GET {path} HTTP/1.1\r\nConnection: close"));
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
    reply
}

/// A directory of its own for a test, removed at its end.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("anemone-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
