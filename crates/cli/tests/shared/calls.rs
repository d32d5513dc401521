//! `anemone call`, `anemone run` and `anemone runs` as in a shell: beside `anemone serve`, and beside a server that does
//! what ours does not.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use anemone_testing::process::{Process, Watchdog, command, output, serve};
use anemone_testing::{nobody, terminal};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::tempdir;

const KEY: &str = "0123456789abcdef0123456789abcdef";
const JSON: &str = "content-type: application/json\r\n";
const NDJSON: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\nconnection: close\r\n\r\n";

fn run(args: &[&str], input: &str) -> Output {
    output(command(args), input)
}

/// The standard output of a command that ends with this status, and its standard error.
fn ended(args: &[&str], input: &str, status: i32) -> (String, String) {
    let output = run(args, input);
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(status), "{args:?}: {out}{err}");
    (out, err)
}

/// A server that answers each request, `METHOD TARGET`, its head and its body, so. It ends each connection.
fn server(
    script: impl Fn(&str, &str, &str, &mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let script = std::sync::Arc::new(script);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, script) = (stream.unwrap(), std::sync::Arc::clone(&script));
            // A client may be gone at any time.
            thread::spawn(move || -> io::Result<()> {
                let (head, body) = request(&mut stream)?;
                let line = head.split(" HTTP/").next().unwrap().to_owned();
                script(&line, &head.to_ascii_lowercase(), &body, &mut stream)
            });
        }
    });
    address
}

fn request(stream: &mut TcpStream) -> io::Result<(String, String)> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut len) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            len = value.trim().parse().unwrap();
        }
        head += &line;
    }
    let mut body = vec![0; len];
    reader.read_exact(&mut body)?;
    Ok((head, String::from_utf8(body).unwrap()))
}

fn answer(stream: &mut TcpStream, status: &str, fields: &str, body: &str) -> io::Result<()> {
    let len = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-length: {len}\r\nconnection: close\r\n{fields}\r\n{body}"
    )
}

#[test]
fn a_call_prints_the_body_of_its_reply_over_every_transport() {
    let (mut server, address) = serve(&["--threads", "1", "--demo", "--tcp", "127.0.0.1:0"]);
    let line = server.line();
    let tcp = line.strip_prefix("tcp on ").expect(&line);
    for (via, url) in [
        ("auto", format!("{address}/clock")),
        ("http", format!("http://{address}/clock")),
        ("mux", format!("http://{address}/clock")),
        ("ws", format!("http://{address}/clock")),
        ("tcp", format!("tcp://{tcp}/clock")),
        ("auto", format!("tcp://{tcp}/clock")),
    ] {
        let (out, _) = ended(&["call", "get", &url, "--via", via], "", 0);
        assert!(out.starts_with("{\"time\":"), "{via}: {out}");
        let (out, _) = ended(&["call", "GET", &url, "--via", via, "--output", "json"], "", 0);
        let start = "{\"status\":200,\"fields\":{";
        assert!(out.starts_with(start) && out.contains("\"body\":{\"time\":"), "{via}: {out}");
        assert_eq!(out.lines().count(), 1, "{via}: {out}");
        let nothing = url.replace("/clock", "/topics/nix");
        let (out, err) = ended(&["call", "GET", &nothing, "--via", via], "", 3);
        assert!(out.is_empty() && err.contains("there is no topic \"nix\""), "{via}: {err}");
    }
    let messages = format!("{address}/messages/testing");
    assert_eq!(ended(&["call", "get", &messages], "", 0).0, "{\"id\":\"testing\"}");
    let message = ["run", &format!("{address}/messages"), "{\"text\":\"hi\"}", "--key", "k"];
    let (out, err) = ended(&message, "", 0);
    assert!(out.contains("\"text\":\"hi\"") && out.lines().count() == 1, "{out}{err}");
    let (url, _) = ended(&[&message[..], &["--detach"]].concat(), "", 0);
    assert!(err.contains(url.trim_end()), "the same run: {url}{err}");
    let (again, _) = ended(&["run", "--watch", url.trim_end(), "--via", "mux"], "", 0);
    assert_eq!(again, out);
    let (list, _) = ended(&["runs", &format!("{address}")], "", 0);
    assert!(list.starts_with(&format!("{}  done  /messages", url.trim_end())), "{list}");
    let (_, err) = ended(&["run", &format!("{address}/messages"), "{\"text\":7}"], "", 8);
    assert!(err.contains("the run has failed"), "{err}");
    let (out, _) = ended(&["call", "POST", &format!("{address}/echo"), "-"], "{\"n\": 1.50}", 0);
    assert_eq!(out, "{\"n\": 1.50}");
    let publish = format!("{address}/topics/scratch-a");
    let (out, _) =
        ended(&["call", "POST", &publish, "hi", "--key", "k", "--output", "json"], "", 0);
    assert!(out.contains("\"status\":201"), "{out}");
    let (out, _) =
        ended(&["call", "POST", &publish, "hi", "--key", "k", "--output", "json"], "", 0);
    assert!(out.contains("\"idempotent-replayed\":\"true\""), "{out}");
}

