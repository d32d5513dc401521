//! The commands of the README, and of the documents that go on where it ends, do what they say of them.
//!
//! Needs curl, vmstat, jq, Python and make, as the end-to-end tests do; they run its JavaScript.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::LazyLock;

use anemone_testing::documents::{document, front};
use anemone_testing::process::{Watchdog, command, output};
use anemone_testing::wait_until;
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::tempdir;

/// The README, and the documents that go on where it ends.
static README: LazyLock<String> = LazyLock::new(front);
/// The address of the README's server.
const ADDRESS: &str = "127.0.0.1:8080";

fn section(heading: &str) -> &'static str {
    let (_, rest) = README.split_once(&format!("\n## {heading}\n")).expect(heading);
    rest.split("\n## ").next().unwrap()
}

/// The lines for the shell below a heading, each without the comment that follows it.
fn code(heading: &str) -> Vec<String> {
    // Every other part is between fences, and in another language.
    let parts = section(heading).split("\n```").step_by(2);
    let lines = parts.flat_map(str::lines).filter_map(|line| line.strip_prefix("    "));
    lines.map(|line| line.split("  #").next().unwrap().trim_end().to_owned()).collect()
}

/// The blocks between fences, in this language.
fn fenced(heading: &str, language: &str) -> &'static str {
    let (_, rest) = section(heading).split_once(&format!("\n```{language}\n")).expect(language);
    rest.split("\n```").next().unwrap()
}

/// A line for the shell, in this directory, with `anemone` on the PATH.
fn shell(line: &str, directory: &Path) -> Command {
    let bin = Path::new(env!("CARGO_BIN_EXE_anemone")).parent().unwrap().display();
    let mut shell = Command::new("sh");
    for (name, _) in command(&[]).get_envs() {
        shell.env_remove(name);
    }
    shell.env("PATH", format!("{bin}:{}", std::env::var("PATH").unwrap())).env("no_proxy", "*");
    shell.args(["-c", line]).current_dir(directory);
    shell
}

/// A line for the shell that runs, with all that it has started, until this is dropped.
struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    _watchdog: Watchdog,
}

impl Running {
    fn start(mut shell: Command) -> Self {
        let shell = shell.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { _watchdog: Watchdog::of(&child), stdout, child }
    }

