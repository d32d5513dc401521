//! The server under test: the real binary, to be killed.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::disk::Flushes;
use crate::world::Addresses;

/// `anemone serve`, killed when dropped.
pub(crate) struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Server {
    pub(crate) fn spawn(directory: &Path, fsync: &str, flushes: &Flushes) -> Self {
        let log: File = OpenOptions::new()
            .create(true)
            .append(true)
            .open(directory.join("server.log"))
            .unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_anemone"))
            .args(["serve", "--demo", "--listen", "127.0.0.1:0", "--tcp", "127.0.0.1:0"])
            .args(["--fsync", fsync, "--data"])
            .arg(directory.join("data"))
            .env("LD_PRELOAD", &flushes.library)
            .env("FLUSHES", &flushes.directory)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout }
    }

    pub(crate) fn addresses(&mut self) -> Addresses {
        let http = self.announced("listening on http://");
        let tcp = self.announced("tcp on ");
        Addresses { http, tcp }
    }

    fn announced(&mut self, what: &str) -> std::net::SocketAddr {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix(what).and_then(|rest| rest.parse().ok());
        address.unwrap_or_else(|| panic!("it says {line:?}; see its log"))
    }

    /// `kill -9`.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
