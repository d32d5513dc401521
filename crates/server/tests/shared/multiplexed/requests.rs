//! Requests and their answers, refusals, and the use of ids.

use anemone_hub::Retention;
use anemone_testing::HANDSHAKE;
use anemone_testing::multiplexed::{BOTH, Client};
use anemone_ws::proto::Message;

use crate::multiplexed::{start, started, with_limits};

#[test]
fn the_handshake_must_offer_the_subprotocol() {
    let fixture = started();
    for offer in [&[][..], &[("Sec-WebSocket-Protocol", "anemone.events, anemone.v2")]] {
        let detail =
            fixture.get("/ws", &[&HANDSHAKE[..], offer].concat()).problem(400, "bad-handshake");
        assert!(detail.contains("must offer anemone.v1"), "{detail}");
    }
    fixture.get("/ws", &[]).problem(426, "bad-handshake");
    let offer = ["anemone.events", "anemone.v1"];
    let socket = fixture.websocket("/ws", &offer, &[]);
    assert_eq!(socket.subprotocol.as_deref(), Some("anemone.v1"));
}

#[test]
fn pages_of_another_origin_are_refused() {
    let allowed = "http://good.example";
    let fixture = start(
        |options| options.allowed_origins = vec![allowed.parse().unwrap()],
        Retention::default(),
    );
    let own = format!("http://{}", fixture.address);
    for origin in ["http://evil.example", "http://localhost", "null"] {
        let own = [("Origin", origin), ("Sec-WebSocket-Protocol", "anemone.v1")];
        let fields = [&HANDSHAKE[..], &own].concat();
        let detail = fixture.get("/ws", &fields).problem(403, "origin-refused");
        assert!(detail.contains(origin), "{detail}");
    }
    for origin in [&*own, allowed] {
        fixture.websocket("/ws", &["anemone.v1"], &[("Origin", origin)]);
    }
}

#[test]
fn what_http_answers_is_answered_here_too() {
    let fixture = started();
    fixture.publish(1..=2);
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        let topics = client.ask("GET 7 /topics");
        assert_eq!((topics.status, &*topics.id, &topics.position), (200, "7", &None));
        assert_eq!(topics.json(), fixture.get("/topics", &[]).json());
        let page = client.ask("GET 7 /topics?limit=1&after=a");
        assert_eq!(page.json(), fixture.get("/topics?limit=1&after=a", &[]).json());
        client.ask("GET 7 /topics?limit=0").problem(400, "7", "bad-parameter");
        let clock = client.ask("GET 7 /clock");
        assert!(clock.json()["time"].as_f64().unwrap() > 1.7e12, "{clock:?}");
    }
}

#[test]
fn a_head_gets_what_a_get_would_without_the_payload() {
    let fixture = started();
    fixture.publish(1..=2);
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        for target in [
            "/clock",
            "/health",
            "/topics?limit=1",
            "/topics?limit=1&prefix=w",
            "/topics/wind?wait=1",
            "/topics/wind?wait=0",
            "/topics/wind?wait=x",
            "/topics/wind?wait=1&after=latest",
            "/topics/wind?limit=1&after=earliest&mode=latest",
            "/topics/wind?frame=f-",
            "/topics/wind",
            "/topics/wind?after=earliest",
            "/topics/wind?after=x",
            "/topics/wind?limit=0",
            "/topics/wind/readers",
            "/topics/nothing",
            "/runs",
            "/runs/0123456789abcdef0123456789abcdef",
            "/openapi.json",
            "/nothing",
        ] {
            let by_http = fixture.request("HEAD", target, &[]);
            let reply = client.ask(&format!("HEAD 7 {target}"));
            assert_eq!((reply.status, &*reply.payload), (by_http.status, ""), "{target}");
            for name in ["etag", "link"] {
                let field = by_http.field(name);
                let of_name = |field: &String| Some(decoded(field.strip_prefix(name)?));
                let found = reply.fields.iter().find_map(of_name);
                assert_eq!(found, field.map(|value| format!("={value}")), "{target} {name}");
            }
        }
        // It is no reader, so its id is free.
        assert_eq!(client.ask("GET 7 /clock").status, 200);
    }
}

#[test]
fn a_page_of_topics_has_the_link_to_the_next_one() {
    let fixture = started();
    fixture.hub.ensure("waves".parse().unwrap(), Retention::default()).unwrap();
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        for (target, has_link) in [("/topics?limit=1", true), ("/topics", false)] {
            let link = fixture.get(target, &[]).field("link").map(|link| format!("link={link}"));
            assert_eq!(link.is_some(), has_link);
            let reply = client.ask(&format!("GET 7 {target}"));
            let fields: Vec<_> = reply.fields.iter().map(|field| decoded(field)).collect();
            assert_eq!(fields, link.into_iter().collect::<Vec<_>>(), "{target}");
        }
        // A reader of events is no poll.
        for parameter in ["wait=1", "frame=f"] {
            let refused = client.ask(&format!("GET 7 /topics/wind?{parameter}"));
            refused.problem(400, "7", "bad-parameter");
        }
    }
}

/// A text whose percent-escapes are those of ASCII characters.
fn decoded(text: &str) -> String {
    let mut pieces = text.split('%');
    let mut decoded = pieces.next().unwrap().to_owned();
    for piece in pieces {
        let (digits, rest) = piece.split_at(2);
        decoded.push(u8::from_str_radix(digits, 16).unwrap().into());
        decoded += rest;
    }
    decoded
}

