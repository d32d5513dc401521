//! Limits on the runs that requests start.

use std::time::Duration;

use anemone_testing::wait_until;
use anemone_testing::ways::SSE;
use serde_json::json;

use crate::runs::served::{ASYNC, Served, run_of};

#[test]
fn a_body_that_is_too_big_starts_nothing() {
    let served = Served::with(|limits| limits.batch_bytes_max = 100);
    let body = " ".repeat(99) + "1";
    assert_eq!(served.post("/math/count", &[ASYNC], &body).status, 202);
    served.post("/math/count", &[ASYNC], &(body.clone() + " ")).problem(413, "body-too-big");
    served.post("/plain/text", &[ASYNC], &(body + " ")).problem(413, "body-too-big");
}

#[test]
fn runs_wait_in_a_queue_of_a_certain_length_and_know_their_place() {
    let served = Served::with(|limits| {
        limits.runs_running_max = Some(1);
        limits.runs_queued_max = 2;
    });
    let runs = [(); 3].map(|()| served.run("9999"));
    assert_eq!(
        [0, 1, 2].map(|run| served.state(&runs[run])["place"].clone()),
        [json!(null), json!(0), json!(1)]
    );
    let reply = served.post("/math/count", &[ASYNC], "9999");
    reply.problem(503, "too-many-runs");
    assert!(reply.field("retry-after").is_some());
    served.fixture.request("DELETE", &runs[0], &[]);
    served.until(&runs[1], "running");
    assert_eq!(served.state(&runs[2])["place"], 0);
    let events = served.fixture.get(&runs[2], &[]).json();
    let places: Vec<_> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["data"]["place"].clone())
        .collect();
    assert_eq!(places, [json!(1), json!(0)]);
}

#[test]
fn the_queue_has_a_limit_for_each_address_but_not_for_this_machine() {
    let served = Served::with(|limits| {
        limits.runs_running_max = Some(1);
        limits.runs_queued_max = 5;
        limits.runs_queued_per_address_max = Some(2);
    });
    // A field of a proxy that is not trusted: the client counts as another machine's.
    let elsewhere = [ASYNC, ("X-Forwarded-For", "192.0.2.1")];
    let start = || served.post("/math/count", &elsewhere, "9999");
    // The first one works.
    assert_eq!([(); 3].map(|()| start().status), [202; 3]);
    let detail = start().problem(503, "too-many-runs");
    assert_eq!(detail, "this client has too many runs in the queue");
    assert_eq!([(); 3].map(|()| served.post("/math/count", &[ASYNC], "9999").status), [202; 3]);
    let detail = served.post("/math/count", &[ASYNC], "9999").problem(503, "too-many-runs");
    assert_eq!(detail, "the queue of runs is full");
}

#[test]
fn a_run_keeps_as_many_bytes_as_it_may_and_refuses_a_result_that_is_larger() {
    let served = Served::with(|limits| limits.run_bytes_max = 2_000);
    let run = served.run("1000");
    served.until(&run, "done");
    let page = served.fixture.get(&run, &[]).json();
    assert_eq!(page["gap"]["reason"], "retention");
    assert!(page["first"].as_u64().unwrap() > 900, "{page}");
    for (bytes, state) in [(2_000, "done"), (2_001, "failed")] {
        let body = "x".repeat(bytes - "\"you said \"".len());
        let reply = served.post("/plain/text", &[ASYNC], &body);
        let run = run_of(&reply);
        served.until(&run, state);
        // The last event is kept, whatever it takes.
        let page = served.fixture.get(&format!("{run}?after=-1"), &[]).json();
        assert_eq!(page["events"][0]["data"]["state"], state);
    }
}

#[test]
fn the_runs_keep_as_much_as_they_may_together_and_the_oldest_go_first() {
    let served = Served::with(|limits| limits.runs_bytes_max = 100_000);
    let first = served.run("1000");
    served.until(&first, "done");
    let second = served.run("1000");
    served.until(&second, "done");
    assert_eq!(served.fixture.get(&first, &[]).status, 404);
    assert_eq!(served.state(&second)["state"], "done");
}

#[test]
fn a_run_that_takes_too_long_fails() {
    let served = Served::with(|limits| limits.run_time_max = Some(Duration::from_millis(50)));
    let run = served.run("9999");
    let events = served.watch(&SSE, &run);
    let problem = &events.last().unwrap()["problem"];
    assert_eq!(
        (&problem["type"], &problem["status"]),
        (&json!("/problems/run-timeout"), &json!(504))
    );
}

#[test]
fn a_run_that_ended_too_long_ago_is_gone() {
    let served = Served::with(|limits| {
        limits.run_retention = Duration::from_millis(1);
        limits.run_time_max = Some(Duration::from_millis(50));
    });
    let run = served.run("9999");
    wait_until("it is so", || served.fixture.get(&run, &[]).status == 404);
    served.fixture.get(&format!("{run}?state"), &[]).problem(404, "unknown-run");
}