    /// The README's `anemone serve …`, and its origin, by a free port unless it names a place itself.
    fn serve(line: &str, directory: &Path) -> (Self, String) {
        let mut serve = shell(line, directory);
        if !line.contains("--listen") {
            serve.env("ANEMONE_LISTEN", "127.0.0.1:0");
        }
        let mut server = Self::start(serve);
        let line = server.line();
        let origin = line.trim_end().strip_prefix("listening on ").expect(&line).to_owned();
        (server, origin)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "it says no more");
        line
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// A command that asks the README's server, which is at this origin.
fn asking(line: &str, origin: &str, directory: &Path) -> Running {
    // A Unix socket is named by its path; the origin does not matter.
    let line = line.replace(ADDRESS, origin.split_once("://").map_or(ADDRESS, |(_, host)| host));
    Running::start(shell(&line, directory))
}

fn asked(line: &str, origin: &str, directory: &Path) -> String {
    asking(line, origin, directory).line()
}

fn is_client(line: &&String) -> bool {
    ["curl ", "anemone sub ", "anemone pub ", "anemone topics ", "anemone call "]
        .iter()
        .any(|command| line.contains(command))
}

#[test]
fn every_url_of_the_readme_is_answered() {
    let directory = tempdir().unwrap();
    let (_server, origin) =
        Running::serve("exec anemone serve --demo --threads 1", directory.path());
    let all = code("One URL");
    let lines: Vec<_> = all.iter().filter(|line| !line.is_empty()).collect();
    assert!(lines.len() >= 14 && lines.iter().all(is_client), "{lines:?}");
    for line in lines {
        let said = asked(line, &origin, directory.path());
        assert!(!said.trim().is_empty() && !said.contains("/problems/"), "{line}: {said}");
    }
}

#[test]
fn the_front_door_is_short_and_its_commands_lead_to_own_events() {
    let words = document("README.md").text.split_whitespace().count();
    assert!(words <= 900, "{words} words");
    let directory = tempdir().unwrap();
    let lines = code("Five minutes");
    let mut lines = lines.iter().filter(|line| !line.is_empty());
    let (_server, origin) = Running::serve(lines.next().unwrap(), directory.path());
    let reads: Vec<_> = lines.collect();
    assert!(reads.len() >= 3 && reads.iter().all(is_client), "{reads:?}");
    // The first one waits for an event, and the others find that.
    for read in reads {
        let mut reader = asking(read, &origin, directory.path());
        let has_event = |line: &str| {
            read.starts_with("anemone sub")
                || line.contains("data: \"")
                || line.contains("\"data\":\"")
        };
        while !has_event(&reader.line()) {}
    }
    assert!(directory.path().join("state").is_dir(), "--data makes it");
}

#[test]
fn the_front_door_shows_what_the_readme_of_the_client_compiles() {
    let shown = |path: &str, language: &str| {
        let blocks = document(path).blocks();
        let block =
            blocks.iter().find(|block| block.language.as_deref() == Some(language)).unwrap();
        let lines = block.code.lines().filter(|line| !line.starts_with("# "));
        lines.collect::<Vec<_>>().join("\n")
    };
    let front = shown("README.md", "rust");
    assert!(front.contains("anemone_client::"), "{front}");
    assert_eq!(front, shown("crates/client/README.md", "rust,no_run"));
}

#[test]
fn every_source_of_the_readme_is_one_and_read_as_it_says() {
    let directory = tempdir().unwrap();
    let lines = code("Your own data");
    let (serves, reads): (Vec<_>, Vec<_>) =
        lines.iter().filter(|line| !line.is_empty()).partition(|line| !is_client(line));
    assert_eq!((serves.len(), reads.len()), (4, 2), "{lines:?}");
    for serve in serves {
        let (_server, origin) = Running::serve(serve, directory.path());
        for read in &reads {
            if serve.contains("vmstat") {
                let begins = if read.contains("curl") { "data: \"" } else { "procs ---" };
                let mut reader = asking(read, &origin, directory.path());
                while !reader.line().starts_with(begins) {}
            }
        }
    }
    assert!(directory.path().join("state").is_dir(), "--data makes it");
}

#[test]
fn jq_finds_slow_requests_in_the_log_as_docs_operate_says() {
    let directory = tempdir().unwrap();
    let lines = code("The log");
    let [pipe] = &lines.iter().filter(|line| line.contains("| jq ")).collect::<Vec<_>>()[..] else {
        panic!("one line about the log has jq: {lines:?}");
    };
    // Its standard output is nowhere, so a place that is known before has to do.
    let mut shell = shell(pipe, directory.path());
    shell.env("ANEMONE_LISTEN", "unix:socket");
    let mut slow = Running::start(shell);
    let socket = directory.path().join("socket");
    wait_until("nobody listens", || UnixStream::connect(&socket).is_ok());
    let topic = "http://localhost/topics/scratch-a";
    for query in ["", "?after=latest&wait=1.1"] {
        let poll = format!("curl -s -w '\\n' --unix-socket socket '{topic}{query}'");
        assert!(asked(&poll, "", directory.path()).contains("\"events\":[]"), "{poll}");
    }
    let mut transport = serde_json::Value::Null;
    // On a busy machine, the first poll may be slow, too.
    while transport != "long-poll" {
        let mut line: serde_json::Value = serde_json::from_str(&slow.line()).unwrap();
        assert!(line["duration_ms"].as_f64() > Some(1000.0), "{line}");
        transport = line["transport"].take();
    }
}

#[test]
fn python_reads_events_with_its_own_library() {
    let directory = tempdir().unwrap();
    let (_server, origin) =
        Running::serve("exec anemone serve --demo --threads 1", directory.path());
    let program = fenced("One URL", "python").replace(&format!("http://{ADDRESS}"), &origin);
    std::fs::write(directory.path().join("read.py"), program).unwrap();
    let said = Running::start(shell("exec python3 -u read.py", directory.path())).line();
    assert!(said.starts_with("{'unit': 'Q', 'direction': "), "{said}");
}

#[test]
fn the_long_computation_of_the_readme_runs_as_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let example = std::fs::read_to_string(root.join("examples/primes.py")).unwrap();
    assert_eq!(example.trim_end(), fenced("Long computations", "python"));
    let lines: Vec<_> =
        code("Long computations").into_iter().filter(|line| !line.is_empty()).collect();
    let [serve, run, follow, start] = &lines[..] else { panic!("{lines:?}") };
    let (_server, origin) = Running::serve(&format!("exec {serve}"), &root);
    assert_eq!(asked(run, &origin, &root), "2\n");
    let mut followed = asking(follow, &origin, &root);
    let mut said = String::new();
    while !said.contains("\"state\":\"done\"") {
        said += &followed.line();
    }
    for part in ["{\"partial\":19997}", "{\"progress\":1,\"text\":\"up to 20000\""] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(asked(start, &origin, &root).starts_with("HTTP/1.1 202 "));
}

