//! Reports of several runs: compared, and put together.

use std::os::unix::process::ExitStatusExt as _;

use super::*;

/// Writes a run of an experiment below a directory, and returns its report's path. Beside other tests, the generator may be
/// late, and a run that is invalid for that counts less: what is tested is the report, so it is made valid.
fn run_into(directory: &Path, name: &str, rounds: &str, seed: &str) -> String {
    let out = directory.join(seed);
    let out = out.to_str().unwrap();
    let output = lab(&[name, "--quick", "--rounds", rounds, "--seed", seed, "--out", out]);
    assert!(is_measured(&output), "{}", String::from_utf8_lossy(&output.stderr));
    let path = Path::new(out).join(format!("{name}.json"));
    let mut report: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    report["invalid"] = Value::Null;
    std::fs::write(&path, report.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn two_runs_are_compared_with_a_status_for_scripts() {
    let directory = tempfile::tempdir().unwrap();
    let path = run_into(directory.path(), "overhead", "8", "1");
    let compare = |to: &str, more: &[&str]| {
        let output = lab(&[&["compare", &path, to], more].concat());
        let [told, said] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        (output.status.code().unwrap(), told, said)
    };
    let (status, told, said) = compare(&path, &["--fail-on", "0%"]);
    assert_eq!(status, 0, "{said}");
    assert!(told.contains("## overhead: B against A") && told.contains(" equal"), "{told}");

    // The same run with a message that has grown by 10 %.
    let mut report: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for value in report["series"][0]["rounds"].as_array_mut().unwrap() {
        *value = (value.as_f64().unwrap() * 1.1).into();
    }
    let grown = directory.path().join("grown.json");
    std::fs::write(&grown, report.to_string()).unwrap();
    let grown = grown.to_str().unwrap();
    let (status, told, _) = compare(grown, &[]);
    assert!(status == 0 && told.contains("10.0 [10.0, 10.0] | worse"), "{told}");
    let (status, _, said) = compare(grown, &["--fail-on", "5%"]);
    assert!(status == 12 && said.contains("worse by more than 5 %: "), "{status} {said}");
    assert_eq!(compare(grown, &["--fail-on", "15%"]).0, 0);

    for series in report["series"].as_array_mut().unwrap() {
        series["rounds"].as_array_mut().unwrap().truncate(3);
    }
    std::fs::write(grown, report.to_string()).unwrap();
    let (status, _, said) = compare(grown, &["--fail-on", "5%"]);
    assert!(status == 12 && said.contains("repeat both runs with --rounds "), "{status} {said}");

    report["invalid"] = "0 of 10 came".into();
    std::fs::write(grown, report.to_string()).unwrap();
    let (status, told, said) = compare(grown, &["--fail-on", "5%"]);
    assert!(status == 12 && told.contains("| B (invalid) |"), "{told}");
    assert!(said.contains("B is invalid, so its figures are not judged: 0 of 10 came"), "{said}");

    report["version"] = 99.into();
    std::fs::write(grown, report.to_string()).unwrap();
    let (status, _, said) = compare(grown, &[]);
    assert!(status == 1 && said.contains("has version 99"), "{status} {said}");
    report["version"] = 1.into();
    report["experiment"] = "wind".into();
    std::fs::write(grown, report.to_string()).unwrap();
    let (status, _, said) = compare(grown, &[]);
    assert!(
        status == 1 && said.contains("A has the experiment overhead, and B has wind"),
        "{said}"
    );
}

#[test]
fn runs_of_several_times_and_machines_are_one_file() {
    let directory = tempfile::tempdir().unwrap();
    let first = run_into(directory.path(), "connect", "3", "1");
    let second = run_into(directory.path(), "connect", "3", "2");
    let log = std::fs::read_to_string(first.replace(".json", ".hlog")).unwrap();
    assert!(log.contains("Tag=") && log.contains("/TCP,"), "{log}");
    // A report of another machine, in a list, as a page exports it.
    let mut other: Value = serde_json::from_str(&std::fs::read_to_string(&first).unwrap()).unwrap();
    other["environment"]["processor"] = "another processor".into();
    let far = directory.path().join("far.json");
    std::fs::write(&far, Value::from(vec![other]).to_string()).unwrap();
    let out = directory.path().join("all.html");
    let folder = |path: &str| Path::new(path).parent().unwrap().to_str().unwrap().to_owned();
    let places = [&folder(&first), &folder(&second), far.to_str().unwrap()];
    let output = lab(&["report", places[0], places[1], places[2], "--out", out.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let html = std::fs::read_to_string(&out).unwrap();
    assert_eq!(html.matches("<section").count(), 2, "two runs of one machine, and another machine");
    assert!(html.contains("The newest of 2 runs") && html.contains("another processor"));
    assert_eq!(html.matches("<li>2 runs, 20").count(), 1, "the times of both are in the method");
    assert_eq!(html.matches("<td>2 runs, 20").count(), 1, "and beside the answer");
    let said = String::from_utf8_lossy(&output.stderr);
    let apart = "connect: its runs are 2 reports, since these differ: the processor\n";
    assert_eq!(said, apart);

    // A run that is invalid does not count, and does not go without a word.
    let mut broken: Value =
        serde_json::from_str(&std::fs::read_to_string(&second).unwrap()).unwrap();
    broken["invalid"] = "0 of 10 came".into();
    std::fs::write(&second, broken.to_string()).unwrap();
    let output = lab(&["report", &first, &second, "--out", out.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(
        said,
        format!("{second}: its run of connect is left out, since it is invalid: 0 of 10 came\n")
    );

    let empty = directory.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let output = lab(&["report", empty.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("there is no report"), "{said}");
}

#[test]
fn a_signal_ends_what_puts_reports_together() {
    let directory = tempfile::tempdir().unwrap();
    let path = run_into(directory.path(), "overhead", "1", "1");
    // Nobody reads there, so opening it takes for ever.
    let pipe = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut child = Command::new(env!("CARGO_BIN_EXE_anemone"))
        .args(["lab", "report", &path, "--out", pipe.to_str().unwrap()])
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let is_waiting = || std::fs::read_to_string(&status).unwrap().contains("S (sleeping)");
    anemone_testing::wait_until("it opens the file", is_waiting);
    let killed = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().signal(), Some(15));
}
