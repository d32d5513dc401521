//! A run that waits counts as much as it takes from the machine, within 25 %.
//!
//! This test has a process of its own, since other tests would change the measurement.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::{BufReader, Write};

use anemone_hub::run::{RunInput, RunWork};
use anemone_server::Mount;
use anemone_testing::{Fixture, Reply, request, resident_bytes};
use axum::routing::any;

/// Runs of each kind. With those before them, tables that double when they are full do so while few or long ones come.
const RUNS: u64 = 450;

/// Starts runs that wait, over one connection. Returns the bytes by which the process has grown and those that the runs
/// count, for each run.
fn grown(fixture: &Fixture, target: &str, fields: &[(&str, &str)], body: &str) -> [u64; 2] {
    let mut stream = BufReader::new(fixture.connect());
    let len = body.len().to_string();
    let fields = [&[("Prefer", "respond-async"), ("Content-Length", &*len)], fields].concat();
    let request = request(fixture.address, "POST", target, &fields) + body;
    let mut start = || {
        stream.get_mut().write_all(request.as_bytes()).unwrap();
        assert_eq!(Reply::read(&mut stream, "POST").status, 202);
    };
    // What the connection and the allocator keep is not the runs'.
    (0..RUNS / 9).for_each(|_| start());
    let before = [resident_bytes(), fixture.runs.bytes()];
    (0..RUNS).for_each(|_| start());
    let after = [resident_bytes(), fixture.runs.bytes()];
    [0, 1].map(|of| (after[of] - before[of]) / RUNS)
}

#[test]
fn a_run_that_waits_counts_as_much_as_it_takes() {
    let never = any(std::future::pending::<()>);
    let prepare = |input: RunInput| {
        Ok(RunWork::new(move |run| {
            let _ = &input;
            loop {
                run.sleep(std::time::Duration::from_secs(1))?;
            }
        }))
    };
    let fixture = Fixture::with(
        |options| {
            options.limits.runs_running_max = Some(1);
            options.limits.runs_queued_max = 100_000;
            let routes = axum::Router::new().route("/svc/never", never);
            options.mounts.push(Mount::new("/svc", routes).unwrap());
            options.mounts.push(Mount::run("/run", prepare).unwrap());
        },
        Default::default(),
    );
    let (long, longer) = ("x".repeat(6_000), "y".repeat(3_000));
    let many: Vec<_> = (0..40).map(|number| format!("X-Field-{number}")).collect();
    let many: Vec<_> = many.iter().map(|name| (&**name, "a value")).collect();
    let mut wrong = Vec::new();
    for (name, target, fields, body) in [
        ("an input", "/run", &[][..], ""),
        ("an input with a body", "/run", &[], &*long),
        ("an input with fields", "/run", &[("X-A", &*long)], ""),
        ("a call", "/svc/never", &[], ""),
        ("a call with a body", "/svc/never", &[], &*long),
        ("a call with long fields", "/svc/never", &[("X-A", &*long), ("X-B", &*longer)], ""),
        ("a call with many fields", "/svc/never", &many, ""),
        ("a call with a long query", &format!("/svc/never?{longer}"), &[], ""),
    ] {
        let [resident, counted] = grown(&fixture, target, fields, body);
        let told = format!("{name}: {resident} bytes taken, {counted} counted");
        println!("{told}");
        if !(resident * 75..=resident * 125).contains(&(counted * 100)) {
            wrong.push(told);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
