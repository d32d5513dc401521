//! Any service as the work of a run.

use anemone_testing::ways::SSE;
use serde_json::json;

use crate::runs::served::{ASYNC, Served, run_of};

#[test]
fn the_items_of_any_service_are_partial_results_and_progress() {
    let served = Served::start();
    let reply = served.post("/plain/items", &[ASYNC], "");
    let run = run_of(&reply);
    let mut events = served.watch(&SSE, &run);
    for event in &mut events {
        event.as_object_mut().unwrap().remove("left");
    }
    let partials: Vec<_> = events.iter().filter(|event| !event["partial"].is_null()).collect();
    assert_eq!(
        partials,
        [
            &json!({ "partial": 1 }),
            &json!({ "partial": "words" }),
            &json!({ "partial": { "n": 2.5 } })
        ]
    );
    assert!(events.contains(&json!({ "progress": 0.25, "text": "a quarter" })), "{events:?}");
    assert_eq!(events.last(), Some(&json!({ "state": "done" })));
    assert_eq!(served.state(&run)["progress"], 1.0);
}

#[test]
fn the_work_of_a_run_knows_who_started_it_when_that_client_has_gone() {
    let served = Served::with(|limits| limits.runs_running_max = Some(1));
    let before = served.run("9999");
    let reply = served.post("/plain/who", &[ASYNC], "");
    let run = run_of(&reply);
    served.fixture.request("DELETE", &before, &[]);
    let end = json!({ "state": "done", "result": "run Local" });
    assert_eq!(served.watch(&SSE, &run).last(), Some(&end));
}

#[test]
fn any_other_reply_of_a_service_is_the_result_or_the_failure() {
    let served = Served::start();
    for (path, end) in [
        ("json", json!({ "state": "done", "result": { "a": [1] } })),
        ("text", json!({ "state": "done", "result": "you said x" })),
        ("bytes", json!({ "state": "done", "result": { "base64": "AP8=" } })),
    ] {
        let reply = served.post(&format!("/plain/{path}"), &[ASYNC], "x");
        let run = run_of(&reply);
        assert_eq!(served.watch(&SSE, &run).last(), Some(&end), "{path}");
    }
    // The problem of a run has the status that the service has answered.
    for (path, kind, status, detail) in [
        ("refused", "run-failed", 409, "the service answered 409 Conflict: already there"),
        ("problem", "conflict", 409, "it exists"),
        ("own", "own", 403, "an own problem"),
        ("panics", "internal", 500, "the service at this path failed"),
        ("nothing", "run-failed", 404, "the service answered 404 Not Found"),
        ("read", "run-failed", 405, "the service answered 405 Method Not Allowed"),
    ] {
        let reply = served.post(&format!("/plain/{path}"), &[ASYNC], "");
        let run = run_of(&reply);
        let problem = served.watch(&SSE, &run).pop().unwrap()["problem"].take();
        assert_eq!(problem["type"], format!("/problems/{kind}"), "{path}: {problem}");
        assert_eq!((&problem["status"], &problem["detail"]), (&json!(status), &json!(detail)));
    }
    let reply = served.post("/plain/never", &[ASYNC], "");
    let run = run_of(&reply);
    served.until(&run, "running");
    assert_eq!(served.fixture.request("DELETE", &run, &[]).status, 200);
    assert_eq!(served.watch(&SSE, &run).last(), Some(&json!({ "state": "cancelled" })));
}
