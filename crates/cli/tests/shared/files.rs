//! The binary with a directory of files: the output of `serve` and `check`, and the log.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::symlink;

use anemone_testing::process::{Logging, command, output};
use tempfile::{TempDir, tempdir};

struct Serving(Logging);

impl Serving {
    fn start(directory: &TempDir, args: &[&str]) -> Self {
        let here = ["serve", "--threads", "1", "--listen", "127.0.0.1:0"];
        let mut command = command(&[&here, args].concat());
        command.env_remove("RUST_LOG").current_dir(directory.path());
        Self(Logging::start(command))
    }

    /// Reads the log up to a line that ends so.
    fn says(&mut self, words: &str) {
        self.0.line(words, |line| line.ends_with(words));
    }

    /// The connection, once the reply's head has come.
    fn begin(&self, path: &str) -> (String, BufReader<TcpStream>) {
        let address: SocketAddr = self.0.url.strip_prefix("http://").unwrap().parse().unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(stream.read_line(&mut head).unwrap(), 0, "{head}");
        }
        (head, stream)
    }

    fn get(&self, path: &str) -> String {
        let (mut reply, mut stream) = self.begin(path);
        // One that is cut off may be reset.
        let _ = stream.read_to_string(&mut reply);
        reply
    }
}

/// A directory with `www`, which has a page.
fn site() -> TempDir {
    let directory = tempdir().unwrap();
    fs::create_dir(directory.path().join("www")).unwrap();
    fs::write(directory.path().join("www/index.html"), "mine").unwrap();
    directory
}

#[test]
fn serve_and_check_say_what_is_served_where() {
    let directory = site();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("docs")).unwrap();
    fs::create_dir(at("www/topics")).unwrap();
    fs::create_dir(at("www/docs")).unwrap();
    let config = "[[static]]\npath = \"/docs\"\ndir = \"docs\"\ncache_control = \"max-age=60\"\n";
    fs::write(at("my.toml"), config).unwrap();
    let mut server = Serving::start(&directory, &["--static", "www", "--config", "my.toml"]);
    server.says(
        "WARN my.toml:3:7: static: there is no index.html in docs, so /docs/ is answered 404",
    );
    server.says("WARN --static: static: www/topics is never served: /topics is the server's own");
    server.says("WARN --static: static: www/docs is never served: /docs/ serves the files of docs");
    server.says(&format!("INFO static   {}/docs/: files of docs", server.0.url));
    server.says(&format!("INFO static   {}/: files of www", server.0.url));
    assert!(server.get("/").ends_with("\r\n\r\nmine"));
    fs::write(at("docs/a"), "docs").unwrap();
    let reply = server.get("/docs/a");
    assert!(
        reply.ends_with("\r\n\r\ndocs") && reply.contains("cache-control: max-age=60"),
        "{reply}"
    );

    let mut check = command(&["check", "--static", "www", "--config", "my.toml"]);
    check.current_dir(directory.path());
    let checked = output(check, "");
    let said = String::from_utf8(checked.stdout).unwrap();
    assert!(checked.status.success(), "{said}");
    for line in [
        "static   /docs/: files of docs\n",
        "static   /: files of www\n",
        "warning: --static: static: www/topics is never served: /topics is the server's own\n",
    ] {
        assert!(said.contains(line), "{said}");
    }
}

#[test]
fn a_directory_that_cannot_be_served_is_told_before_it_starts() {
    let directory = site();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("www/my.toml"), "[[static]]\ndir = \".\"\n").unwrap();
    fs::write(at("my.toml"), "[[static]]\ndir = \"nowhere\"\n").unwrap();
    for (args, status, words) in [
        (&["--static", "nowhere"][..], 2, "--static: the directory nowhere does not exist"),
        (
            &["--config", "my.toml"],
            1,
            "my.toml:2:7: static.dir: the directory nowhere does not exist",
        ),
        (
            &["--config", "my.tml"],
            2,
            "--config: cannot read my.tml: No such file or directory (os error 2)",
        ),
        (&["--static", "www/index.html"], 2, "--static: www/index.html is not a directory"),
        (
            &["--static", "www", "--data", "www/data"],
            2,
            "--static: www contains the data directory, www/data, and would serve it to everyone: move one of \
             them elsewhere",
        ),
        (
            &["--config", "www/my.toml"],
            1,
            "www/my.toml:2:7: static.dir: www/. contains the configuration, www/my.toml, and would serve it to \
             everyone: move one of them elsewhere",
        ),
    ] {
        for name in ["check", "serve"] {
            let mut run = command(&[&[name, "--listen", "127.0.0.1:0"], args].concat());
            run.current_dir(directory.path());
            let ended = output(run, "");
            let said = String::from_utf8(ended.stderr).unwrap();
            assert_eq!(ended.status.code(), Some(status), "{name} {args:?}: {said}");
            assert!(said.lines().any(|line| line.ends_with(words)), "{name} {args:?}: {said}");
        }
        assert!(!at("www/data").exists());
    }
}

#[test]
fn the_log_tells_why_a_file_is_not_served() {
    const BIG: usize = 32 << 20;
    let directory = site();
    let at = |name: &str| directory.path().join(name);
    symlink("/etc/passwd", at("www/out")).unwrap();
    fs::write(at("www/big"), vec![b'1'; BIG]).unwrap();
    let mut server = Serving::start(&directory, &["--static", "www"]);
    for _ in 0..2 {
        assert!(server.get("/out").contains("there is nothing at /out"));
    }
    server.says(
        "WARN www/out is not served: a symbolic link on its path leads out of the directory or is absolute, or something is \
         mounted on its path",
    );
    let (head, mut stream) = server.begin("/big");
    assert!(head.contains(&format!("content-length: {BIG}\r\n")), "{head}");
    fs::write(at("www/big"), "2").unwrap();
    let mut came = Vec::new();
    let _ = stream.read_to_end(&mut came);
    assert!(came.len() < BIG && came.iter().all(|byte| *byte == b'1'));
    // The other warning is not repeated either.
    let line = server.0.line("another warning", |line| line.contains(" WARN "));
    assert!(
        line.ends_with(
            "WARN www/big changed while it was sent: the reply was cut off, since it would have mixed two \
             versions; replace a file with a rename instead"
        ),
        "{line}"
    );
}
