//! A flag counts before a variable, that before the file, and that before the default.

use clap::Parser;

use super::*;

fn flags(line: &str) -> args::Serve {
    let words = ["anemone", "serve"].into_iter().chain(line.split_ascii_whitespace());
    match args::Args::try_parse_from(words).unwrap().command {
        args::Command::Serve(flags) => *flags,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_flag_counts_before_a_variable_and_that_before_the_file() {
    let (file, variable) = (
        "listen = \"127.0.0.1:1\"\n[limits]\nconnections_max = 1",
        ("ANEMONE_LISTEN", "127.0.0.1:2"),
    );
    let flag = flags("--listen 127.0.0.1:3 --connections-max 3");
    let listen = |config: Config| {
        let address = config.listening.listen[0].address().unwrap();
        (address.port(), config.limits.connections_max)
    };
    assert_eq!(listen(read("", &[]).unwrap()), (8080, 10_000));
    assert_eq!(listen(read(file, &[]).unwrap()), (1, 1));
    assert_eq!(listen(read(file, &[variable]).unwrap()), (2, 1));
    assert_eq!(listen(read_with(file, &[variable], &flag).unwrap()), (3, 3));
}

#[test]
fn each_flag_is_its_key() {
    let text = r#"
        listen = ["127.0.0.1:1", "unix:s", "127.0.0.1:4"]
        listen_local = ["127.0.0.1:5", "unix:t"]
        unix_mode = "600"
        host = true
        tcp = "127.0.0.1:2"
        tcp_echo = "127.0.0.1:3"
        threads = 4
        allow_origins = ["https://a.example", "https://b.example"]
        trusted_proxies = ["10.0.0.0/8"]
        allow_hosts = ["a.example", "*.b.example:81"]
        demo = true
        echo = true
        broadcast = true
        [tls]
        cert = "c"
        key = "k"
        [data]
        dir = "d"
        fsync = "always"
        [limits]
        connections_max = 5
        memory_max = "7MiB"
        [[source]]
        type = "exec"
        topic = "e"
        command = "vmstat"
        [[source]]
        type = "file"
        topic = "f"
        path = "x"
        [[source]]
        type = "stdin"
        topic = "i"
    "#;
    let line = "--listen 127.0.0.1:1 --listen unix:s --listen 127.0.0.1:4 --listen-local 127.0.0.1:5 --listen-local unix:t --unix-mode 600 --host --tcp 127.0.0.1:2 --tcp-echo 127.0.0.1:3 --threads 4 --demo \
                --echo --broadcast \
                --allow-origin https://a.example --allow-origin https://b.example --tls-cert c \
                --allow-host a.example --allow-host *.b.example:81 --trusted-proxy 10.0.0.0/8 --tls-key k --data d --fsync always --connections-max 5 --memory-max 7MiB --exec e=vmstat --file f=x \
                --stdin i";
    let (file, flags) = (read(text, &[]).unwrap(), read_with("", &[], &flags(line)).unwrap());
    assert_same(&file, &flags);

    let text = "[[source]]\ntype = \"serial\"\ntopic = \"wind\"\ndevice = \"d\"\nbaud = 50\n\
                unit = \"A\"\nmode = \"polled\"\n[[source]]\ntype = \"serial-lines\"\ntopic = \"attic\"\n\
                device = \"/dev/a@b\"\nbaud = 115200\n[[source]]\ntype = \"serial-lines\"\n\
                topic = \"scale\"\ndevice = \"e\"\nbaud = 4800\nframing = \"7E1\"\n[tls]\ndev = true\ndev_cert = \"p\"";
    let line = "--serial d --baud 50 --unit A --polled --serial-lines attic=/dev/a@b@115200 \
                --serial-lines scale=e@4800,7e1 --tls-dev --tls-dev-cert p";
    let (file, flags) = (read(text, &[]).unwrap(), read_with("", &[], &self::flags(line)).unwrap());
    assert_same(&file, &flags);
}

#[test]
fn flags_for_a_certificate_replace_all_that_is_said_of_it() {
    let config = read_with("[tls]\ncert = \"c\"\nkey = \"k\"", &[], &flags("--tls-dev")).unwrap();
    assert!(*config.tls.dev && config.tls.cert.is_none() && config.tls.key.is_none());
}

#[test]
fn a_source_of_a_flag_is_one_more() {
    let file = "[[source]]\ntype = \"stdin\"\ntopic = \"a\"\n";
    let config = read_with(file, &[], &flags("--file b=c")).unwrap();
    assert_eq!(config.sources.len(), 2);
    let error = read_with(file, &[], &flags("--file a=c")).unwrap_err().to_string();
    let expected = "--file: source.topic: a already has a source, \"stdin\" at a.toml:3:9";
    assert_eq!(error, expected);
}

#[test]
fn a_variable_is_any_key_outside_of_lists() {
    let variables = [
        ("ANEMONE_DEMO", "true"),
        ("ANEMONE_THREADS", "2"),
        ("ANEMONE_ALLOW_ORIGINS", "https://a.example, https://b.example"),
        ("ANEMONE_LIMITS__WAIT_MAX", "7s"),
        ("ANEMONE_LIMITS__PAGE_BYTES_MAX", "4096"),
        ("ANEMONE_LIMITS__WEBSOCKET__PING_INTERVAL", "3s"),
        ("ANEMONE_DATA__DIR", "d"),
        ("OTHER_LISTEN", "nonsense"),
    ];
    let text = "demo = true\nthreads = 2\nallow_origins = [\"https://a.example\", \"https://b.example\"]\n\
                data.dir = \"d\"\n[limits]\nwait_max = \"7s\"\npage_bytes_max = 4096\n\
                websocket.ping_interval = \"3s\"";
    assert_same(&read("", &variables).unwrap(), &read(text, &[]).unwrap());
}

#[test]
fn an_empty_variable_says_nothing() {
    let config = read("threads = 2", &[("ANEMONE_THREADS", ""), ("ANEMONE_NONSENSE", "")]).unwrap();
    assert_eq!(config.listening.threads.unwrap().get(), 2);
}

#[test]
fn a_variable_that_cannot_be_is_told_by_its_name() {
    for (name, value, expected) in [
        ("ANEMONE_THREADS", "many", "threads: \"many\" is not a whole number from 1 to 1024"),
        (
            "ANEMONE_LISTEN",
            "127.0.0.1:1,anemone.sock",
            "listen: \"anemone.sock\" is not a place to listen: expected IP:PORT, such as 127.0.0.1:8080, \
             0.0.0.0:80 or [::1]:8080, or unix:PATH",
        ),
        ("ANEMONE_DEMO", "1", "demo: expected true or false, but found \"1\""),
        ("ANEMONE_LISEN", "x", "there is no setting `lisen`; did you mean ANEMONE_LISTEN?"),
        ("ANEMONE_LIMITS_WAIT_MAX", "1s", "there is no setting `limits_wait_max`"),
        (
            "ANEMONE_WAIT_MAX",
            "1s",
            "there is no setting `wait_max`; did you mean ANEMONE_LIMITS__WAIT_MAX?",
        ),
        ("ANEMONE_Listen", "127.0.0.1:1", "write its name in upper case, ANEMONE_LISTEN"),
        (
            "ANEMONE_DATA",
            "d",
            "data is a table: the variables for its keys begin with ANEMONE_DATA__",
        ),
        (
            "ANEMONE_SOURCE__0__TOPIC",
            "x",
            "a variable cannot set this: only a file can have [[source]]",
        ),
        ("ANEMONE_TOPIC", "x", "a variable cannot set this: only a file can have [[topic]]"),
    ] {
        assert_eq!(faults("", &[(name, value)]), [format!("{name}: {expected}")]);
    }
    let fault =
        faults("[[source]]\ntype = \"stdin\"\ntopic = \"a\"", &[("ANEMONE_SOURCE__0__TOPIC", "x")]);
    assert_eq!(
        fault,
        ["ANEMONE_SOURCE__0__TOPIC: a variable cannot set this: only a file can have [[source]]"]
    );
}

#[test]
fn a_file_that_cannot_be_read_is_told_by_who_names_it() {
    let flag = flags("--config /no/such.toml");
    let variable = [("ANEMONE_CONFIG".into(), "/no/other.toml".into())];
    let error = Config::with(&flag, variable.clone()).unwrap_err().to_string();
    assert!(error.starts_with("--config: cannot read /no/such.toml: No such file"), "{error}");
    let error = Config::with(&args::Serve::default(), variable).unwrap_err().to_string();
    assert!(error.starts_with("ANEMONE_CONFIG: cannot read /no/other.toml: "), "{error}");
    let error = Config::with(&flags("--config /"), []).unwrap_err().to_string();
    assert!(error.starts_with("--config: cannot read /: "), "{error}");
}
