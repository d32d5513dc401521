//! Errors: the refused settings, their places, and the messages.

use super::*;

#[track_caller]
fn assert_fault(text: &str, expected: &str) {
    assert_eq!(faults(text, &[]), [format!("a.toml:{expected}")], "{text}");
}

#[test]
fn what_is_not_toml_is_told_with_its_place_each_time() {
    let value = "expected a value; strings need quotation marks, such as \"30s\"";
    for (text, expected) in [
        ("listen = ", format!("1:10: {value}")),
        ("listen = 127.0.0.1:8080", format!("1:15: {value}")),
        ("[limits]\nwait_max = 30s", format!("2:12: {value}")),
        ("listen 1", "1:8: key with no value, expected `=`".to_owned()),
        ("listen = \"x", "1:12: invalid basic string, expected `\"`".to_owned()),
        ("demo = True", "1:8: invalid boolean, expected `true`".to_owned()),
        ("[[source]", "1:10: unclosed array table, expected `]`".to_owned()),
        ("x = 1\nx = 2", "2:1: `x` is defined twice".to_owned()),
        ("[limits]\n\n[limits]", "3:2: `limits` is defined twice".to_owned()),
    ] {
        assert_fault(text, &expected);
    }
    assert_eq!(faults("a = \nb = \n", &[]).len(), 2, "each line by itself");
}

#[test]
fn an_unknown_key_is_told_with_what_is_probably_meant() {
    for (text, expected) in [
        ("lisen = 1", "1:1: unknown key `lisen`; did you mean `listen`?"),
        ("\n  colour = 1", "2:3: unknown key `colour`"),
        ("[limit]", "1:2: unknown key `limit`; did you mean `limits`?"),
        (
            "[limits]\nwaitmax = \"1s\"",
            "2:1: unknown key `limits.waitmax`; did you mean `limits.wait_max`?",
        ),
        ("limits.websocket.idle = 1", "1:18: unknown key `limits.websocket.idle`"),
        ("wait_max = \"1s\"", "1:1: unknown key `wait_max`; did you mean `limits.wait_max`?"),
        ("dir = \"d\"", "1:1: unknown key `dir`; did you mean `data.dir`?"),
        (
            "[[topic]]\nname = \"a\"\npublsh = \"anyone\"",
            "3:1: unknown key `topic.publsh`; did you mean `topic.publish`?",
        ),
        (
            "[[source]]\ntype = \"stdin\"\ntopic = \"a\"\nbaud = 9600",
            "4:1: unknown key `source.baud`",
        ),
    ] {
        assert_fault(text, expected);
    }
}

#[test]
fn a_value_of_another_kind_is_told_with_what_is_expected() {
    for (text, expected) in [
        ("listen = 8080", "1:10: listen: expected a string, but found a number"),
        ("demo = \"yes\"", "1:8: demo: expected true or false, but found a string"),
        (
            "threads = 1.5",
            "1:11: threads: expected a whole number, but found a number with a fraction",
        ),
        ("threads = \"2\"", "1:11: threads: expected a whole number, but found a string"),
        ("limits = 5", "1:10: limits must be a table, [limits], but is a number"),
        (
            "allow_origins = \"*\"",
            "1:17: allow_origins: expected a list, such as [\"a\", \"b\"], but found a string",
        ),
        ("[source]", "1:1: this is a list of tables: write [[source]] instead of [source]"),
        ("topic = 1", "1:9: topic must be a list of tables, [[topic]], but is a number"),
        ("topic = [1]", "1:10: topic must be a table, [[topic]], but is a number"),
        (
            "[limits]\nheartbeat = 15",
            "2:13: limits.heartbeat: expected a duration with a unit, such as \"30s\", but found a number",
        ),
        (
            "[limits]\npage_bytes_max = true",
            "2:18: limits.page_bytes_max: expected a number of bytes, such as 4096 or \"4KiB\", but found \
             true or false",
        ),
    ] {
        assert_fault(text, expected);
    }
}

