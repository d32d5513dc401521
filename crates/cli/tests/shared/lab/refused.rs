//! Servers, files and links that cannot be measured: faults are counted, and the words say what is missing or wrong.

use anemone_testing::nobody;

use super::*;

#[test]
fn what_fails_is_counted_and_makes_the_verdict_invalid() {
    // A server that closes every connection.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let file = directory.path().join("server.toml");
    std::fs::write(&file, format!("url = \"http://{address}\"\nget = \"/\"\n")).unwrap();
    let file = file.to_str().unwrap();
    let output = lab(&["connect", "--quick", "--rounds", "1", "--target", file, "--out", out]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(12), "{said}");
    assert!(said.contains("server.toml, get: "), "tried before: {said}");
    assert!(said.contains("invalid: connect: HTTP in case "), "{said}");
    let json = std::fs::read_to_string(directory.path().join("connect.json")).unwrap();
    let report: Value = serde_json::from_str(&json).unwrap();
    let reason = report["invalid"].as_str().unwrap();
    assert!(reason.contains("0 of 10 came (closed by the server: 10)"), "{reason}");
    // `all` measures the experiments for which the file has enough.
    let output = lab(&["all", "--quick", "--rounds", "1", "--target", file]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("left out, ") && said.contains(" wind"), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).matches("\n## ").count(), 0, "only connect");
}

#[test]
fn a_path_that_the_server_does_not_have_ends_the_lab_before_it_measures() {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // What looks whether a server is there asks for nothing.
            if stream.read(&mut [0; 4096]).is_ok_and(|len| len > 0) {
                let _ =
                    stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnope");
            }
        }
    });
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("server.toml");
    std::fs::write(&file, format!("url = \"http://{address}\"\nget = \"/\"\n")).unwrap();
    let output = lab(&["connect", "--quick", "--target", file.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty(), "nothing was measured");
    assert!(said.contains("server.toml, get: the server answered with status 404: nope"), "{said}");
    assert!(said.contains("correct it, or leave it out of the file"), "{said}");
}

#[test]
fn a_silent_server_is_not_asked_in_each_case() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("server.toml");
    let echo = "[echo]\nwebsocket = \"/echo\"\nhttp = \"/echo\"\n";
    std::fs::write(&file, format!("url = \"http://{address}\"\n{echo}")).unwrap();
    let out = directory.path().to_str().unwrap();
    let output = lab(&["sizes", "--quick", "--target", file.to_str().unwrap(), "--out", out]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(12), "{said}");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("nothing came in time: 1"), "{told}");
    // A series that was never asked has no figures of this machine either, and the report counts them.
    let json = std::fs::read_to_string(directory.path().join("sizes.json")).unwrap();
    let report: Value = serde_json::from_str(&json).unwrap();
    let series = report["series"].as_array().unwrap();
    let of = |kind: &str| series.iter().filter(|one| one["faults"].get(kind).is_some()).count();
    assert_eq!((of("stalled"), of("not-asked"), series.len()), (8, 16, 24), "{json}");
    for one in series {
        assert_eq!(one["strain"].is_null(), one["faults"].get("stalled").is_none(), "{one}");
        assert_eq!(one["received"], 0, "{one}");
    }
    let method = report["method"].to_string();
    assert!(method.contains("Not asked: 16 of 24, each a contender in a case"), "{method}");
    assert!(told.contains("| 0 / 1 | – | – | not asked: 1 |"), "{told}");
    // The kernel has opened them; nobody has accepted one.
    listener.set_nonblocking(true).unwrap();
    let opened = std::iter::from_fn(|| listener.accept().ok()).count();
    // One looks whether a server is there, two try what the file says, and one is for each case that is asked, of 24.
    assert!((9..=16).contains(&opened), "{opened} connections");
}

#[test]
fn a_server_that_is_not_there_has_a_status_of_its_own() {
    let free = nobody();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("server.toml");
    std::fs::write(&file, format!("url = \"http://{free}\"\nget = \"/\"\n")).unwrap();
    for target in [&format!("http://{free}"), file.to_str().unwrap()] {
        let output = lab(&["connect", "--quick", "--target", target]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(4) && said.contains("no server at"), "{said}");
    }
    // An HTTP server that is not Anemone.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = BufReader::new(stream.try_clone().unwrap()).read_line(&mut String::new());
            let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let output = lab(&["connect", "--quick", "--target", &target]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(4) && said.contains("is not an Anemone server"), "{said}");
}