#[test]
fn a_websocket_may_send_requests_as_text_or_binary() {
    let fixture = started();
    let mut socket = fixture.websocket("/ws", &["anemone.v1"], &[]);
    socket.send(Message::Binary(b"GET a /clock"));
    assert!(socket.next().starts_with("200 a\n{\"time\":"));
}

#[test]
fn problems_have_the_bodies_they_have_by_http() {
    let fixture = started();
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        for (method, target) in [
            ("GET", "/nothing"),
            ("GET", "/"),
            ("GET", "/topics/"),
            ("GET", "/topics/nothing"),
            ("GET", "/topics/a%20b"),
            ("GET", "/topics/wind%2F"),
            ("GET", "/topics/wind%"),
            ("GET", "/cloc%6b%00"),
            ("POST", "/topics/%2574"),
            ("GET", "/topics/wind?after=x"),
            ("GET", "/topics/wind?after=ya-99"),
            ("GET", "/topics/wind?limit=0"),
            ("GET", "/topics/wind?nonsense=1"),
            ("POST", "/topics/wind"),
            ("DELETE", "/topics/wind"),
            ("PUT", "/topics/wind"),
            ("POST", "/topics/nothing"),
            ("POST", "/clock"),
            ("DELETE", "/topics"),
        ] {
            if target == "/" {
                let reply = client.ask("GET 7 /");
                assert!(reply.problem(404, "7", "unknown-path").contains("nothing at /"));
                continue;
            }
            let by_http = fixture.request(method, target, &[]);
            let reply = client.ask(&format!("{method} 7 {target}"));
            assert_eq!((reply.status, &*reply.id), (by_http.status, "7"), "{method} {target}");
            assert_eq!(reply.json(), by_http.json(), "{method} {target}");
        }
        for target in ["/topics/wind?wait=1", "/topics/wind?frame=f"] {
            let detail = client.ask(&format!("GET 7 {target}")).problem(400, "7", "bad-parameter");
            assert!(detail.contains("multiplexed"), "{detail}");
        }
    }
}

#[test]
fn a_target_is_the_same_however_its_path_is_escaped() {
    let fixture = started();
    fixture.publish(1..=1);
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        assert_eq!(client.ask("GET 7 /cloc%6B").status, 200);
        client.ask("GET 7 /topics/%77ind?after=earliest").is_line(100, "7", "ya-0");
        assert_eq!(client.next().number(), 1);
    }
}

#[test]
fn what_cannot_be_understood_is_told_and_the_connection_goes_on() {
    let fixture = started();
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        for (message, id) in [
            ("", "-"),
            ("\n", "-"),
            ("nonsense", "-"),
            ("GET", "-"),
            ("GET 7", "7"),
            ("GET 7 clock", "7"),
            ("GET 7 /clock x", "7"),
            ("GET 7 /clock  x-a=1", "7"),
            ("GET 7 /clock x-a=\"1\"", "7"),
            ("GET 7 /clock x-a=1 x-a=1", "7"),
            ("GET 7 /clock host=a.example", "7"),
            ("GET 7 /clock x-forwarded-for=10.0.0.1", "7"),
            ("GET 7 /clock x-a=1", "7"),
            ("GET 7 /topics/wind accept=text/event-stream", "7"),
            ("POST 7 /topics/wind idempotency-key=k\n1", "7"),
            ("get 7 /clock", "7"),
            ("GET - /clock", "-"),
            ("GET 12345678901234567 /clock", "-"),
            ("GET 7 /clock\r\n", "7"),
            ("GET 7 /ü", "7"),
            ("GET 7 /\0", "7"),
            ("CANCEL 7 /clock", "-"),
            ("{\"method\":\"GET\"}", "-"),
        ] {
            client.ask(message).problem(400, id, "bad-message");
        }
        assert_eq!(client.ask("GET 7 /clock").status, 200);
    }
}

#[test]
fn an_id_is_free_once_its_request_has_its_final_status() {
    let fixture = started();
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        client.ask("GET r /topics/wind").is_line(100, "r", "ya-0");
        let detail = client.ask("GET r /clock").problem(400, "-", "bad-message");
        assert!(detail.contains("request r is still open"), "{detail}");
        client.ask("get r /clock").problem(400, "-", "bad-message");
        client.ask("CANCEL r").is_line(204, "r", "");
        // The request has had its final status, and gets no other.
        client.send("CANCEL r");
        assert_eq!(client.ask("GET r /clock").status, 200);
        client.ask("GET r /topics/wind").is_line(100, "r", "ya-0");
    }
}

#[test]
fn many_requests_in_one_write_are_all_answered_once_however_large_the_answers() {
    let fixture = with_limits(|limits| limits.stream_bytes_max = 1000);
    for number in 0..100 {
        fixture.hub.create(format!("t{number}").parse().unwrap(), Retention::default()).unwrap();
    }
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        let requests: Vec<String> = (0..500).map(|id| format!("GET {id} /topics")).collect();
        client.send_all(&requests);
        let mut ids = Vec::new();
        for _ in 0..500 {
            let reply = client.next();
            assert_eq!(reply.status, 200);
            assert_eq!(reply.json()["topics"].as_array().unwrap().len(), 101);
            ids.push(reply.id.parse::<usize>().unwrap());
        }
        assert_eq!(ids, (0..500).collect::<Vec<_>>(), "in the order they were asked in");
        assert_eq!(client.ask("GET 1 /clock").status, 200);
    }
}