#[test]
fn a_value_that_cannot_be_is_told_with_what_can() {
    for (text, expected) in [
        (
            "listen = \"8080\"",
            "1:10: listen: \"8080\" is not a place to listen: a port without an address: expected 127.0.0.1:8080, \
             for this machine only, or 0.0.0.0:8080, for other machines, too",
        ),
        (
            "listen = \"a:8080\"",
            "1:10: listen: \"a:8080\" is not a place to listen: expected IP:PORT, such as 127.0.0.1:8080, \
             0.0.0.0:80 or [::1]:8080, or unix:PATH",
        ),
        (
            "tcp = \"unix:s\"",
            "1:7: tcp: \"unix:s\" is not an address: expected IP:PORT, such as 127.0.0.1:8080, 0.0.0.0:80 or [::1]:8080",
        ),
        ("threads = 0", "1:11: threads: 0 is not a whole number from 1 to 1024"),
        ("threads = -1", "1:11: threads: -1 is not a whole number from 1 to 1024"),
        (
            "allow_origins = [\"x\"]",
            "1:17: allow_origins: \"x\" is not an origin: it has no scheme, write http://x or https://x",
        ),
        (
            "data.fsync = \"allways\"",
            "1:14: data.fsync: \"allways\" is not one of \"always\", \"interval\", \"never\"; did you mean \
             \"always\"?",
        ),
        ("data.dir = \"\"", "1:12: data.dir: it is empty"),
        ("data.dir = \"a\\u0000\"", "1:12: data.dir: it contains a NUL character"),
        (
            "[[topic]]\nname = \"*\"",
            "2:8: topic.name: \"*\" is not a pattern for topics: expected a topic's name, or the first 1 to 127 \
             characters of one followed by *",
        ),
    ] {
        assert_fault(text, expected);
    }
}

#[test]
fn what_is_missing_is_told_where_it_should_be() {
    for (text, expected) in [
        (
            "\n[[topic]]\n",
            "2:1: `topic.name` is missing: the topic, such as \"wind\", or a pattern for all names that begin \
             alike, such as \"scratch-*\"",
        ),
        (
            "[[source]]\ntopic = \"a\"",
            "1:1: `source.type` is missing: \"serial\", \"serial-lines\", \"exec\", \"file\", \"stdin\" or \"host\"",
        ),
        (
            "[[source]]\ntype = \"stdin\"",
            "1:1: `source.topic` is missing: the name of the topic for its events, such as \"cpu\"",
        ),
        (
            "[[source]]\ntype = \"serial\"\ntopic = \"a\"",
            "1:1: `source.device` is missing: the serial device, such as \"/dev/ttyUSB0\"",
        ),
        (
            "[[source]]\ntype = \"serial-lines\"\ntopic = \"a\"\ndevice = \"d\"\nframing = \"9N1\"",
            "5:11: source.framing: expected data bits, parity and stop bits, such as 8N1, 7E1 or 8O2",
        ),
        (
            "[[source]]\ntype = \"file\"\ntopic = \"a\"",
            "1:1: `source.path` is missing: the file to follow, such as \"/var/log/syslog\"",
        ),
        (
            "[[source]]\ntype = \"exec\"\ntopic = \"a\"",
            "1:1: `source.command` is missing: a shell command, such as \"vmstat 1\", or a program and its \
             arguments, such as [\"vmstat\", \"1\"]",
        ),
    ] {
        assert_fault(text, expected);
    }
}

#[test]
fn what_must_be_said_and_is_misspelled_is_told_once() {
    for (text, expected) in [
        ("[[topic]]\nnmae = \"a\"", "2:1: unknown key `topic.nmae`; did you mean `topic.name`?"),
        (
            "[[source]]\ntyp = \"stdin\"",
            "2:1: unknown key `source.typ`; did you mean `source.type`?",
        ),
        (
            "[[source]]\ntype = \"exec\"\ntopic = \"a\"\ncomand = \"b\"",
            "4:1: unknown key `source.comand`; did you mean `source.command`?",
        ),
    ] {
        assert_fault(text, expected);
    }
    let found = faults("[[topic]]\npublish = \"all\"\nx = 1", &[]);
    assert_eq!(found.len(), 3, "the rest is looked at without a name, too: {found:?}");
}