#[test]
fn a_body_comes_from_the_command_line_a_file_or_standard_input_with_its_type() {
    let address = server(|line, head, body, stream| {
        let is_type = |line: &&str| line.starts_with("content-type:");
        let kind = head.lines().find(is_type).unwrap_or("-");
        answer(stream, "200 OK", "", &format!("{line} {kind} {body}"))
    });
    let directory = tempdir().unwrap();
    let file = directory.path().join("body");
    std::fs::write(&file, "[1,\n2]").unwrap();
    let (url, file) = (format!("http://{address}/a?b=c"), format!("@{}", file.display()));
    for (args, input, expected) in [
        (&["GET"][..], "", "GET /a?b=c - "),
        (&["POST", "{\"a\":1}"], "", "POST /a?b=c content-type: application/json {\"a\":1}"),
        (&["PUT", "-7"], "", "PUT /a?b=c content-type: application/json -7"),
        (&["POST", "hi"], "", "POST /a?b=c content-type: text/plain; charset=utf-8 hi"),
        (&["POST", "-"], "1\n", "POST /a?b=c content-type: application/json 1\n"),
        (&["POST", &file], "", "POST /a?b=c content-type: application/json [1,\n2]"),
        (
            &["POST", "{", "--type", "text"],
            "",
            "POST /a?b=c content-type: text/plain; charset=utf-8 {",
        ),
        (&["POST", "a,b", "--type", "text/csv"], "", "POST /a?b=c content-type: text/csv a,b"),
    ] {
        let args = [&["call", args[0], &url], &args[1..]].concat();
        assert_eq!(ended(&args, input, 0).0, expected, "{args:?}");
    }
    let (_, err) = ended(&["call", "POST", &url, "{\"a\":"], "", 7);
    assert!(err.contains("looks like broken JSON") && err.contains("--type text"), "{err}");
    let (_, err) = ended(&["call", "POST", &url, "@/nowhere/at/all"], "", 7);
    assert!(err.contains("/nowhere/at/all"), "{err}");
}