#[test]
fn a_server_is_measured_within_tls() {
    let args = ["serve", "--listen", "127.0.0.1:0", "--threads", "1", "--demo", "--tls-dev"];
    let mut server = Process::start(&args);
    let line = server.line();
    let url = line.strip_prefix("listening on ").unwrap();
    assert!(url.starts_with("https://"), "{url}");
    let target = ["--target", url, "--rounds", "2"];
    let opening = report("connect", &target);
    for contender in ["HTTP over TLS", "WebSocket over TLS"] {
        values(&opening, "until an answer is there", contender, "opening");
    }
    // Long messages, too: they are sent and read at the same time.
    report("sizes", &target);
    let wind = report("wind", &target);
    let answer = wind["answer"].as_str().unwrap();
    assert!(answer.ends_with(", the way from here to the server included."), "{answer}");
    assert!(wind["models"].as_array().is_none_or(Vec::is_empty), "{wind}");
    // Its 157,000 states in a round take a while.
    if std::env::var_os("TEST_SOAK").is_some() {
        report("progress", &["--target", url, "--rounds", "1"]);
    }
    // A record of TLS 1.3 has 22 bytes more than what is in it: a header of 5, the type, and a tag of 16.
    let overhead = report("overhead", &target);
    for (case, bytes) in [("1 B", 1 + 6 + 22), ("1 KiB", 1024 + 8 + 22)] {
        let bytes = f64::from(bytes);
        assert_eq!(values(&overhead, case, "WebSocket", "a message to the server")[0], bytes);
    }
    let output = lab(&["amortise", "--quick", "--target", url]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("without TLS"), "{said}");
}

#[test]
fn the_kernel_emulates_a_link_if_it_can_and_says_what_it_lacks_if_not() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    // The loopback of this machine is for the other tests, so it has one of its own where that is allowed.
    let script = "[ -z \"$0\" ] || ip link set lo up; \"$@\"; status=$?; echo \"left: $(tc qdisc show dev lo)\" >&2; exit $status";
    let has_own = Command::new("unshare").args(["-n", "true"]).status();
    let own = ["unshare", "-n", "sh", "-c", script, "own"];
    let same = ["sh", "-c", script, ""];
    let is_own = has_own.is_ok_and(|status| status.success());
    let words = if is_own { &own[..] } else { &same[..] };
    let output = Command::new(words[0])
        .args(&words[1..])
        .args([
            env!("CARGO_BIN_EXE_anemone"),
            "lab",
            "connect",
            "--quick",
            "--rounds",
            "1",
            "--netem",
        ])
        .args(["--link", "delay=20ms,rate=10mbit", "--out", out])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(2) {
        // Nothing is left of it, and this says why.
        assert!(said.contains("--netem: tc qdisc add dev lo"), "{said}");
        assert!(said.contains("it needs root, tc, and a kernel with sch_prio"), "{said}");
    } else {
        let json = std::fs::read_to_string(directory.path().join("connect.json")).unwrap();
        let report: Value = serde_json::from_str(&json).unwrap();
        // The opening and the first echo.
        assert!(values(&report, "until an answer is there", "TCP", "opening")[0] >= 80.0, "{said}");
        assert!(report["environment"]["has_netem"].as_bool().unwrap());
        // Beside other tests, the link or the generator may be late, and says so.
        let reason = report["invalid"].as_str().unwrap_or_default();
        assert!(is_late(reason), "{reason} {said}");
    }
    let (_, left) = said.rsplit_once("left: ").unwrap();
    assert!(!left.contains("netem"), "{left}");
}

#[test]
fn a_server_without_the_demonstration_is_told_what_it_lacks() {
    let mut server = Process::start(&["serve", "--listen", "127.0.0.1:0", "--threads", "1"]);
    let line = server.line();
    let url = line.strip_prefix("listening on ").unwrap();
    for (name, words) in [
        ("connect", "has no /echo: start it with --demo or --echo"),
        ("echo", "has no /echo: start it with --demo or --echo"),
        ("wind", "has no topics scratch-lab-* for the lab: start it with --demo"),
    ] {
        let output = lab(&[name, "--quick", "--target", url]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(4) && said.contains(words), "{name}: {said}");
        assert!(!said.contains('{') && said.lines().count() == 1, "one sentence: {said}");
    }
}

