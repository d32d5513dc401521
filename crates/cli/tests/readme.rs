//! The commands of the README do what it says of them.
//!
//! Needs curl, as the end-to-end tests do.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

#[allow(dead_code, reason = "other tests use the rest")]
mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use support::{Directory, Process, Watchdog, command, output};

const README: &str = include_str!("../../../README.md");

/// The lines of code below a heading, each without the comment that follows it.
fn code(heading: &str) -> Vec<String> {
    let (_, rest) = README.split_once(&format!("\n## {heading}\n")).expect(heading);
    let section = rest.split("\n## ").next().unwrap();
    let lines = section.lines().filter_map(|line| line.strip_prefix("    "));
    lines.map(|line| line.split("  #").next().unwrap().trim_end().to_owned()).collect()
}

/// A line for the shell, in this directory, with `anemone` on the PATH.
fn shell(line: &str, directory: &Path) -> Command {
    let bin = Path::new(env!("CARGO_BIN_EXE_anemone")).parent().unwrap().display();
    let mut shell = Command::new("sh");
    for (name, _) in command(&[]).get_envs() {
        shell.env_remove(name);
    }
    shell.env("PATH", format!("{bin}:{}", std::env::var("PATH").unwrap())).env("no_proxy", "*");
    shell.args(["-c", &format!("exec {line}")]).current_dir(directory);
    shell
}

/// The first line that it prints, and then it is ended.
fn first_line(line: &str, directory: &Path) -> String {
    let mut child = shell(line, directory).stdout(Stdio::piped()).spawn().unwrap();
    let _watchdog = Watchdog::of(&child);
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let _ = child.kill();
    child.wait().unwrap();
    first
}

#[test]
fn every_url_of_the_readme_is_answered() {
    let directory = Directory::new("readme");
    let lines = "cpu=while :; do echo ' r  b   swpd'; sleep 0.2; done";
    let (_server, address) = support::serve(&["--threads", "1", "--demo", "--exec", lines]);
    let all = code("One URL");
    let of_tls = all.iter().position(|line| line.starts_with("anemone serve")).unwrap();
    let (plain, secure) = all.split_at(of_tls);
    let run: Vec<_> = plain.iter().filter(|line| !line.starts_with("new WebSocket")).collect();
    let asked = |line: &&&String| !line.is_empty();
    assert!(run.iter().filter(asked).count() >= 10, "{run:?}");
    for line in run.iter().filter(asked) {
        let said =
            first_line(&line.replace("127.0.0.1:8080", &address.to_string()), directory.path());
        assert!(!said.trim().is_empty() && !said.contains("/problems/"), "{line}: {said}");
        if line.contains("--output line") {
            assert_eq!(said, " r  b   swpd\n", "{line}");
        }
    }

    let serve = secure[0].strip_prefix("anemone ").unwrap();
    let mut serve = command(&serve.split(' ').collect::<Vec<_>>());
    serve.args(["--threads", "1", "--listen", "127.0.0.1:0"]).current_dir(directory.path());
    let mut server = Process::spawn(serve);
    let line = server.line();
    let origin = line.strip_prefix("listening on ").expect(&line);
    let reads: Vec<_> = secure[1..].iter().filter(|line| !line.is_empty()).collect();
    assert_eq!(reads.len(), 1, "{reads:?}");
    let said = first_line(&reads[0].replace("https://127.0.0.1:8080", origin), directory.path());
    assert!(said.starts_with("{\"position\":"), "{said}");
}

#[test]
fn check_finds_every_server_of_the_readme_fine() {
    let directory = Directory::new("readme-check");
    let toml: Vec<String> = code("Configuration");
    let end = toml.iter().position(|line| line.starts_with("anemone")).unwrap();
    std::fs::write(directory.path().join("my.toml"), toml[..end].join("\n")).unwrap();
    let serves = README.lines().filter_map(|line| line.strip_prefix("    "));
    let serves =
        serves.filter_map(|line| Some(line.split("  #").next()?.split_once("anemone serve")?.1));
    let mut count = 0;
    for flags in serves {
        let check = shell(&format!("anemone check{flags}"), directory.path());
        let output = output(check, "");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "anemone serve{flags}: {said}{err}");
        count += 1;
    }
    assert!(count >= 8, "{count}");
}
