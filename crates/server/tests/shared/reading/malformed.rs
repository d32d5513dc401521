//! Invalid requests of readers, and their answers: the same over every transport.

use anemone_testing::Fixture;
use anemone_testing::ways::{FOREVER_FRAME, HTTP, WEBSOCKET, Way, each, each_of};

/// Returns the problem of a request over this transport. A parameter of the transport itself is not given twice.
fn problem(fixture: &Fixture, way: &Way, query: &str, status: u16, kind: &str) -> String {
    let own = way.query.trim_start_matches('&').split('=').next().unwrap();
    let is_given = !own.is_empty() && query.starts_with(own);
    let own = if is_given { "" } else { way.query };
    way.problem(fixture, &format!("/topics/wind?{query}{own}"), status, kind)
}

#[test]
fn each_parameter_is_told_what_it_may_be() {
    let fixture = Fixture::start();
    let too_long = format!("frame={}", "x".repeat(65));
    let cases = [
        ("after=", "EPOCH-OFFSET"),
        ("after=nonsense", "nonsense"),
        ("after=ya-01", "EPOCH-OFFSET"),
        ("after=ya-18446744073709551616", "EPOCH-OFFSET"),
        ("after=newest", "earliest, latest or -N"),
        ("after=%00", "EPOCH-OFFSET"),
        ("after=ya-1%20", "EPOCH-OFFSET"),
        ("limit=", "whole number from 1 to 1000"),
        ("limit=0", "whole number from 1 to 1000"),
        ("limit=1001", "whole number from 1 to 1000"),
        ("limit=-1", "whole number from 1 to 1000"),
        ("limit=1.5", "\"1.5\""),
        ("limit=99999999999999999999999", "whole number from 1 to 1000"),
        ("wait=", "number of seconds"),
        ("wait=-1", "negative"),
        ("wait=120.001", "at most 120 s"),
        ("wait=soon", "\"soon\""),
        ("mode=", "all or latest"),
        ("mode=newest", "\"newest\""),
        ("mode=LATEST", "all or latest"),
        ("frame=", "identifiers"),
        ("frame=1st", "\"1st\""),
        ("frame=a..b", "identifiers"),
        ("frame=alert(1)", "identifiers"),
        ("frame=%3C/script%3E", "identifiers"),
        (&too_long, "at most 64 bytes"),
        ("moed=latest", "after, since, limit, wait, mode and frame"),
        ("after=latest&after=latest", "after is given twice"),
        ("mode=all&mode=latest", "mode is given twice"),
    ];
    each(|way| {
        for (query, part) in cases {
            let detail = problem(&fixture, way, query, 400, "bad-parameter");
            let name = query.split('=').next().unwrap();
            assert!(detail.starts_with(name) && detail.contains(part), "{query}: {detail}");
        }
    });
}

#[test]
fn what_is_often_wrong_is_told_in_these_words() {
    let fixture = Fixture::start();
    each(|way| {
        for (query, detail) in [
            (
                "after=newest",
                "after must be a position, earliest, latest or -N for the last N events: \"newest\" is not a \
                 position: expected EPOCH-OFFSET, such as \"4zq81x-42\"",
            ),
            ("wait=5s", "wait is \"5s\": must be a number of seconds, such as 5 or 0.3"),
            ("wait=121", "wait is \"121\": at most 120 s are allowed"),
            ("limit=0", "limit is \"0\": must be a whole number from 1 to 1000"),
            ("mode=newest", "mode is \"newest\": must be all or latest"),
            (
                "form=latest",
                "form is not a parameter: a topic takes after, since, limit, wait, mode and frame",
            ),
        ] {
            assert_eq!(problem(&fixture, way, query, 400, "bad-parameter"), detail);
        }
    });
}

#[test]
fn what_is_said_of_a_long_value_is_short() {
    let fixture = Fixture::start();
    each(|way| {
        for name in ["after", "limit", "wait", "mode", "frame", "x"] {
            let query = format!("{name}={}", "9z".repeat(1000));
            assert!(problem(&fixture, way, &query, 400, "bad-parameter").len() < 250);
        }
        let name = "x".repeat(1000);
        assert!(problem(&fixture, way, &format!("{name}=1"), 400, "bad-parameter").len() < 250);
    });
}

#[test]
fn a_position_that_was_never_handed_out_is_refused() {
    let fixture = Fixture::start();
    fixture.publish(1..=1);
    each(|way| {
        for mode in ["all", "latest"] {
            let query = format!("after=ya-2&mode={mode}");
            let detail = problem(&fixture, way, &query, 400, "position-ahead");
            assert!(detail.contains("ya-2") && detail.contains("ya-1"), "{detail}");
        }
    });
}

#[test]
fn a_topic_that_is_not_there_is_404() {
    let fixture = Fixture::start();
    each(|way| {
        let target = format!("/topics/nothing?after=latest{}", way.query);
        let detail = way.problem(&fixture, &target, 404, "unknown-topic");
        assert!(detail.contains("\"nothing\""), "{detail}");
    });
}

#[test]
fn a_wrong_field_is_told_like_a_wrong_parameter() {
    let fixture = Fixture::start();
    each_of(&HTTP, |way| {
        for (name, value) in
            [("Last-Event-ID", "nonsense"), ("Last-Event-ID", "ya-2-3"), ("Prefer", "wait=-1")]
        {
            // A parameter counts more than the preference.
            let own = if name == "Prefer" && way.query.contains("wait") { "" } else { way.query };
            let fields = [way.fields, &[(name, value)]].concat();
            let reply = fixture.get(&format!("/topics/wind?{own}"), &fields);
            let detail = reply.problem(400, "bad-parameter");
            assert!(detail.starts_with(name), "{detail}");
        }
    });
}

#[test]
fn a_frame_and_what_is_accepted_belong_together() {
    let fixture = Fixture::start();
    let frame = "/topics/wind?frame=app.receive";
    for accept in ["application/json", "text/event-stream", "application/x-ndjson", "text/html;q=0"]
    {
        let detail = fixture.get(frame, &[("Accept", accept)]).problem(406, "not-acceptable");
        assert!(detail.contains(accept) && detail.contains("text/html"), "{detail}");
    }
    let html = [("Accept", "text/html")];
    let detail = fixture.get("/topics/wind", &html).problem(400, "bad-parameter");
    assert!(detail.contains("frame=NAME"), "{detail}");
    let detail =
        fixture.get("/topics/wind", &[("Accept", "image/png")]).problem(406, "not-acceptable");
    assert!(
        detail.contains("application/x-ndjson") && detail.contains("text/event-stream"),
        "{detail}"
    );
    let detail = fixture.get(frame, WEBSOCKET.fields).problem(400, "bad-parameter");
    assert!(detail.contains("WebSocket"), "{detail}");
    let longest = format!("/topics/wind?frame={}", "x".repeat(64));
    assert_eq!(fixture.request("HEAD", &longest, FOREVER_FRAME.fields).status, 200);
}
