//! `[[run]]` and `--run`.

use std::path::Path;
use std::time::Duration;

use anemone_server::StartRight;
use anemone_sources::exec::{Command, ProgramOptions};
use clap::Parser as _;

use super::*;

fn flags(line: &str) -> args::Serve {
    let words = ["anemone", "serve"].into_iter().map(str::to_owned);
    let parsed = args::Args::try_parse_from(words.chain(line.split('|').map(str::to_owned)));
    let args::Command::Serve(flags) = parsed.unwrap().command else { panic!("{line}") };
    *flags
}

fn run(path: &str) -> String {
    format!("[[run]]\npath = \"{path}\"\ncommand = \"c\"\n")
}

#[test]
fn every_key_of_a_program_holds() {
    let text = r#"
        [[run]]
        path = "/simulate/wind"
        command = ["python3", "-u", "wind.py"]
        start = "anyone"
        about = "Blows."
        directory = "/srv"
        environment = { TZ = "UTC" }
        time_max = "10min"
        grace = "2s"
        output_bytes_max = "1GiB"
        line_bytes_max = "1MiB"
        processes_max = 8
        log_lines_max = 0
        report_interval = "1min"
    "#;
    let config = read(text, &[]).unwrap();
    let [run] = &config.runs[..] else { panic!("{:?}", config.runs) };
    assert_eq!((run.path.as_str(), run.start_right), ("/simulate/wind", StartRight::Anyone));
    assert_eq!(run.about.as_deref(), Some("Blows."));
    let options = &run.options;
    assert_eq!(options.command, Command::program("python3", ["-u", "wind.py"]));
    assert_eq!(options.directory.as_deref(), Some(Path::new("/srv")));
    assert_eq!(options.environment, [("TZ".into(), "UTC".into())]);
    assert_eq!(options.time_max, Some(Duration::from_secs(600)));
    assert_eq!(options.grace, Duration::from_secs(2));
    assert_eq!((options.output_bytes_max, options.line_bytes_max), (1 << 30, 1 << 20));
    assert_eq!((options.processes_max, options.log_lines_max), (8, 0));
    assert_eq!(options.report_interval, Duration::from_secs(60));
}

#[test]
fn a_flag_is_a_program_with_the_defaults_for_local_clients() {
    let file = read("[[run]]\npath = \"/a\"\ncommand = \"b c=d\"\n", &[]).unwrap();
    for line in ["--run|a=b c=d", "--run|/a=b c=d"] {
        assert_same(&file, &read_with("", &[], &flags(line)).unwrap());
    }
    let [run] = &file.runs[..] else { panic!("{:?}", file.runs) };
    let default = ProgramOptions::new(Command::Shell("b c=d".into()));
    assert_eq!(format!("{:?}", run.options), format!("{default:?}"));
    assert_eq!(run.start_right, StartRight::Local);
    let both = read_with(&self::run("/a"), &[], &flags("--run|b=x|--run|c=y")).unwrap();
    let paths: Vec<_> = both.runs.iter().map(|run| run.path.as_str()).collect();
    assert_eq!(paths, ["/a", "/b", "/c"]);
}

#[test]
fn a_program_runs_where_its_file_is() {
    let node = Node::parse(File::new("/etc/anemone/a.toml", run("/a"))).unwrap();
    let none: [(std::ffi::OsString, std::ffi::OsString); 0] = [];
    let config = Config::of(Some(node), &Variables::of(none), &args::Serve::default()).unwrap();
    let directory = config.runs[0].options.directory.as_deref();
    assert_eq!(directory, Some(Path::new("/etc/anemone")));
}

#[test]
fn a_path_that_cannot_be_is_told() {
    let dir = "[[static]]\ndir = \"www\"\npath = \"/docs\"\n";
    for (text, expected) in [
        (
            run("primes"),
            "2:8: run.path: \"primes\" is not a path for a service: expected \"/\", or names of letters, digits, - . _ \
             and ~, such as \"/messages\"",
        ),
        (
            run("/runs/mine"),
            "2:8: run.path: no service can be mounted at /runs/mine: /runs is the server's own",
        ),
        (
            run("/topics"),
            "2:8: run.path: no service can be mounted at /topics: /topics is the server's own",
        ),
        (
            run("/"),
            "2:8: run.path: / has files of the built-in page, which would then be hidden: choose another path",
        ),
        (
            run("/wind"),
            "2:8: run.path: /wind has files of the built-in page, which would then be hidden: choose another path",
        ),
        (
            "demo = true\n".to_owned() + &run("/messages"),
            "3:8: run.path: /messages has the messages of the demo",
        ),
        (
            "demo = true\n".to_owned() + &run("/computations"),
            "3:8: run.path: /computations has the computations of the demo",
        ),
        (
            "demo = true\n".to_owned() + &run("/propagation"),
            "3:8: run.path: /propagation has the coverages of the demo",
        ),
        (run("/a") + &run("/a"), "5:8: run.path: /a already has a program, at a.toml:2:8"),
        (dir.to_owned() + &run("/docs"), "5:8: run.path: /docs/ has the files of www (a.toml:2:7)"),
    ] {
        assert_eq!(faults(&text, &[]), [format!("a.toml:{expected}")], "{text}");
    }
    // A program may be below a directory, which then lacks one path.
    read(&(dir.to_owned() + &run("/docs/search")), &[]).unwrap();
    let error = read_with(&run("/a"), &[], &flags("--run|a=b")).unwrap_err();
    assert_eq!(error.to_string(), "--run: run.path: /a already has a program, at a.toml:2:8");
    assert!(error.is_wrong_use());
}

#[test]
fn what_is_missing_or_another_kind_is_told() {
    assert_eq!(
        faults("[[run]]\nstart = \"nobody\"\n", &[]),
        [
            "a.toml:1:1: `run.path` is missing: where clients start runs, such as \"/primes\"",
            "a.toml:1:1: `run.command` is missing: a shell command, such as \"python3 primes.py\", or a program and its \
             arguments, such as [\"python3\", \"primes.py\"]",
            "a.toml:2:9: run.start: \"nobody\" is not one of \"loopback\", \"anyone\"",
        ]
    );
    let one = faults("[run]\npath = \"/a\"\n", &[]);
    assert_eq!(one, ["a.toml:1:1: this is a list of tables: write [[run]] instead of [run]"]);
    let key = faults(&(run("/a") + "restart = \"never\"\n"), &[]);
    assert_eq!(key, ["a.toml:4:1: unknown key `run.restart`"]);
}