#[test]
fn the_status_decides_the_exit_status_and_a_service_has_its_own_words() {
    let address = server(|line, _, _, stream| match line {
        "GET /own" => answer(stream, "409 Conflict", JSON, "{\"own\":1}"),
        "GET /moved" => answer(stream, "301 Moved Permanently", "location: /own\r\n", ""),
        "GET /same" => answer(stream, "304 Not Modified", "", ""),
        "POST /cut" => Ok(()),
        _ => answer(
            stream,
            "422 Unprocessable Content",
            "content-type: application/problem+json\r\n",
            r#"{"type":"/problems/unprocessable","title":"It does not fit","status":422,"detail":"\u001b[2Jno"}"#,
        ),
    });
    let url = |path: &str| format!("http://{address}{path}");
    let (out, err) = ended(&["call", "GET", &url("/own")], "", 3);
    assert!(out == "{\"own\":1}" && err.contains("409"), "{out}{err}");
    let (_, err) = ended(&["call", "GET", &url("/moved")], "", 3);
    assert!(err.contains("301 and redirects to /own"), "{err}");
    assert_eq!(ended(&["call", "GET", &url("/same")], "", 0).0, "");
    let (out, err) = ended(&["call", "GET", &url("/x")], "", 3);
    assert!(out.is_empty() && err.contains("422 It does not fit: \\u"), "{err}");
    assert!(!err.contains('\u{1b}'), "{err}");
    let (_, err) = ended(&["call", "POST", &url("/cut"), "1"], "", 10);
    assert!(err.contains("the request may or may not have been carried out: "), "{err}");
    for (args, status) in [
        (["call", "GET", "ftp://a/b"], 2),
        (["call", "GET ", "http://127.0.0.1:1/"], 2),
        (["call", "GET", "http://127.0.0.1:1/ x"], 2),
    ] {
        ended(&args, "", status);
    }
    ended(&["call", "POST", &format!("{}/", nobody()), "1", "--retries", "0"], "", 4);
}

#[test]
fn the_items_of_a_stream_are_lines_as_soon_as_they_come() {
    let address = server(|line, _, _, stream| {
        stream.write_all(NDJSON.as_bytes())?;
        if line == "GET /all" {
            return stream.write_all(b"1\n\n{\"a\":\r\n2");
        }
        for number in 0.. {
            writeln!(stream, "{number}")?;
        }
        Ok(())
    });
    let url = |path: &str| format!("http://{address}/{path}");
    assert_eq!(ended(&["call", "GET", &url("all")], "", 0).0, "1\n{\"a\":\n2\n");
    let (out, _) = ended(&["call", "GET", &url("all"), "-o", "json"], "", 0);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[..3], [r#"{"item":1}"#, r#"{"item":"{\"a\":"}"#, r#"{"item":2}"#]);
    assert!(
        lines[3].starts_with("{\"status\":200,") && lines[3].ends_with("\"body\":null}"),
        "{out}"
    );
    // The reply has no end; its reader has seen enough.
    let mut endless = Process::start(&["call", "GET", &url("endless")]);
    for number in 0..1000 {
        assert_eq!(endless.line(), number.to_string());
    }
    assert_eq!(endless.hang_up().code(), Some(0));
}

fn state(name: &str) -> String {
    format!(
        r#"{{"key":"{KEY}","service":"/primes","state":"{name}","progress":0.5,"text":"ha\u001blf","left":2,"place":null,
"created":1,"started":2,"ended":null,"next":"e-7","result":null,"problem":null,"stderr":"it said why\n"}}"#
    )
}