#[test]
fn a_bad_command_or_environment_is_refused() {
    let exec = |rest: &str| format!("[[source]]\ntype = \"exec\"\ntopic = \"a\"\n{rest}");
    for (rest, expected) in [
        (
            "command = []",
            "4:11: source.command: the list is empty: expected a program and its arguments",
        ),
        ("command = \"\"", "4:11: source.command: it is empty"),
        ("command = [\"a\", 1]", "4:11: source.command: expected a string, but found a number"),
        (
            "command = \"a\"\nenvironment = [\"A=b\"]",
            "5:15: source.environment: expected a table, such as { TZ = \"UTC\" }",
        ),
        (
            "command = \"a\"\nenvironment = { \"A=B\" = \"c\" }",
            "5:15: source.environment: \"A=B\" is not a valid name of a variable",
        ),
        (
            "command = \"a\"\nenvironment = { A = 1 }",
            "5:15: source.environment: A: expected a string, but found a number",
        ),
        (
            "command = \"a\"\nretry_min = \"1min\"",
            "5:13: source.retry_min, 1min, is longer than source.retry_max, 30s",
        ),
    ] {
        assert_fault(&exec(rest), expected);
    }
}

#[test]
fn everything_is_told_at_once_in_the_order_of_the_file() {
    let text =
        "lisen = 1\nthreads = 0\n[[topic]]\nname = \"a b\"\nevents_max = 0\n[limits]\nx = 1\n";
    let found = faults(text, &[("ANEMONE_TPC", "1"), ("ANEMONE_DEMO", "maybe")]);
    let places: Vec<_> = found.iter().map(|fault| fault.split(": ").next().unwrap()).collect();
    let expected =
        ["a.toml:1:1", "a.toml:2:11", "a.toml:4:8", "a.toml:5:14", "a.toml:7:1", "ANEMONE_DEMO"];
    assert_eq!(places[..6], expected, "{found:?}");
    assert_eq!(places[6..], ["ANEMONE_TPC"]);
}

#[test]
fn two_listeners_have_two_addresses() {
    for (rest, is_fine) in [
        ("tcp = \"127.0.0.1:8080\"", false),
        ("tcp = \"0.0.0.0:8080\"", false),
        ("tcp = \"127.0.0.2:8080\"", true),
        ("tcp = \"127.0.0.1:8081\"", true),
        ("tcp = \"127.0.0.1:0\"\ntcp_echo = \"127.0.0.1:0\"", true),
        ("tcp = \"127.0.0.1:1\"\ntcp_echo = \"127.0.0.1:1\"", false),
    ] {
        assert_eq!(read(rest, &[]).is_ok(), is_fine, "{rest}");
    }
    assert_fault(
        "tcp = \"127.0.0.1:8080\"",
        "1:7: tcp: 127.0.0.1:8080 is taken by listen, 127.0.0.1:8080",
    );
}

#[test]
fn a_certificate_and_its_key_go_together() {
    for (text, expected) in [
        ("tls.cert = \"a\"", "1:12: tls.cert: tls.key, the certificate's private key, is missing"),
        ("tls.key = \"a\"", "1:11: tls.key: tls.cert, the certificate of this key, is missing"),
        (
            "[tls]\ncert = \"a\"\nkey = \"b\"\ndev = true",
            "4:7: tls.dev: there already is a certificate, tls.cert at a.toml:2:8",
        ),
    ] {
        assert_fault(text, expected);
    }
}

