//! A value that is given is the one that holds.

use anemone_hub::{Retention, Storage};
use anemone_server::{Limits, PublishRight, TopicRule};
use std::path::Path;
use std::time::Duration;

use anemone_sources::exec::{Command, Restart};
use anemone_sources::file::Origin;
use anemone_sources::windsonic::Mode;

use anemone_server::SlowReader;

use super::super::load::SCRATCH_RETENTION;
use super::*;

#[test]
fn every_table_is_read() {
    let text = r#"
        listen = "[::1]:80"
        threads = 3
        allow_origins = ["https://a.example", "*"]
        [tls]
        dev = true
        [data]
        dir = "d"
        fsync_interval = "250ms"
        segment_bytes_max = 4096
        [limits]
        connections_max = 5
        wait_max = "90s"
        page_bytes_max = "2MiB"
        websocket.message_bytes_max = "1MiB"
        multiplexed.idle_timeout = "2min"
        [deflate]
        level = 9
        own_context_takeover = true
    "#;
    let config = read(text, &[]).unwrap();
    assert_eq!(config.listening.listen[0].to_string(), "[::1]:80");
    assert_eq!(config.listening.threads.unwrap().get(), 3);
    assert_eq!(config.listening.allow_origins.len(), 2);
    assert!(*config.tls.dev);
    let data = config.data.options();
    assert_eq!(data.fsync, anemone_hub::Fsync::Interval(Duration::from_millis(250)));
    assert_eq!(data.segment_bytes_max, 4096);
    let limits = &config.limits;
    assert_eq!((limits.connections_max, limits.wait_max.as_secs()), (5, 90));
    assert_eq!(limits.page.bytes_max, 2 << 20);
    assert_eq!(limits.websocket.message_bytes_max, 1 << 20);
    assert_eq!(limits.websocket.frame_bytes_max, 1 << 20, "as large as a message");
    assert_eq!(limits.multiplexed.idle_timeout.as_secs(), 120);
    let deflate = limits.deflate.as_ref().unwrap();
    assert_eq!((deflate.level.get(), deflate.own_context_takeover), (9, true));
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_file_and_utf_16_comes_with_its_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.toml");
    std::fs::write(&path, "\u{feff}threads = 3\nthread = 3\n").unwrap();
    Node::read(&path, &super::super::place::Place::Default).unwrap();
    let utf_16: Vec<u8> = "threads = 3\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for mark in [&b""[..], b"\xff\xfe"] {
        std::fs::write(&path, [mark, &utf_16].concat()).unwrap();
        let error =
            Node::read(&path, &super::super::place::Place::Default).unwrap_err().to_string();
        assert!(error.contains("iconv -f UTF-16"), "{error}");
    }
}

#[test]
fn the_defaults_are_those_of_the_libraries() {
    let config = read("", &[]).unwrap();
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.data.options(), anemone_hub::DataOptions::default());
    assert!(config.topics.is_empty() && config.data.dir.is_none());
    assert!(config.sources.is_empty(), "{:?}", config.sources);
    let config = read("host = true", &[]).unwrap();
    let host = &config.sources[..];
    assert!(matches!(host, [Source { kind: Kind::Host(_), .. }]), "{host:?}");
    assert_eq!(read("demo = true\nhost = false", &[]).unwrap().sources.len(), 1);
}

#[test]
fn compression_can_be_switched_off() {
    assert!(read("deflate.enabled = false", &[]).unwrap().limits.deflate.is_none());
}

#[test]
fn when_to_flush_is_chosen() {
    use anemone_hub::Fsync;
    for (word, expected) in [("always", Fsync::Always), ("never", Fsync::Never)] {
        let config = read(&format!("[data]\ndir = \"d\"\nfsync = \"{word}\""), &[]).unwrap();
        assert_eq!(config.data.options().fsync, expected);
    }
}

#[test]
fn a_rule_is_read_with_all_its_keys() {
    let text = r#"
        [[topic]]
        name = "chat-*"
        publish = "anyone"
        events_max = 7
        bytes_max = "1GiB"
        age_max = "7d"
        event_bytes_max = "1KiB"
        topics_max = 3
        slow_reader = "close"
        units = { speed = "m/s", "motor.current" = "A" }
        keys_max = 9
        keys_age_max = "1min"
        storage = "memory"
    "#;
    let config = read(text, &[]).unwrap();
    let expected = TopicRule {
        publish: PublishRight::Anyone,
        retention: Retention {
            events_max: 7,
            bytes_max: 1 << 30,
            age_max: Duration::from_secs(7 * 86_400),
        },
        event_bytes_max: 1024,
        topics_max: 3,
        slow_reader: SlowReader::Close,
        units: [("speed", "m/s"), ("motor.current", "A")]
            .map(|(field, unit)| (field.into(), unit.into()))
            .into(),
        keys: anemone_hub::KeyWindow { keys_max: 9, age_max: Duration::from_secs(60) },
        storage: Storage::Memory,
        ..TopicRule::new("chat-*".parse().unwrap())
    };
    assert_eq!(config.topics[0].value, expected);
}

