use http::HeaderMap;

use super::*;

fn parse(query: &str, fields: &[(&'static str, &str)]) -> Result<Query, String> {
    let headers: HeaderMap = fields
        .iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect();
    Query::parse(Some(query), (&headers).into(), &Limits::default())
        .map_err(|problem| problem.to_json())
}

#[test]
fn nothing_asked_is_nothing_set() {
    let (page, mode) = (Limits::default().page, Mode::All);
    let (start, wait, frame) = (None, None, None);
    assert_eq!(parse("", &[]), Ok(Query { start, wait, page, mode, frame, is_resumed: false }));
}

#[test]
fn a_position_may_be_where_reading_begins_anew() {
    let begin = |query, fields: &[(&'static str, &str)]| parse(query, fields).unwrap().start;
    let position = "ya-3".parse().unwrap();
    let [plain, anew] =
        [After::Position(position), After::Anew(position)].map(|after| Some(after.into()));
    assert_eq!(begin("after=ya-3", &[]), plain);
    assert_eq!(begin("after=ya-3~", &[]), anew);
    assert_eq!(begin("after=ya-3%7E", &[]), anew);
    assert_eq!(begin("after=zz-1~", &[("last-event-id", "ya-3")]), plain);
    for query in ["after=~", "after=earliest~", "after=ya-3~~", "after=~ya-3"] {
        assert!(parse(query, &[]).unwrap_err().contains("must be a position"), "{query}");
    }
}

#[test]
fn wait_may_be_a_parameter_or_a_preference() {
    let wait = |query, fields: &[(&'static str, &str)]| {
        parse(query, fields)
            .unwrap()
            .wait
            .map(|wait| (wait.duration.as_millis(), wait.is_preference))
    };
    assert_eq!(wait("wait=0.3", &[]), Some((300, false)));
    assert_eq!(wait("wait=0", &[]), Some((0, false)));
    assert_eq!(wait("wait=120", &[]), Some((120_000, false)));
    assert_eq!(wait("", &[("prefer", "wait=5")]), Some((5000, true)));
    assert_eq!(wait("", &[("prefer", "return=minimal, Wait = \"7\"; foo")]), Some((7000, true)));
    for (prefer, millis) in [
        ("foo=\"a, wait=9\", wait=5", 5000),
        ("foo=\"\\\", wait=9\"; wait=8, wait=\"5\"; foo=\"a,b;c\"", 5000),
        ("foo; wait=9, wait=5, wait=6", 5000),
        ("WAIT = 5", 5000),
    ] {
        assert_eq!(wait("", &[("prefer", prefer)]), Some((millis, true)), "{prefer}");
    }
    let two = [("prefer", "foo=\"wait=9\""), ("prefer", "bar, wait=5")];
    assert_eq!(wait("", &two), Some((5000, true)));
    assert_eq!(wait("", &[("prefer", "foo=\"a, wait=9\"")]), None);
    assert_eq!(wait("wait=1", &[("prefer", "wait=5")]), Some((1000, false)));
    assert_eq!(wait("", &[("prefer", "respond-async")]), None);
}

#[test]
fn a_wrong_wait_is_told_what_is_wrong_with_it() {
    for (value, part) in [
        ("-1", "negative"),
        ("-0.1", "negative"),
        ("120.1", "at most 120 s"),
        ("1e9", "number of seconds"),
        ("99999999999999999999999", "at most 120 s"),
        ("", "number of seconds"),
        ("abc", "number of seconds"),
        ("inf", "number of seconds"),
        ("NaN", "number of seconds"),
        ("1.2.3", "number of seconds"),
    ] {
        let error = parse(&format!("wait={value}"), &[]).unwrap_err();
        assert!(error.contains(part), "{value}: {error}");
        let error = parse("", &[("prefer", &format!("wait={value}"))]).unwrap_err();
        assert!(error.contains(part), "{value}: {error}");
    }
}

#[test]
fn a_wrong_position_limit_or_name_is_refused() {
    for query in [
        "after=",
        "after=x",
        "after=-0",
        "after=newest",
        "limit=0",
        "limit=1001",
        "limit=-1",
        "limit=x",
        "mode=",
        "mode=newest",
        "mode=Latest",
        "mode=all&mode=all",
        "frame=",
        "frame=1a",
        "foo=1",
        "after=latest&after=earliest",
        "After=latest",
    ] {
        let error = parse(query, &[]).unwrap_err();
        assert!(error.contains("bad-parameter"), "{query}: {error}");
    }
    assert!(parse("", &[("last-event-id", "nonsense")]).is_err());
}

#[test]
fn last_event_id_counts_more_than_the_url() {
    let query = parse("after=earliest", &[("last-event-id", "7-3")]).unwrap();
    assert_eq!(query.start, Some(After::Position("7-3".parse().unwrap()).into()));
}

#[test]
fn the_id_of_the_last_event_may_be_in_the_query() {
    let resumed = |query, field: &[(&'static str, &str)]| {
        let query = parse(query, field).unwrap();
        (query.start, query.is_resumed)
    };
    let id = Some(After::Position("7-3".parse().unwrap()).into());
    for query in ["lastEventId=7-3", "after=-1&lastEventId=7-3", "since=1h&evs_last_event_id=7-3"] {
        assert_eq!(resumed(query, &[]), (id, true), "{query}");
        assert_eq!(resumed(query, &[("last-event-id", "")]), (id, true), "{query}");
    }
    assert_eq!(resumed("", &[("last-event-id", "")]), (None, false));
    let earliest = Some(After::Earliest.into());
    assert_eq!(resumed("lastEventId=&after=earliest", &[]), (earliest, false));
    assert!(parse("lastEventId=nonsense", &[]).unwrap_err().contains("Last-Event-ID"));
}

#[test]
fn mode_is_one_of_two_words() {
    assert_eq!(parse("mode=all", &[]).unwrap().mode, Mode::All);
    assert_eq!(parse("mode=latest", &[]).unwrap().mode, Mode::Latest);
}

#[test]
fn a_frame_calls_what_can_stand_in_a_script_as_it_is() {
    let longest = "x".repeat(64);
    for name in ["f", "$", "_1", "app.receive", "a.b.c.d", "A9._.$9", &longest] {
        assert_eq!(FrameName::new(name).unwrap().as_str(), name);
    }
    let too_long = "x".repeat(65);
    for name in [
        "",
        ".",
        "a.",
        ".a",
        "a..b",
        "1",
        "a.1",
        "a b",
        "a(",
        "a;b",
        "a[0]",
        "</script>",
        "a\n",
        "a-b",
        "é",
        "\\u0061",
        &too_long,
    ] {
        assert_eq!(FrameName::new(name), None, "{name:?}");
    }
}
