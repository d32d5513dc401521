//! `anemone doctor` where there is no server, another URL, or one that stalls.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use anemone_testing::process::{Process, SERVE, serve};
use serde_json::Value;

/// Returns the exit status, what is printed, and what is told on standard error.
fn doctor(args: &[&str]) -> (i32, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_anemone")).arg("doctor").args(args).output().unwrap();
    let [printed, told] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.code().unwrap(), printed, told)
}

#[test]
fn a_server_that_stalls_is_told_so_and_asked_no_more() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer_health(stream));
        }
    });
    // The silences that are waited for after that of the first examination are short.
    let times = ["--wait", "600s", "--timeout", "5s", "--begin-max", "1s"];
    let (status, printed, told) = doctor(&[&[&*url, "--json"], &times[..]].concat());
    let diagnosis: Value = serde_json::from_str(&printed).unwrap();
    let findings: Vec<_> = diagnosis["findings"].as_array().unwrap().iter().collect();
    let found: Vec<_> =
        findings.iter().map(|one| format!("{} {}", one["name"], one["state"])).collect();
    let expected = ["reach good", "keep-alive good", "cache unknown", "reach fault"];
    assert_eq!(found.join(", ").replace('"', ""), expected.join(", "));
    assert_eq!(status, 13, "{told}");
    assert!(findings[3]["words"].as_str().unwrap().starts_with("it stalls: "), "{printed}");
    assert!(told.contains("1 fault"), "{told}");
}

/// Answers requests for the server's health, and leaves all others without an answer.
fn answer_health(mut stream: TcpStream) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    while let Some(line) = lines.next() {
        lines.by_ref().find(String::is_empty);
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"status\":\"ok\"}";
        if line.starts_with("GET /health ") && stream.write_all(answer.as_bytes()).is_err() {
            break;
        }
    }
}

#[test]
fn the_url_of_something_below_a_server_is_told_with_that_of_the_server() {
    let (_server, address) = serve(&["--threads", "1"]);
    for path in ["topics/wind", "topics/nothing/", "lab"] {
        let (status, printed, told) = doctor(&[&format!("http://{address}/{path}")]);
        assert_eq!(status, 2, "{printed}");
        let words = format!("there is a server at http://{address}: examine that");
        assert!(printed.contains(&words) && printed.lines().count() == 1, "{printed}");
        assert!(told.contains(&format!("the URL of the server is http://{address}\n")), "{told}");
    }
}

#[test]
fn a_certificate_that_is_not_trusted_is_told_with_the_flags_that_trust_it() {
    let mut server = Process::start(&[SERVE, &["--threads", "1", "--tls-dev"]].concat());
    let line = server.line();
    let url = line.strip_prefix("listening on ").unwrap();
    let (status, printed, told) = doctor(&[url]);
    assert_eq!(status, 4, "{printed}");
    assert!(printed.contains("UnknownIssuer"), "{printed}");
    assert!(told.contains("the certificate of the server is not trusted"), "{told}");
    assert!(told.contains("--ca FILE") && told.contains("--insecure"), "{told}");
    assert_eq!(doctor(&[url, "--insecure", "--wait", "1ms", "--begin-max", "30s"]).0, 0);
}
