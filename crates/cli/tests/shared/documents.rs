//! The README and the documents for users name flags, keys, defaults, problems and replies as they are.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::Command;

use anemone_testing::documents::{front, text};
use anemone_testing::process::{self, command, output, read_until, request, serve};
use tempfile::tempdir;

const CONFIGURATION: &str = include_str!("../../../../anemone.toml");

/// Returns the cells of each row of the tables in a text, without inline code.
fn rows(text: &str) -> Vec<Vec<String>> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.map(|row| row.split('|').map(|cell| cell.replace('`', "").trim().to_owned()).collect())
        .collect()
}

fn flags(text: &str) -> BTreeSet<String> {
    let is_of_name = |c: char| c.is_ascii_lowercase() || c == '-';
    let flags = text.split(|c: char| !is_of_name(c)).filter(|word| word.starts_with("--"));
    flags.filter(|word| word.len() > 3 && !word.starts_with("---")).map(str::to_owned).collect()
}

#[test]
fn every_flag_in_the_documents_is_one() {
    let mut known = flags("--help --version");
    for name in [
        "serve",
        "check",
        "sub",
        "pub",
        "call",
        "run",
        "runs",
        "topics",
        "lab",
        "doctor",
        "windsonic",
    ] {
        known.extend(flags(
            &String::from_utf8(output(command(&[name, "--help"]), "").stdout).unwrap(),
        ));
    }
    for (name, told, of_others) in [
        // grep, cargo install, websocketd, jq, curl, rsync
        (
            "README.md",
            &*front(),
            "--data-binary --inplace --line-buffered --locked --path --staticdir --unbuffered --unix-socket",
        ),
        // jq, and journalctl
        ("docs/COOKBOOK.md", text("docs/COOKBOOK.md"), "--follow --lines --raw-output"),
        ("docs/FEATURES.md", text("docs/FEATURES.md"), ""),
        ("docs/DEPLOY.md", text("docs/DEPLOY.md"), "--unix-socket --system --now"), // curl, useradd, systemctl
    ] {
        let unknown: Vec<_> =
            flags(told).into_iter().filter(|flag| !known.contains(flag)).collect();
        let of_others: Vec<_> = flags(of_others).into_iter().collect();
        assert_eq!(unknown, of_others, "{name}");
    }
}

/// The default of a key in anemone.toml: `table.key`.
fn default(key: &str) -> String {
    let (table, key) = key.rsplit_once('.').unwrap_or(("", key));
    let mut current = String::new();
    for line in CONFIGURATION.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            current = name.to_owned();
        }
        let value = line.strip_prefix(&format!("#{key} = "));
        if let Some(value) = value.filter(|_| current == table) {
            return value.to_owned();
        }
    }
    panic!("anemone.toml has no {key} in [{table}]");
}

/// A value of anemone.toml as the documents write it.
fn in_words(value: &str) -> String {
    match value.trim_matches('"') {
        "[]" => "none".to_owned(),
        "false" => "off".to_owned(),
        value if value.bytes().all(|byte| byte.is_ascii_digit()) && value.len() > 4 => {
            let (thousands, rest) = value.split_at(value.len() - 3);
            format!("{thousands},{rest}")
        }
        // 30s is 30 s, 1MiB is 1 MiB.
        value => match value.find(|c: char| !c.is_ascii_digit()) {
            Some(unit) if unit > 0 && value[unit..].chars().all(char::is_alphabetic) => {
                format!("{} {}", &value[..unit], &value[unit..])
            }
            _ => value.to_owned(),
        },
    }
}

#[test]
fn who_is_let_in_has_the_keys_flags_and_defaults_that_hold() {
    let (_, section) =
        text("docs/OPERATE.md").split_once("\n## Settings and their defaults").unwrap();
    let help = String::from_utf8(output(command(&["serve", "--help"]), "").stdout).unwrap();
    let mut count = 0;
    for row in rows(section.split("\n## ").next().unwrap()).iter().filter(|row| row.len() == 4) {
        let [keys, its_flags, told, _] = &row[..] else { unreachable!() };
        if keys == "key" {
            continue;
        }
        for flag in flags(its_flags) {
            assert!(
                help.contains(&format!("{flag} ")) || help.contains(&format!("{flag}\n")),
                "{flag}"
            );
        }
        if keys.starts_with("[[") {
            // A table of its own, none by default.
            assert!(CONFIGURATION.contains(&format!("\n#{keys} ")) && told == "none", "{keys}");
            continue;
        }
        for key in keys.split(", ") {
            // The same in each table of WebSockets.
            for table in ["websocket", "multiplexed", "echo"] {
                let value = default(&key.replace('*', table));
                let is_example = value.ends_with("# example");
                assert!(
                    is_example || told.starts_with(&in_words(&value)),
                    "{key}: {value}, {told}"
                );
            }
            count += 1;
        }
    }
    assert!(count >= 12, "{count}");
}