#[test]
fn sources_of_every_type_are_read_any_number_of_each() {
    let text = r#"
        [[source]]
        type = "serial"
        topic = "wind-1"
        device = "/dev/ttyUSB0"
        mode = "polled"
        baud = 4800
        [[source]]
        type = "serial"
        topic = "wind-2"
        device = "/dev/ttyUSB1"
        [[source]]
        type = "serial-lines"
        topic = "attic"
        device = "/dev/ttyUSB2"
        baud = 115200
        framing = "7E1"
        [[source]]
        type = "exec"
        topic = "cpu"
        command = ["vmstat", "-n", ""]
        restart = "on-failure"
        stderr = "topic"
        directory = "/tmp"
        environment = { TZ = "UTC", EMPTY = "" }
        [[source]]
        type = "exec"
        topic = "load"
        command = "uptime"
        [[source]]
        type = "file"
        topic = "log"
        path = "x.log"
        from = "start"
        [[source]]
        type = "host"
        topic = "machine"
        interval = "1s"
    "#;
    let config = read(text, &[]).unwrap();
    let [wind, wind_2, attic, cpu, load, log, machine] = &config.sources[..] else {
        panic!("{:?}", config.sources)
    };
    let Kind::Serial(options) = &wind.kind else { panic!("{wind:?}") };
    assert_eq!((options.mode, options.baud), (Mode::Polled, 4800));
    assert_eq!(wind_2.topic.as_str(), "wind-2");
    let Kind::SerialLines(options) = &attic.kind else { panic!("{attic:?}") };
    assert_eq!((options.path.as_path(), options.baud), (Path::new("/dev/ttyUSB2"), 115_200));
    assert_eq!(options.framing.to_string(), "7E1");
    let Kind::Exec(options, StderrTo::Topic) = &cpu.kind else { panic!("{cpu:?}") };
    assert_eq!(options.command, Command::program("vmstat", ["-n", ""]));
    assert_eq!(options.restart, Restart::OnFailure);
    assert_eq!(options.directory.as_deref(), Some(Path::new("/tmp")));
    let environment = [("EMPTY".into(), "".into()), ("TZ".into(), "UTC".into())];
    assert_eq!(options.environment, environment);
    let Kind::Exec(options, StderrTo::Log) = &load.kind else { panic!("{load:?}") };
    assert_eq!(options.command, Command::Shell("uptime".into()));
    let Kind::File(options) = &log.kind else { panic!("{log:?}") };
    assert_eq!((options.path.as_path(), options.from), (Path::new("x.log"), Origin::Start));
    // It stands in for /topics/host.
    assert!(matches!(machine.kind, Kind::Host(interval) if interval.as_secs() == 1));
}

#[test]
fn paths_in_a_file_begin_where_it_is() {
    let text = "[data]\ndir = \"data\"\n[[source]]\ntype = \"exec\"\ntopic = \"a\"\ncommand = \"b\"\n\
                [[source]]\ntype = \"file\"\ntopic = \"c\"\npath = \"/abs\"";
    let node = Node::parse(File::new("/etc/anemone/a.toml", text)).unwrap();
    let variables =
        [("ANEMONE_TLS__CERT".into(), "c".into()), ("ANEMONE_TLS__KEY".into(), "k".into())];
    let config =
        Config::of(Some(node), &Variables::of(variables), &args::Serve::default()).unwrap();
    assert_eq!(config.data.dir.unwrap().value, Path::new("/etc/anemone/data"));
    assert_eq!(config.tls.cert.unwrap().value, Path::new("c"), "said in a variable");
    let Kind::Exec(options, _) = &config.sources[0].kind else { panic!() };
    assert_eq!(options.directory.as_deref(), Some(Path::new("/etc/anemone")));
    let Kind::File(options) = &config.sources[1].kind else { panic!() };
    assert_eq!(options.path, Path::new("/abs"));
}