#[test]
fn when_to_flush_is_nothing_without_a_directory() {
    let fault = "1:14: data.fsync: flushing needs a data directory: data.dir, or --data";
    assert_fault("data.fsync = \"always\"", fault);
    read("data.fsync = \"always\"\ndata.dir = \"d\"", &[]).unwrap();
    let flags = args::Serve { fsync: Some(args::Fsync::Interval), ..args::Serve::default() };
    let error = read_with("", &[], &flags).unwrap_err().to_string();
    assert!(error.starts_with("--fsync: data.fsync: flushing needs a data directory"), "{error}");
    let flags = args::Serve { adopt_data: true, ..args::Serve::default() };
    let error = read_with("", &[], &flags).unwrap_err().to_string();
    assert!(error.starts_with("--adopt-data: there is no data directory to adopt"), "{error}");
    assert!(read_with("data.dir = \"d\"", &[], &flags).unwrap().data.options().adopt);
}

#[test]
fn rules_that_do_not_go_together_are_refused() {
    for (text, expected) in [
        (
            "[[topic]]\nname = \"a*\"\n[[topic]]\nname = \"a*\"",
            "4:8: topic.name: there already is a rule for a*, at a.toml:2:8",
        ),
        (
            "[[topic]]\nname = \"a\"\npublish = \"anyone\"\nbytes_max = \"64KiB\"",
            "2:8: topic: bytes_max of a must be at least 65792 bytes, to hold one event of the largest size allowed",
        ),
        (
            "[[topic]]\nname = \"a\"\ntopics_max = 5",
            "3:14: topic.topics_max: \"a\" is a single topic; this key needs a pattern, such as \"a-*\"",
        ),
        (
            "[[topic]]\nname = \"a\"\nbytes_total_max = 5",
            "3:19: topic.bytes_total_max: \"a\" is a single topic; this key needs a pattern, such as \"a-*\"",
        ),
        (
            "[[topic]]\nname = \"a\"\nunits = \"m/s\"",
            "3:9: topic.units: expected a table, such as { speed = \"m/s\" }",
        ),
        (
            "[[topic]]\nname = \"a\"\nunits = { speed = 3 }",
            "3:9: topic.units: speed: expected a string, but found a number",
        ),
        (
            "[[topic]]\nname = \"a\"\nunits = { speed = \"metres per second\" }",
            "2:8: topic: units of a must be at most 32, each of 1 to 16 visible characters, for paths of 1 to 64 bytes",
        ),
        (
            "[[topic]]\nname = \"a\"\nslow_reader = \"wait\"",
            "3:15: topic.slow_reader: \"wait\" is not one of \"gap\", \"close\"",
        ),
        (
            "[[topic]]\nname = \"a*\"\nbytes_max = \"16MiB\"\nbytes_total_max = 16777215",
            "2:8: topic: all topics a* together must retain at least 16777216 bytes, as much as each of them may",
        ),
        (
            "[[source]]\ntype = \"stdin\"\ntopic = \"a\"\n[[topic]]\nname = \"a.status\"\npublish = \"anyone\"",
            "5:8: topic.publish: a.status is the status of a source, and only that source may publish to it",
        ),
    ] {
        assert_fault(text, expected);
    }
}