#[test]
fn the_readme_runs_a_long_computation() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let lines = code("A long computation");
    let [serve, run] = &lines.iter().filter(|line| !line.is_empty()).collect::<Vec<_>>()[..] else {
        panic!("{lines:?}");
    };
    let (_server, origin) = Running::serve(&format!("exec {serve}"), &root);
    assert_eq!(asked(run, &origin, &root), "2\n");
}

#[test]
fn a_server_that_is_shared_answers() {
    let directory = tempdir().unwrap();
    let [serve] = &code("Share it")[..] else { panic!("one line") };
    let serve = serve.replace(":8080", ":0");
    let (_server, origin) = Running::serve(&format!("exec {serve}"), directory.path());
    let list = asked(&format!("curl -s http://{ADDRESS}/topics"), &origin, directory.path());
    assert!(list.contains("\"name\":\"cpu\""), "{list}");
}

#[test]
fn each_example_of_the_demo_runs_as_its_document_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (_server, origin) = Running::serve("exec anemone serve --demo --threads 1", &root);
    for (path, heading) in
        [("docs/COMPUTATIONS.md", "Computations"), ("docs/PROPAGATION.md", "Propagation")]
    {
        let blocks = document(path).blocks();
        let block = blocks.iter().find(|block| block.heading == heading).expect(heading);
        assert_eq!(block.code.lines().count(), 2, "{}", block.code);
        for line in block.code.lines() {
            let said = asked(&line.replace("curl ", "curl -sN "), &origin, &root);
            assert!(said.starts_with('{') && !said.contains("/problems/"), "{line}: {said}");
        }
    }
}

#[test]
fn the_configuration_of_the_readme_serves_what_it_says() {
    let directory = tempdir().unwrap();
    let lines = code("Configuration");
    let (toml, commands) =
        lines.split_at(lines.iter().position(|line| line.starts_with("anemone")).unwrap());
    std::fs::write(directory.path().join("my.toml"), toml.join("\n")).unwrap();
    let [check, serve] = commands else { panic!("{commands:?}") };
    let said = output(shell(check, directory.path()), "");
    assert!(said.status.success(), "{said:?}");
    let (_server, origin) = Running::serve(serve, directory.path());
    let list = asked(&format!("curl -s http://{ADDRESS}/topics"), &origin, directory.path());
    for topic in ["chat", "cpu", "log"] {
        assert!(list.contains(&format!("\"name\":\"{topic}\"")), "{list}");
    }
    let publish = format!("curl -s http://{ADDRESS}/topics/chat -d hi");
    let said = asked(&publish, &origin, directory.path());
    assert!(said.starts_with("{\"position\":"), "{said}");
}

#[test]
fn each_way_from_elsewhere_answers_those_who_use_it_as_the_readme_says() {
    let directory = tempdir().unwrap();
    let lines = code("From other machines");
    let mut lines = lines.iter().filter(|line| !line.is_empty()).peekable();
    let mut count = 0;
    while let Some(serve) = lines.next() {
        let (_server, origin) = Running::serve(serve, directory.path());
        while let Some(read) = lines.next_if(is_client) {
            let said = asked(read, &origin, directory.path());
            assert!(said.starts_with('{') && !said.contains("/problems/"), "{read}: {said}");
            count += 1;
        }
    }
    assert_eq!(count, 3);
}

#[test]
fn check_finds_every_server_of_the_readme_fine() {
    let directory = tempdir().unwrap();
    std::fs::create_dir(directory.path().join("www")).unwrap();
    let serves = README.lines().filter_map(|line| line.strip_prefix("    "));
    let serves =
        serves.filter_map(|line| Some(line.split("  #").next()?.split_once("anemone serve")?.1));
    let serves: Vec<_> = serves.filter(|flags| !flags.contains("--config")).collect();
    for flags in &serves {
        let check = shell(&format!("anemone check{flags}"), directory.path());
        let said = output(check, "");
        assert!(said.status.success(), "anemone serve{flags}: {said:?}");
    }
    assert!(serves.len() >= 8, "{serves:?}");
}

#[test]
fn make_has_what_the_readme_makes() {
    let makes: Vec<_> =
        code("Install").into_iter().filter(|line| line.starts_with("make ")).collect();
    assert_eq!(makes, ["make run", "make test"]);
    for make in makes {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let said = output(shell(&format!("{make} --dry-run"), &root), "");
        assert!(said.status.success(), "{make}: {said:?}");
    }
}