#[test]
fn an_interruption_before_anything_was_measured_leaves_earlier_reports_alone() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("server.toml");
    std::fs::write(&file, format!("url = \"http://{address}\"\nget = \"/\"\n")).unwrap();
    let earlier = directory.path().join("connect.json");
    std::fs::write(&earlier, "earlier").unwrap();
    let [file, out] = [file.as_path(), directory.path()].map(|path| path.to_str().unwrap());
    let child = Command::new(env!("CARGO_BIN_EXE_anemone"))
        .args(["lab", "connect", "--quick", "--target", file, "--out", out])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // It has come so far that it listens for signals.
    let first = listener.accept().unwrap();
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    drop(first);
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(130) && output.stdout.is_empty(), "{said}");
    assert!(said.contains("connect was interrupted before anything was measured"), "{said}");
    assert_eq!(std::fs::read_to_string(&earlier).unwrap(), "earlier");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn a_full_disk_leaves_earlier_reports_whole_and_no_other_file() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let files = || {
        let files = std::fs::read_dir(directory.path()).unwrap();
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        files.into_iter().map(|file| (std::fs::read(&file).unwrap(), file)).collect::<Vec<_>>()
    };
    let run = ["lab", "overhead", "--quick", "--rounds", "1", "--out", out];
    assert!(is_measured(&lab(&run[1..])));
    let earlier = files();
    // No file may have more than 512 or 1,024 bytes, as on a disk that has no more room.
    let limited = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
    let output = Command::new("sh")
        .args(["-c", limited, env!("CARGO_BIN_EXE_anemone")])
        .args(run)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1), "{said}");
    assert!(said.contains("overhead.json (new and whole: none; the other files"), "{said}");
    assert!(files() == earlier, "{:?}", std::fs::read_dir(directory.path()).unwrap());
}

#[test]
fn a_quick_run_has_too_few_rounds_and_says_so() {
    let report = report("connect", &[]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("connect.json");
    std::fs::write(&path, report.to_string()).unwrap();
    let out = directory.path().join("all.html");
    let output = lab(&["report", path.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    assert!(output.status.success());
    let html = std::fs::read_to_string(&out).unwrap();
    let few = "With 4 rounds, no difference is sure: measure at least 6 (--rounds 6).</p>";
    assert!(html.contains(few), "{html}");
    assert!(html.contains("too few rounds") && !html.contains("not distinguishable"), "{html}");
    assert!(String::from_utf8_lossy(&lab(&["--help"]).stdout).contains("too few"));
}

#[test]
fn what_is_no_link_and_no_target_is_refused_with_words() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    for (args, words) in [
        (&["echo", "--link", "moon"][..], "satellite"),
        (&["echo", "--link", "delay=40ms,delay=50ms"], "each once"),
        (&["echo", "--link", "rate=99999999999999999999mbit"], "100gbit"),
        (&["echo", "--target", "/dev/zero"], "/dev/zero is not a regular file"),
        (&["echo", "--target", manifest], "Cargo.toml describes no server: "),
        (&["echo", "--target", "ftp://host"], "not the URL of a server"),
        (&["echo", "--target", "http://:8080"], "not the URL of a server"),
        (&["echo", "--target", "http://127.0.0.1:99999"], "a port is a number from 1 to 65535"),
        (&["echo", "--rounds", "0"], "expected 1 to 1000 rounds"),
        (&["echo", "--rounds", "many"], "expected 1 to 1000 rounds"),
        (&["echo", "--seed", "any"], "expected a whole number"),
        (&["agent", "--listen", "7000"], "a port without an address: expected 0.0.0.0:7000"),
        (&["agent", "--listen", "here"], "expected IP:PORT, such as 192.0.2.7:7000"),
        (&["wind", "--agent", "127.0.0.1"], "expected HOST:PORT, such as 192.0.2.7:7000"),
        (&["nothing"], "possible values"),
        (&["wind", "--rate", "4"], "advise"),
        (&["wind", "--netem"], "without --link there is none"),
        (&["wind", "--target", "127.0.0.1:1"], "a URL such as http://127.0.0.1:1"),
    ] {
        let output = lab(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words), "{args:?}: {said}");
    }
    let output = lab(&["wind", "--out", "/proc/nowhere"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("creating the directory"), "{said}");
    // Nobody can create a file there. It is told before anything is measured.
    let output = lab(&["wind", "--out", "/proc"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && output.stdout.is_empty(), "{said}");
    assert!(said.contains("writing into the directory /proc"), "{said}");
}

#[test]
fn a_url_that_no_server_has_is_wrong_use_of_the_doctor() {
    for (url, words) in [
        ("http://127.0.0.1:99999", "a port is a number from 1 to 65535"),
        ("http://:8080", "not the URL of a server, such as"),
        ("http://127.0.0.1/?a", "no query"),
    ] {
        let doctor = Command::new(env!("CARGO_BIN_EXE_anemone")).args(["doctor", url]).output();
        let output = doctor.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words), "{url}: {said}");
    }
}