#[test]
fn each_topic_has_one_source() {
    let stdin = |topic: &str| format!("[[source]]\ntype = \"stdin\"\ntopic = \"{topic}\"\n");
    let file =
        |topic: &str| format!("[[source]]\ntype = \"file\"\npath = \"p\"\ntopic = \"{topic}\"\n");
    let exec = |topic: &str| {
        format!(
            "[[source]]\ntype = \"exec\"\ncommand = \"p\"\nstderr = \"topic\"\ntopic = \"{topic}\"\n"
        )
    };
    let longest = "x".repeat(121);
    for (text, expected) in [
        (
            file("a") + &stdin("a"),
            "7:9: source.topic: a already has a source, \"file\" at a.toml:4:9".to_owned(),
        ),
        (
            file("a") + &file("a.status"),
            "8:9: source.topic: a.status already has a source, \"file\" at a.toml:4:9".to_owned(),
        ),
        (
            exec("a") + &file("a.stderr"),
            "9:9: source.topic: a.stderr already has a source, \"exec\" at a.toml:5:9".to_owned(),
        ),
        (
            stdin("a") + &stdin("b"),
            "6:9: only one source can read standard input, and it already goes to a (a.toml:3:9)".to_owned(),
        ),
        (
            "host = true\n".to_owned() + &file("host"),
            "5:9: source.topic: host already has the load of this machine; host = false turns that off, and a \
             source of type \"host\" publishes it to another topic"
                .to_owned(),
        ),
        (
            "demo = true\n".to_owned() + &file("wind"),
            "1:8: source.topic: wind already has a source, \"file\" at a.toml:5:9".to_owned(),
        ),
        (
            "demo = true\n".to_owned() + &file("messages"),
            "5:9: source.topic: messages has the records of the demo: choose another name, or do without the demo"
                .to_owned(),
        ),
        (
            "demo = true\n[[topic]]\nname = \"messages\"\n".to_owned(),
            "3:8: topic.name: messages has the records of the demo: choose another name, or do without the demo"
                .to_owned(),
        ),
        (
            file(&format!("{longest}x")),
            "4:9: source.topic: the name is too long to append .status: at most 121 characters".to_owned(),
        ),
    ] {
        let found = faults(&text, &[]);
        assert_eq!(found, [format!("a.toml:{expected}")], "{text}");
    }
    read(&file(&longest), &[]).unwrap();
    read(&("host = false\n".to_owned() + &file("host")), &[]).unwrap();
}

#[test]
fn a_device_is_read_once() {
    let source = |kind: &str, topic: &str| {
        format!("[[source]]\ntype = \"{kind}\"\ndevice = \"/dev/a\"\ntopic = \"{topic}\"\n")
    };
    for kinds in [["serial", "serial"], ["serial", "serial-lines"], ["serial-lines", "serial"]] {
        assert_fault(
            &(source(kinds[0], "a") + &source(kinds[1], "b")),
            "7:10: source.device: another source already reads /dev/a, at a.toml:3:10",
        );
    }
}

#[test]
fn each_path_has_the_files_of_one_directory() {
    let dir = |rest: &str| format!("[[static]]\ndir = \"www\"\n{rest}");
    for (text, expected) in [
        (
            dir("") + &dir("path = \"/\"\n"),
            "4:7: static.path: / already serves the files of www (a.toml:2:7)",
        ),
        (
            dir("path = \"/docs\"\n") + &dir("path = \"/docs/\"\n"),
            "5:7: static.path: /docs/ already serves the files of www (a.toml:2:7)",
        ),
        (
            dir("path = \"docs/\"\n"),
            "3:8: static.path: \"docs/\" is not a path for files: expected \"/\", or names of letters, digits, \
             - . _ and ~ that do not begin with a dot, such as \"/docs/\"",
        ),
        (
            dir("path = \"/topics/mine/\"\n"),
            "3:8: static.path: no file can be served at /topics/mine/: /topics is the server's own",
        ),
        (
            dir("path = \"/wind/\"\n"),
            "3:8: static.path: /wind/ contains files of the built-in page, which would then be hidden: choose another path",
        ),
        (
            dir("cache_control = \"\\n\"\n"),
            "3:17: static.cache_control: \"\\n\" cannot be sent as Cache-Control: expected visible ASCII, such as \"max-age=3600\"",
        ),
        (
            "[[static]]\npath = \"/docs/\"\n".to_owned(),
            "1:1: `static.dir` is missing: the directory to serve files from, such as \"www\"",
        ),
        (
            "[static]\n".to_owned(),
            "1:1: this is a list of tables: write [[static]] instead of [static]",
        ),
    ] {
        assert_fault(&text, expected);
    }
    let both = dir("path = \"/docs/\"\ncache_control = \"max-age=60\"\n") + &dir("");
    assert_eq!(read(&both, &[]).unwrap().files.len(), 2);
    let flags = args::Serve { static_dir: Some("page".into()), ..args::Serve::default() };
    let error = read_with(&dir(""), &[], &flags).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--static: static.path: / already serves the files of www (a.toml:2:7)"
    );
    assert!(error.is_wrong_use());
}