#[test]
fn the_demo_brings_its_instrument_and_topics_to_publish_to() {
    let config = read("demo = true", &[]).unwrap();
    let topics: Vec<_> = config.sources.iter().map(|source| source.topic.as_str()).collect();
    assert_eq!(topics, ["host", "wind"]);
    let rules = config.rules().unwrap();
    let rule = rules.rule(&"scratch-a".parse().unwrap()).unwrap();
    assert_eq!((rule.publish, rule.retention), (PublishRight::Loopback, SCRATCH_RETENTION));

    assert_eq!(config.messages, Some(PublishRight::Loopback));
    let open = read("demo = true\ndemo_messages = \"anyone\"", &[]).unwrap();
    assert_eq!(open.messages, Some(PublishRight::Anyone));
    assert_eq!(read("demo_messages = \"anyone\"", &[]).unwrap().messages, None);
    let limits = "[limits.messages]\nrecords_max = 3\nbytes_max = \"1MiB\"\nfinds_max = 4\nfinds_waiting_per_client_max = 5";
    let limits = read(limits, &[]).unwrap().messages_limits;
    assert_eq!((limits.records_max, limits.bytes_max, limits.finds_max), (3, 1 << 20, 4));
    assert_eq!(limits.finds_waiting_per_client_max, 5);

    let own = "demo = true\n[[topic]]\nname = \"scratch-*\"\nevents_max = 5";
    let rules = read(own, &[]).unwrap().rules().unwrap();
    assert_eq!(rules.rule(&"scratch-a".parse().unwrap()).unwrap().retention.events_max, 5);
}

#[test]
fn no_pattern_lets_clients_publish_to_the_topic_of_a_source() {
    let text = r#"
        [[topic]]
        name = "a*"
        publish = "anyone"
        events_max = 7
        [[topic]]
        name = "b"
        publish = "anyone"
        [[source]]
        type = "exec"
        topic = "ab"
        command = "x"
        stderr = "topic"
        [[source]]
        type = "file"
        topic = "b"
        path = "x"
    "#;
    let rules = read(text, &[]).unwrap().rules().unwrap();
    let of = |name: &str| {
        let rule = rules.rule(&name.parse().unwrap()).unwrap();
        (rule.publish, rule.retention.events_max)
    };
    assert_eq!(of("ax"), (PublishRight::Anyone, 7));
    assert_eq!(of("ab"), (PublishRight::Nobody, 7));
    assert_eq!(of("ab.stderr"), (PublishRight::Nobody, 7));
    assert_eq!(of("ab.status"), (PublishRight::Nobody, 1000));
    assert_eq!(
        of("b"),
        (PublishRight::Anyone, anemone_hub::Retention::NO_LIMIT),
        "a rule names it"
    );
    assert_eq!(of("b.status"), (PublishRight::Nobody, 1000));
}

#[test]
fn what_is_kept_is_said_once_for_all_topics_and_rules_come_first() {
    const MIB: u64 = 1 << 20;
    let rules = "[[topic]]\nname = \"own\"\nage_max = \"7d\"\n[[topic]]\nname = \"other\"\n";
    let text = format!("keep = \"30d\"\nlimits = {{ memory_max = \"64MiB\" }}\n{rules}");
    let config = read(&text, &[]).unwrap();
    let all = config.rules().unwrap();
    let days =
        |name: &str| all.rule(&name.parse().unwrap()).unwrap().retention.age_max.as_secs() / 86_400;
    assert_eq!((days("own"), days("other")), (7, 30));
    let shared =
        |config: &Config| [Storage::Data, Storage::Memory].map(|it| config.shared_bytes_max(it));
    assert_eq!(shared(&config), [16 * MIB; 2], "a quarter of memory_max");
    let in_memory = read(&text, &[("ANEMONE_KEEP", "1d,100MiB")]).unwrap();
    assert_eq!(shared(&in_memory), [100 * MIB; 2]);
    assert_eq!(in_memory.retention().age_max.as_secs(), 86_400);
    let on_disk = read(&text, &[("ANEMONE_DATA__DIR", "x"), ("ANEMONE_KEEP", "100MiB")]).unwrap();
    assert_eq!(shared(&on_disk), [100 * MIB, 16 * MIB]);
    let on_disk = read(&text, &[("ANEMONE_DATA__DIR", "x")]).unwrap();
    assert_eq!(shared(&on_disk), [1024 * MIB, 16 * MIB]);
    let twice = faults("keep = [\"1d\", \"2d\"]", &[]);
    assert_eq!(
        twice,
        ["a.toml:1:8: keep: there are two ages: expected one age, one size, or one of each"]
    );
}
