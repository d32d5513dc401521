//! One table of calls with the same answers over every transport.

use std::time::Duration;

use anemone_testing::multiplexed::{self, Carrier, Client};
use anemone_testing::run;
use anemone_testing::secure::Secure;
use bytes::Bytes;
use http::Request;

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
    /// A stream of these lines.
    Lines(&'static [&'static str]),
    /// Any body that is not empty.
    Some,
    /// A body of so many bytes.
    Length(usize),
    /// A problem of this kind.
    Problem(&'static str),
    /// Any body, and the field `Allow`.
    Allow(&'static str),
}

/// An answer as a client gets it.
struct Answer {
    status: u16,
    /// The body; the items of a stream with line feeds.
    body: Vec<u8>,
    allow: Option<String>,
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

    fn is_stream(&self) -> bool {
        matches!(self.answer, Expected::Lines(_))
    }
}

fn over_http1(fixture: &Fixture, case: &Case) -> Answer {
    let mut stream = fixture.connect();
    let len = case.body.len().to_string();
    let mut fields = [case.fields, &[("Connection", "close")]].concat();
    if !case.body.is_empty() {
        fields.push(("Content-Length", &len));
    }
    let head = request(fixture.address, case.method, case.target, &fields);
    stream.write_all((head + case.body).as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let head = Reply::read_head(&mut reader);
    let mut body = Vec::new();
    reader.read_to_end(&mut body).unwrap();
    if head.field("transfer-encoding").is_some() {
        body = unchunked(str::from_utf8(&body).unwrap()).unwrap().into_bytes();
    }
    let allow = head.field("allow").map(str::to_owned);
    Answer { status: head.status, body, allow }
}

async fn over_http2(client: h2::client::SendRequest<Bytes>, case: &Case) -> Answer {
    let mut client = client.ready().await.unwrap();
    let uri = format!("https://localhost{}", case.target);
    let mut asked = Request::builder().method(case.method).uri(uri);
    for (name, value) in case.fields {
        asked = asked.header(*name, *value);
    }
    let has_body = !case.body.is_empty();
    let (reply, mut body) = client.send_request(asked.body(()).unwrap(), !has_body).unwrap();
    if has_body {
        body.send_data(Bytes::from_static(case.body.as_bytes()), true).unwrap();
    }
    let (head, mut rest) = reply.await.unwrap().into_parts();
    let mut body = Vec::new();
    while let Some(data) = rest.data().await {
        let data = data.unwrap();
        rest.flow_control().release_capacity(data.len()).unwrap();
        body.extend_from_slice(&data);
    }
    let allow = head.headers.get("allow").map(|methods| methods.to_str().unwrap().to_owned());
    Answer { status: head.status.as_u16(), body, allow }
}

/// The value of a field in a line.
fn escaped(value: &str) -> String {
    let escape = |byte: u8| match byte {
        b' ' | b'%' | b'"' | b'=' => format!("%{byte:02x}"),
        byte => char::from(byte).to_string(),
    };
    value.bytes().map(escape).collect()
}

fn multiplexed(client: &mut Client, case: &Case) -> Answer {
    let fields = case.fields.iter().map(|(name, value)| format!(" {name}={}", escaped(value)));
    let line = format!("{} 7 {}{}", case.method, case.target, fields.collect::<String>());
    client.send(&if case.body.is_empty() { line } else { format!("{line}\n{}", case.body) });
    let (mut body, mut allow) = (Vec::new(), None);
    loop {
        let message = client.bytes().unwrap();
        let end = message.iter().position(|byte| *byte == b'\n').unwrap_or(message.len());
        let reply = multiplexed::Reply::parse(str::from_utf8(&message[..end]).unwrap());
        let is_item = end < message.len();
        body.extend_from_slice(message.get(end + 1..).unwrap_or_default());
        body.extend((is_item && case.is_stream()).then_some(b'\n'));
        let methods = reply.fields.iter().find_map(|field| field.strip_prefix("allow="));
        allow = allow.or(methods.map(str::to_owned));
        if reply.is_final() {
            return Answer { status: reply.status, body, allow };
        }
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
        case.check("HTTP/1.1", &over_http1(&fixture, case));
        case.check("/ws", &multiplexed(&mut socket, case));
        case.check("TCP", &multiplexed(&mut tcp, case));
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
            case.check("HTTP/2", &over_http2(client.clone(), case).await);
        }
        drop(client);
        connection.await.unwrap().unwrap();
    });
}