#[test]
fn every_problem_in_the_table_of_what_does_not_work_is_one_of_that_status() {
    let problems = rows(text("docs/PROTOCOL.md"));
    let mut count = 0;
    for row in rows(text("docs/DEPLOY.md").split_once("\n## Something does not work").unwrap().1) {
        let (seen, rest) = (&row[0], row[0].split_once(' '));
        let Some((status, rest)) = rest.filter(|(status, _)| status.parse::<u16>().is_ok()) else {
            continue;
        };
        let name = rest.split([',', ' ']).next().unwrap();
        if !name.contains('-') && name != "misdirected" {
            continue; // what a proxy says by itself
        }
        let known = problems.iter().any(|row| row[0] == name && row[1].contains(status));
        assert!(known, "{seen}");
        count += 1;
    }
    assert_eq!(count, 5);
}

/// Returns whether a text is as a document shows it, where `…` stands for anything.
fn is_as_shown(text: &str, shown: &str) -> bool {
    let mut rest = Some(text);
    for part in shown.split('…') {
        rest = rest.and_then(|rest| Some(rest.split_once(part)?.1));
    }
    text.starts_with(shown.split('…').next().unwrap()) && rest.is_some()
}

#[test]
fn a_refusal_is_as_docs_deploy_shows_it() {
    let (_, shown) = text("docs/DEPLOY.md")
        .split_once("\n    $ curl https://wind.example/topics\n    ")
        .unwrap();
    let shown = shown.lines().next().unwrap();
    let (_server, address) = serve(&["--threads", "1"]);
    let mut stream = request_for(address, "wind.example");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let body = reply.split_once("\r\n\r\n").unwrap().1;
    assert!(is_as_shown(body.trim_end(), shown), "{body} is not {shown}");
}

fn request_for(address: SocketAddr, host: &str) -> impl Read {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(process::LONG)).unwrap();
    write!(stream, "GET /topics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    stream
}

#[test]
fn a_stream_has_the_lines_that_docs_features_shows() {
    let (_server, address) = serve(&["--threads", "1", "--demo"]);
    let topic = "/topics/scratch-a";
    let mut post = request(address, &format!("POST {topic}?key=a HTTP/1.1\r\nContent-Length: 1"));
    post.write_all(b"1").unwrap();
    read_until(&mut post, b"\"count\":1}\n");
    let head = format!("GET {topic} HTTP/1.1\r\nAccept: application/x-ndjson");
    let mut stream = BufReader::new(request(address, &head));
    read_until(&mut stream, b"\r\n\r\n");
    let mut lines = stream.lines().map(Result::unwrap).filter(|line| line.starts_with('{'));
    for (shown, part) in
        [("`{\"position\":P}`", "{\"position\":\""), ("`{\"end\":…}`", "{\"end\":{")]
    {
        assert!(text("docs/FEATURES.md").contains(shown), "{shown}");
        let line = lines.next().unwrap();
        assert!(line.starts_with(part) && line.ends_with('}'), "{line}");
        if part.starts_with("{\"position") {
            read_until(&mut request(address, &format!("DELETE {topic} HTTP/1.1")), b"\r\n\r\n");
        }
    }
}

#[test]
fn each_limit_that_docs_deploy_sets_is_fine() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("my.toml");
    let lines = text("docs/DEPLOY.md").lines().filter_map(|line| line.strip_prefix("    keep = "));
    let lines: Vec<_> =
        lines.map(|line| format!("keep = {line}\n[data]\ndir = \"state\"\n")).collect();
    for line in &lines {
        std::fs::write(&file, line).unwrap();
        let mut check = command(&["check", "--config"]);
        check.arg(&file).current_dir(&directory);
        let said = output(check, "");
        assert!(said.status.success(), "{line}: {said:?}");
    }
    assert_eq!(lines.len(), 2);
}

#[test]
fn the_files_of_a_service_are_installed_as_docs_deploy_says() {
    let directory = tempdir().unwrap();
    let root = directory.path().display();
    let lines = text("docs/DEPLOY.md")
        .split_once("All together,")
        .unwrap()
        .1
        .split("\n## ")
        .next()
        .unwrap();
    let lines = lines.lines().filter_map(|line| line.strip_prefix("    "));
    let lines: Vec<_> = lines.map(|line| line.split("  #").next().unwrap().trim_end()).collect();
    let [install @ .., check, service] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(install.len(), 3);
    let anemone = env!("CARGO_BIN_EXE_anemone");
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for line in install {
        let line = line.strip_prefix("sudo install ").unwrap();
        let line = line
            .replace("~/.cargo/bin/anemone ", &format!("{anemone} "))
            .replace(" /", &format!(" {root}/"));
        // The same, where the last argument alone is below a directory of the test's.
        let line = line.replace(&format!(" {root}{anemone}"), &format!(" {anemone}"));
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("install -D {line}")]).current_dir(sources);
        let said = output(shell, "");
        assert!(said.status.success(), "{line}: {said:?}");
    }
    let check = check.strip_prefix("anemone ").unwrap().replace(" /", &format!(" {root}/"));
    let said = output(command(&check.split(' ').collect::<Vec<_>>()), "");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.ends_with(&format!("{root}/etc/anemone/anemone.toml is fine\n")), "{said}");
    // The rest needs root; the unit itself is checked.
    let service = service.replace("sudo ", "");
    let unit = std::fs::read_to_string(format!("{root}/etc/systemd/system/anemone.service"));
    assert!(unit.unwrap().contains(&format!("# {service}\n")), "{service}");
    assert!(directory.path().join("usr/local/bin/anemone").is_file());
}