/// A server with one run, which ends like this once it is told to, or cancelled.
fn runs(end: &'static str, is_endless: bool) -> (SocketAddr, Receiver<String>) {
    let (requests, seen) = channel();
    let (cancel, is_cancelled) = channel();
    let is_cancelled = std::sync::Mutex::new(is_cancelled);
    let requests = std::sync::Mutex::new(requests);
    let cancel = std::sync::Mutex::new(cancel);
    let address = server(move |line, head, body, stream| {
        let note = format!("{line} {body}");
        let _ = requests.lock().unwrap().send(note.trim_end().to_owned());
        let run = format!("/runs/{KEY}");
        match line.replace(&run, "/run").as_str() {
            "POST /primes" => {
                assert!(head.contains("prefer: respond-async"), "{head}");
                assert!(head.contains("idempotency-key: "), "{head}");
                let fields = format!("{JSON}location: runs/{KEY}\r\n");
                answer(stream, "202 Accepted", &fields, &state("queued"))
            }
            "GET /run?state" => answer(stream, "200 OK", JSON, &state("failed")),
            "DELETE /run" => {
                let _ = cancel.lock().unwrap().send(());
                answer(stream, "200 OK", JSON, &state("running"))
            }
            "GET /run" if head.contains("text/event-stream") => {
                stream.write_all(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nid: e-0\n\n",
                )?;
                let events = [
                    r#"{"state":"queued","place":2}"#,
                    r#"{"state":"running"}"#,
                    r#"{"progress":0.42,"text":"some words","left":90}"#,
                    r#"{"partial":{"n": 2}}"#,
                    r#"{"partial":null}"#,
                ];
                for (number, event) in events.iter().enumerate() {
                    write!(stream, "id: e-{}\ndata: {event}\n\n", number + 1)?;
                }
                stream.flush()?;
                if is_endless {
                    is_cancelled.lock().unwrap().recv().map_err(io::Error::other)?;
                }
                write!(
                    stream,
                    "id: e-6\ndata: {end}\n\nevent: end\ndata: {{\"end\":{{\"reason\":\"ended\"}}}}\n\n"
                )
            }
            "GET /runs?limit=1000" => {
                let list = format!(r#"{{"runs":[{},{}]}}"#, state("running"), state("queued"));
                answer(stream, "200 OK", JSON, &list)
            }
            "GET /runs?limit=1&state=running,queued" => {
                let list = format!(r#"{{"total":2,"runs":[{}]}}"#, state("running"));
                answer(stream, "200 OK", JSON, &list)
            }
            "GET /runs?limit=1000&state=done" => {
                answer(stream, "200 OK", JSON, r#"{"total":0,"runs":[]}"#)
            }
            "GET /runs?limit=1000&service=%2Ffail&state=done" => {
                answer(stream, "200 OK", JSON, r#"{"total":0,"runs":[]}"#)
            }
            "GET /runs?limit=1000&service=%2Fprimes" => {
                let list = format!(r#"{{"total":1,"runs":[{}]}}"#, state("running"));
                answer(stream, "200 OK", JSON, &list)
            }
            // No WebSocket here.
            _ => answer(stream, "404 Not Found", "", ""),
        }
    });
    (address, seen)
}

const DONE: &str = r#"{"state":"done","result":[2, 3]}"#;
const FAILED: &str = r#"{"state":"failed","problem":{"type":"/problems/run-failed","title":"The run failed","status":500,"detail":"exit status 3"}}"#;
const CANCELLED: &str = r#"{"state":"cancelled"}"#;

#[test]
fn a_run_prints_its_partial_results_and_its_result_and_ends_as_it_did() {
    let (address, seen) = runs(DONE, false);
    let url = format!("http://{address}/primes");
    let (out, err) = ended(&["run", &url, "100"], "", 0);
    assert_eq!(out, "{\"n\": 2}\nnull\n[2, 3]\n");
    let run = format!("http://{address}/runs/{KEY}");
    assert!(err.contains(&format!("started {run}")) && !err.contains('\u{1b}'), "{err}");
    assert_eq!(seen.try_iter().next().unwrap(), "POST /primes 100");

    let (out, _) = ended(&["run", "--watch", &run, "--output", "json"], "", 0);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 7, "{out}");
    assert_eq!(lines[0], r#"{"position":"e-1","data":{"state":"queued","place":2}}"#);
    assert_eq!(lines[6], r#"{"end":{"reason":"ended"}}"#);
    assert!(seen.try_iter().all(|request| !request.starts_with("POST")));

    let (out, _) = ended(&["run", &url, "100", "--detach"], "", 0);
    assert_eq!(out, format!("{run}\n"));
    let asked: Vec<String> = seen.try_iter().collect();
    assert_eq!(asked, ["POST /primes 100"]);

    let (address, _) = runs(FAILED, false);
    let (out, err) = ended(&["run", &format!("{address}/primes")], "", 8);
    assert_eq!(out, "{\"n\": 2}\nnull\n");
    assert!(err.contains("the run has failed: exit status 3"), "{err}");
    assert!(err.contains("it said why"), "{err}");
    let (address, _) = runs(CANCELLED, false);
    let (_, err) = ended(&["run", &format!("{address}/primes")], "", 9);
    assert!(err.contains("the run was cancelled"), "{err}");
}

#[test]
fn a_run_of_a_server_below_a_path_is_found_and_a_forgotten_one_is_told() {
    let (_server, upstream) = serve(&["--threads=1", "--run=say=echo hi"]);
    let proxy = server(move |line, head, body, stream| {
        let Some((method, target)) = line.split_once(" /sub/") else {
            return answer(stream, "404 Not Found", "", "");
        };
        if head.contains("upgrade") {
            return answer(stream, "404 Not Found", "", "");
        }
        let kept = ["prefer", "accept", "idempotency-key", "content-type", "content-length"];
        let is_kept = |line: &&str| kept.iter().any(|name| line.starts_with(&format!("{name}:")));
        let fields: String =
            head.lines().filter(is_kept).map(|line| format!("{line}\r\n")).collect();
        let mut server = TcpStream::connect(upstream)?;
        write!(
            server,
            "{method} /{target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{fields}\r\n{body}"
        )?;
        io::copy(&mut server, stream).map(drop)
    });
    let (out, err) = ended(&["run", &format!("http://{proxy}/sub/say")], "", 0);
    assert_eq!(out, "\"hi\"\n");
    assert!(err.contains(&format!("started http://{proxy}/sub/runs/")), "{err}");

    let unknown = r#"{"type":"/problems/unknown-run","title":"No run has this key","status":404}"#;
    let problem = "content-type: application/problem+json\r\n";
    let restarted = server(move |line, _, _, stream| match line.starts_with("POST") {
        true => answer(stream, "202 Accepted", JSON, &state("queued")),
        false => answer(stream, "404 Not Found", problem, unknown),
    });
    let (_, err) = ended(&["run", &format!("http://{restarted}/say")], "", 5);
    assert!(err.contains("the server has forgotten the run (has it restarted?)"), "{err}");
    let run = format!("http://{restarted}/runs/{KEY}");
    ended(&["run", "--watch", &run], "", 3);
}

/// A proxy that serves a server below a path, and forwards whatever comes on a connection.
fn below(prefix: &'static str, upstream: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            // A client may be gone at any time.
            thread::spawn(move || forward(stream, prefix, upstream));
        }
    });
    address
}

fn forward(mut client: TcpStream, prefix: &str, upstream: SocketAddr) -> io::Result<()> {
    let (mut reader, mut head) = (BufReader::new(client.try_clone()?), String::new());
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let Some((method, rest)) = head.split_once(&format!(" {prefix}/")) else {
        return answer(&mut client, "404 Not Found", "", "");
    };
    let mut server = TcpStream::connect(upstream)?;
    write!(server, "{method} /{rest}")?;
    let mut replies = server.try_clone()?;
    thread::spawn(move || io::copy(&mut replies, &mut client));
    io::copy(&mut reader, &mut server)?;
    server.shutdown(std::net::Shutdown::Write)
}

#[test]
fn a_multiplexed_server_below_a_path_is_called_run_and_watched() {
    let (_server, upstream) = serve(&["--threads=1", "--run=say=echo hi"]);
    let server = format!("http://{}/app", below("/app", upstream));
    let (out, _) = ended(&["call", "GET", &format!("{server}/clock"), "--via", "mux"], "", 0);
    assert!(out.starts_with("{\"time\":"), "{out}");
    let (out, err) = ended(&["run", &format!("{server}/say"), "--via", "mux"], "", 0);
    assert_eq!(out, "\"hi\"\n");
    let run = err.lines().find_map(|line| Some(line.split_once("started ")?.1)).unwrap();
    assert!(run.starts_with(&format!("{server}/runs/")), "{err}");
    let (out, _) = ended(&["run", "--watch", run, "--via", "mux"], "", 0);
    assert_eq!(out, "\"hi\"\n");
}

#[test]
fn a_program_of_a_server_is_run_to_its_end() {
    let (_server, address) = serve(&[
        "--threads=1",
        "--run=count=for n in 1 2; do echo $n; echo progress 0.$n some words; done; cat",
        "--run=fail=(echo all of it; echo oh no) >&2; exit 3",
        "--run=sleep=echo ready; sleep 1000; echo never",
    ]);
    let url = |name: &str| format!("http://{address}/{name}");
    let (out, _) = ended(&["run", &url("count"), "-"], "{\"a\":1}\nhi\n", 0);
    assert_eq!(out, "1\n2\n{\"a\":1}\n\"hi\"\n");
    let (out, _) = ended(&["run", &url("count"), "hi", "--output", "json", "--via", "mux"], "", 0);
    assert!(out.contains(r#""data":{"progress":0.1,"text":"some words""#), "{out}");
    let (_, err) = ended(&["run", "-q", &url("fail")], "", 8);
    let reason =
        "the run has failed: the shell command of /fail has ended, exit status: 3: oh no\n";
    assert!(err.contains(reason) && err.starts_with("all of it\n"), "{err}");
    let (_, err) = ended(&["run", &url("cuont")], "", 3);
    let known = format!("\n  {}\n  {}\n", url("count"), url("fail"));
    assert!(err.contains(&format!("these services start runs:{known}")), "{err}");
    let (run, _) = ended(&["run", "--detach", &url("fail")], "", 0);
    ended(&["run", "--watch", run.trim_end()], "", 8);
    let (out, err) = ended(&["runs", run.trim_end()], "", 0);
    assert!(out.ends_with("exit status: 3: oh no\n") && err.contains("all of it\n"), "{out}{err}");
    // Without `Prefer: respond-async`, the reply has the events.
    let (out, _) = ended(&["call", "POST", &url("count"), "hi"], "", 0);
    assert!(out.contains("\"data\":{\"partial\":\"hi\"}"), "{out}");

    let (status, err) = interrupted(&url("sleep"), &["--cancel-on-exit"]);
    assert_eq!(status, Some(9), "{err}");
    let (status, err) = interrupted(&url("sleep"), &[]);
    assert_eq!(status, Some(130), "{err}");
    let command = err.lines().find_map(|line| line.strip_prefix("to cancel it: anemone ")).unwrap();
    ended(&command.split(' ').collect::<Vec<_>>(), "", 0);
    let run = err.lines().find_map(|line| line.strip_prefix("to watch it:  anemone ")).unwrap();
    let (out, _) = ended(&run.split(' ').collect::<Vec<_>>(), "", 9);
    assert_eq!(out, "\"ready\"\n");
}

/// A watcher of an endless run that has printed a partial result, and what it says.
fn interrupted(url: &str, flags: &[&str]) -> (Option<i32>, String) {
    let mut run = command(&[&["run", url, "100"], flags].concat());
    let mut run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _watchdog = Watchdog::of(&run);
    let mut out = BufReader::new(run.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    let mut err = String::new();
    run.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    (run.wait().unwrap().code(), err)
}

#[test]
fn an_interrupted_watcher_says_how_to_go_on_and_leaves_the_run_alone() {
    let (address, seen) = runs(CANCELLED, true);
    let (status, err) = interrupted(&format!("http://{address}/primes"), &[]);
    assert_eq!(status, Some(130), "{err}");
    let watch = format!("anemone run --watch http://{address}/runs/{KEY}");
    let cancel = format!("anemone runs http://{address} --cancel {KEY}");
    assert!(err.contains(&watch) && err.contains(&cancel), "{err}");
    assert!(seen.try_iter().all(|request| !request.starts_with("DELETE")));

    let (address, seen) = runs(CANCELLED, true);
    let primes = format!("http://{address}/primes");
    let (status, err) = interrupted(&primes, &["--cancel-on-exit"]);
    assert_eq!(status, Some(9), "{err}");
    assert!(seen.try_iter().any(|request| request.starts_with("DELETE")));
}

#[test]
fn a_terminal_shows_the_progress_and_a_pipe_does_not() {
    let (address, _) = runs(DONE, true);
    let (terminal, end) = terminal();
    let url = format!("http://{address}/primes");
    let mut run = command(&["run", &url, "100"]);
    run.env("TERM", "xterm").stdout(Stdio::piped()).stderr(end);
    let mut run = run.spawn().unwrap();
    let _watchdog = Watchdog::of(&run);
    let (mut terminal, mut shown) = (BufReader::new(terminal), Vec::new());
    while !String::from_utf8_lossy(&shown).contains(" 42% some words, 1 min 30 s left") {
        let piece = terminal.fill_buf().unwrap().to_vec();
        terminal.consume(piece.len());
        shown.extend(piece);
    }
    ended(&["runs", &format!("{address}"), "--cancel", KEY], "", 0);
    let mut out = String::new();
    run.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(out, "{\"n\": 2}\nnull\n[2, 3]\n");
    assert_eq!(run.wait().unwrap().code(), Some(0));
}

#[test]
fn runs_are_listed_and_cancelled() {
    let (address, seen) = runs(DONE, true);
    for url in [format!("{address}"), format!("http://{address}/runs")] {
        let (out, _) = ended(&["runs", &url], "", 0);
        // The start of the runs is long ago.
        let without_times = |line: &str| {
            let (before, times) = line.split_once("  started ").unwrap();
            format!("{before}{}\n", times.split_once(" h ago").unwrap().1)
        };
        let out: String = out.lines().map(without_times).collect();
        let run = format!("http://{address}/runs/{KEY}");
        let expected = format!(
            "{run}  running 50%  /primes  ha\\u001blf\n{run}  queued  /primes  ha\\u001blf\n"
        );
        assert_eq!(out, expected);
    }
    let (out, _) = ended(&["runs", &format!("{address}"), "--output", "json"], "", 0);
    assert!(out.lines().count() == 2 && out.starts_with(&format!("{{\"key\":\"{KEY}\"")), "{out}");
    let server = format!("{address}");
    let (out, err) = ended(&["runs", &server, "--limit", "1", "--state", "running,queued"], "", 0);
    assert!(out.lines().count() == 1 && err.contains("these are the first 1 of 2 runs"), "{err}");
    let (out, err) = ended(&["runs", &server, "--state", "done"], "", 0);
    assert!(out.is_empty() && err.contains("there are no runs in this state"), "{err}");
    let (_, err) = ended(&["runs", &format!("{server}/runs/{KEY}"), "--state", "done"], "", 2);
    assert!(err.contains("--state chooses among the runs of a server"), "{err}");
    let (out, _) = ended(&["runs", &server, "--service", "/primes"], "", 0);
    assert!(out.lines().count() == 1 && out.contains("  /primes  "), "{out}");
    let args = ["runs", &server, "--service", "/fail", "--state", "done"];
    let (out, err) = ended(&args, "", 0);
    let words = "there are no runs of this service in this state";
    assert!(out.is_empty() && err.contains(words), "{err}");
    let args = ["runs", &format!("{server}/runs/{KEY}"), "--service", "/primes"];
    let (_, err) = ended(&args, "", 2);
    assert!(err.contains("--service chooses among the runs of a server"), "{err}");
    seen.try_iter().for_each(drop);
    let (out, _) = ended(&["runs", &format!("{address}"), "--cancel", KEY], "", 0);
    assert!(out.contains("/primes"), "{out}");
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), [format!("DELETE /runs/{KEY}")]);
    let (_, err) = ended(&["runs", &format!("{address}"), "--cancel", "nonsense"], "", 2);
    assert!(err.contains("nonsense is not the beginning of a run's key"), "{err}");
    ended(&["runs", &nobody().to_string(), "--retries", "0"], "", 4);
}
