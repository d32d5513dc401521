//! One table of calls with the same answers over every transport.

use std::time::Duration;

use anemone_testing::calls::{Answer, Call};
use anemone_testing::multiplexed::{Carrier, Client};
use anemone_testing::run;
use anemone_testing::secure::Secure;

use super::*;

/// A call, and its answer.
struct Case {
    method: &'static str,
    target: &'static str,
    fields: &'static [(&'static str, &'static str)],
    body: &'static str,
    status: u16,
    answer: Expected,
}

enum Expected {
    Body(&'static str),
    Lines(&'static [&'static str]),
    /// Any body that is not empty.
    Some,
    /// A body of so many bytes.
    Length(usize),
    Problem(&'static str),
    /// Any body, and the field `Allow`.
    Allow(&'static str),
}

const fn case(method: &'static str, target: &'static str, status: u16, answer: Expected) -> Case {
    Case { method, target, fields: &[], body: "", status, answer }
}

const TEXT: &[(&str, &str)] = &[("content-type", "text/plain; charset=utf-8")];

const CASES: &[Case] = &[
    case("GET", "/svc/hello", 200, Expected::Body("hello")),
    case("HEAD", "/svc/hello", 200, Expected::Body("")),
    Case {
        fields: TEXT,
        body: "you",
        ..case("POST", "/svc/hello", 200, Expected::Body("hello you"))
    },
    case("DELETE", "/svc/hello", 405, Expected::Allow("GET,HEAD,POST")),
    case("GET", "/svc/seen?a=%31&b", 200, Expected::Body("GET /svc/seen?a=%31&b none none ")),
    case("GET", "/svc/%73een", 200, Expected::Body("GET /svc/seen none none ")),
    Case {
        fields: &[("content-type", "application/json"), ("x-own", "a b=\"c\" 50%")],
        body: "{\"a\":\n1}",
        ..case(
            "PATCH",
            "/svc/seen",
            200,
            Expected::Body("PATCH /svc/seen application/json a b=\"c\" 50% {\"a\":\n1}"),
        )
    },
    Case {
        fields: TEXT,
        body: "é",
        ..case(
            "PUT",
            "/svc/seen",
            200,
            Expected::Body("PUT /svc/seen text/plain; charset=utf-8 none é"),
        )
    },
    case("GET", "/svc/count/3", 200, Expected::Lines(&["1", "2", "3"])),
    case("GET", "/svc/count/0", 200, Expected::Lines(&[])),
    case("GET", "/svc/count/many", 400, Expected::Some),
    case("GET", "/svc/empty", 204, Expected::Body("")),
    case("GET", "/svc/bytes", 200, Expected::Length(2)),
    case("GET", "/svc/big", 200, Expected::Length(1 << 20)),
    case("GET", "/svc/bigger", 200, Expected::Length((1 << 20) + 1)),
    case("GET", "/svc/teapot", 418, Expected::Body("short and stout")),
    case("GET", "/svc/conflict", 409, Expected::Problem("conflict")),
    case("GET", "/svc/panic", 500, Expected::Problem("internal")),
    case("GET", "/svc/never", 504, Expected::Problem("service-timeout")),
    case("GET", "/svc/nothing", 404, Expected::Body("")),
    case("GET", "/svcs", 404, Expected::Problem("unknown-path")),
    case("GET", "/svc/a%2Fb", 400, Expected::Problem("bad-name")),
    Case {
        fields: TEXT,
        body: "1234567890",
        ..case("POST", "/svc/small", 200, Expected::Body("1234567890"))
    },
    Case { fields: TEXT, body: "12345678901", ..case("POST", "/svc/small", 413, Expected::Some) },
];

impl Case {
    #[track_caller]
    fn check(&self, transport: &str, answer: &Answer) {
        let Self { method, target, status, .. } = self;
        let text = String::from_utf8_lossy(&answer.body);
        let told: String = text.chars().take(200).collect();
        let place = format!("{transport}: {method} {target}: {} {told:?}", answer.status);
        assert_eq!(answer.status, *status, "{place}");
        match self.answer {
            Expected::Body(body) => assert_eq!(text, body, "{place}"),
            Expected::Lines(lines) => {
                assert_eq!(text.lines().collect::<Vec<_>>(), lines, "{place}");
            }
            Expected::Some => assert!(!text.is_empty(), "{place}"),
            Expected::Length(len) => assert_eq!(answer.body.len(), len, "{place}"),
            Expected::Problem(kind) => {
                let problem: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
                assert_eq!(problem["type"], format!("/problems/{kind}"), "{place}");
                assert_eq!(problem["status"], *status, "{place}");
            }
            Expected::Allow(methods) => {
                assert_eq!(answer.allow.as_deref(), Some(methods), "{place}")
            }
        }
    }

    fn call(&self) -> Call<'_> {
        let Self { method, target, fields, body, .. } = self;
        Call { method, target, fields, body }
    }

    fn is_stream(&self) -> bool {
        matches!(self.answer, Expected::Lines(_))
    }
}

fn prepare(options: &mut Options) {
    options.mounts.push(mount("/svc", routes(&Open::default())));
    options.limits.service_timeout = Duration::from_millis(300);
}

#[test]
fn a_call_has_the_same_answer_over_http_1_and_multiplexed_on_a_websocket_and_tcp() {
    let fixture = with_mounts(vec![], prepare);
    let mut socket = Client::open(Carrier::WebSocket, &fixture);
    let mut tcp = Client::open(Carrier::Tcp, &fixture);
    for case in CASES {
        case.check("HTTP/1.1", &case.call().over_http1(&fixture));
        case.check("/ws", &case.call().multiplexed(&mut socket, case.is_stream()));
        case.check("TCP", &case.call().multiplexed(&mut tcp, case.is_stream()));
    }
}

#[test]
fn a_call_has_the_same_answer_over_http_2() {
    let secure = Secure::with(prepare);
    run(async {
        let stream = secure.connect(&["h2"]).await.unwrap();
        let (client, connection) = h2::client::handshake(stream).await.unwrap();
        let connection = tokio::spawn(connection);
        for case in CASES {
            case.check("HTTP/2", &case.call().over_http2(client.clone()).await);
        }
        drop(client);
        connection.await.unwrap().unwrap();
    });
}
