//! Many calls on one connection, on a WebSocket and on TCP: each has its own reply, its own end, and its own pace.

use std::io;
use std::time::Duration;

use anemone_client::{CallVia, Client, Error, Limits, Retry};
use tokio::task::JoinSet;

use crate::SOON;
use crate::fake::{Conn, Fake, problem};

const VIAS: [CallVia; 2] = [CallVia::Mux, CallVia::Tcp];

/// The server's side of a connection.
struct Peer {
    conn: Conn,
    via: CallVia,
}

impl Peer {
    fn send(&mut self, message: &str) -> io::Result<()> {
        match self.via {
            CallVia::Tcp => self.conn.frame(message),
            _ => self.conn.message(message),
        }
    }

    fn receive(&mut self) -> io::Result<String> {
        match self.via {
            CallVia::Tcp => self.conn.receive_frame(),
            _ => self.conn.receive(),
        }
    }

    /// The next request: its id, and the rest of its message.
    fn request(&mut self) -> io::Result<(String, String)> {
        let message = self.receive()?;
        let (method, rest) = message.split_once(' ').unwrap();
        let (id, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        Ok((id.to_owned(), format!("{method} {rest}")))
    }
}

/// A server of one transport, which handles each connection so, and a client of it.
fn start(
    via: CallVia,
    script: impl Fn(usize, &mut Peer) -> io::Result<()> + Send + Sync + 'static,
) -> (Fake, Client) {
    let fake = Fake::start(move |number, mut conn| {
        if via == CallVia::Mux {
            let request = conn.request()?;
            assert_eq!(request.target, "/ws");
            conn.upgrade(&request)?;
        }
        script(number, &mut Peer { conn, via })
    });
    let scheme = if via == CallVia::Tcp { "tcp" } else { "http" };
    let client = Client::new(&format!("{scheme}://{}", fake.address())).unwrap().via(via);
    let client = client.retry(Retry { failures_max: Some(5), ..SOON });
    (fake, client)
}

#[tokio::test]
async fn the_events_of_a_run_that_a_call_starts_are_items_as_over_http() {
    let lines = [
        r#"{"position":"e-0"}"#,
        r#"{"position":"e-1","time":1789000000123.456,"data":{"partial":[1, 2]}}"#,
        r#"{"position":"e-1"}"#,
        r#"{"gap":{"reason":"retention","after":"e-1","missed":7,"resume":"e-8"}}"#,
        r#"{"position":"e-9","time":1789000000124.001,"data":{"state":"done"}}"#,
        r#"{"end":{"reason":"ended"}}"#,
    ];
    let http = Fake::start(move |_, mut conn| {
        conn.request()?;
        conn.answer("200 OK", "content-type: application/x-ndjson\r\n", &lines.join("\n"))
    });
    let client = Client::new(&format!("http://{}", http.address())).unwrap();
    assert_eq!(items(&client).await, lines);
    for via in VIAS {
        let (_fake, client) = start(via, move |_, peer| {
            let (id, _) = peer.request()?;
            peer.send(&format!("100 {id} e-0 location=runs/7"))?;
            peer.send(&format!("206 {id} e-1 1789000000123.456\n{{\"partial\":[1, 2]}}"))?;
            peer.send(&format!("100 {id} e-1"))?;
            peer.send(&format!("110 {id} e-8\n{}", lines[3]))?;
            peer.send(&format!("206 {id} e-9 1789000000124.001\n{{\"state\":\"done\"}}"))?;
            peer.send(&format!("110 {id} e-9\n{}", lines[5]))?;
            peer.send(&format!("200 {id}"))?;
            peer.conn.wait()
        });
        assert_eq!(items(&client).await, lines, "{via:?}");
    }
}

/// The items of the reply to a call.
async fn items(client: &Client) -> Vec<String> {
    let mut reply = client.call("POST", "/primes").json("100").stream().await.unwrap();
    assert!(reply.is_stream());
    let mut items = Vec::new();
    while let Some(item) = reply.next().await.unwrap() {
        items.push(String::from_utf8(item.to_vec()).unwrap());
    }
    items
}

#[tokio::test]
async fn a_call_is_a_line_with_its_fields_and_so_is_its_reply() {
    for via in VIAS {
        let (_fake, client) = start(via, |_, peer| {
            let (id, rest) = peer.request()?;
            assert_eq!(rest, "PATCH /a/1?b=c x-who=me if-match=%223%22\n{\"n\":1}");
            peer.send(&format!("200 {id} etag=%224%22\n{{\"n\":1}}"))?;
            let (id, rest) = peer.request()?;
            assert_eq!(rest, "PUT /a x-who=you content-type=text/plain\nhi");
            peer.send(&format!("204 {id}"))?;
            let (id, rest) = peer.request()?;
            assert_eq!(rest, "GET /a x-who=me");
            peer.send(&format!("404 {id}\n{}", problem("unknown-record")))?;
            peer.conn.wait()
        });
        let client = client.header("X-Who", "me");
        let call = client.call("PATCH", "/a/1?b=c").header("If-Match", "\"3\"");
        let reply = call.json("{\"n\":1}").send().await.unwrap();
        assert_eq!((reply.field("etag"), &reply.body()[..]), (Some("\"4\""), &b"{\"n\":1}"[..]));
        assert_eq!(reply.field("content-type"), Some("application/json"));
        let call = client.call("PUT", "/a").header("x-who", "you").body("text/plain", "hi");
        let reply = call.send().await.unwrap();
        assert_eq!(
            (reply.status(), reply.body().len(), reply.field("content-type")),
            (204, 0, None)
        );
        let error = client.call("GET", "/a").send().await.unwrap_err();
        let Error::Refused(refused) = error else { panic!("{error:?}") };
        assert_eq!((refused.status(), refused.problem()), (404, Some("unknown-record")));
        let error = client.call("GET", "/").header("Cookie", "a=b").send().await.unwrap_err();
        assert!(matches!(error, Error::HeaderNotMultiplexed { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn many_calls_share_one_connection_and_their_ids_are_used_again() {
    const CALLS: usize = 300;
    const OPEN: usize = 20;
    for via in VIAS {
        let (fake, client) = start(via, |_, peer| {
            // The replies come in another order.
            let mut waiting = Vec::new();
            for count in 1..=CALLS {
                waiting.push(peer.request()?);
                if waiting.len() == OPEN || count == CALLS {
                    for (id, rest) in waiting.drain(..).rev() {
                        assert!(id.parse::<usize>().unwrap() < OPEN, "{id}");
                        peer.send(&format!("200 {id}\n\"{rest}\""))?;
                    }
                }
            }
            peer.conn.wait()
        });
        let client = client.limits(Limits { calls_max: OPEN, ..Limits::default() });
        let mut calls = JoinSet::new();
        for number in 0..CALLS {
            let call = client.call("GET", format!("/{number}"));
            calls.spawn(async move { (number, call.send().await.unwrap()) });
        }
        while let Some(done) = calls.join_next().await {
            let (number, reply) = done.unwrap();
            assert_eq!(reply.body(), format!("\"GET /{number}\"").as_bytes());
        }
        assert_eq!(fake.connections(), 1);
    }
}

#[tokio::test]
async fn items_come_one_by_one_and_a_failure_midway_is_an_error() {
    for via in VIAS {
        let (_fake, client) = start(via, |_, peer| {
            let (id, _) = peer.request()?;
            for number in 0..100 {
                peer.send(&format!("206 {id}\n{number}"))?;
            }
            peer.send(&format!("200 {id}"))?;
            let (id, _) = peer.request()?;
            peer.send(&format!("206 {id}\n1"))?;
            peer.send(&format!("500 {id}\n{}", problem("internal")))?;
            peer.conn.wait()
        });
        let mut stream = client.call("POST", "/a").json("1").stream().await.unwrap();
        assert!(stream.is_stream());
        for number in 0..100 {
            assert_eq!(stream.next().await.unwrap().unwrap(), number.to_string());
        }
        assert_eq!(stream.next().await.unwrap(), None);
        assert_eq!(stream.next().await.unwrap(), None);
        let mut stream = client.call("GET", "/a").stream().await.unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), "1");
        assert!(matches!(stream.next().await, Err(Error::Refused(_))));
    }
}

#[tokio::test]
async fn who_drops_a_call_cancels_it_and_its_id_is_free_after_the_final_status() {
    for via in VIAS {
        let (_fake, client) = start(via, |_, peer| {
            let (first, _) = peer.request()?;
            peer.send(&format!("206 {first}\n1"))?;
            assert_eq!(peer.receive()?, format!("CANCEL {first}"));
            // The id is taken until then.
            let (second, _) = peer.request()?;
            assert_ne!(first, second);
            peer.send(&format!("204 {first}"))?;
            peer.send(&format!("200 {second}\n1"))?;
            let (third, _) = peer.request()?;
            assert!([first, second].contains(&third), "{third}");
            peer.send(&format!("200 {third}\n2"))?;
            peer.conn.wait()
        });
        let mut stream = client.call("GET", "/a").stream().await.unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), "1");
        drop(stream);
        for body in ["1", "2"] {
            assert_eq!(client.call("GET", "/b").send().await.unwrap().body(), body.as_bytes());
        }
    }
}

#[tokio::test]
async fn a_lost_connection_is_opened_anew_and_only_what_is_safe_is_made_again() {
    for via in VIAS {
        let (fake, client) = start(via, |number, peer| {
            let (id, rest) = peer.request()?;
            if number == 1 || rest.starts_with("POST") {
                return Ok(());
            }
            peer.send(&format!("200 {id}\n1"))
        });
        for _ in 0..2 {
            let reply = client.call("GET", "/a").send().await.unwrap();
            assert_eq!(&reply.body()[..], b"1");
        }
        let error = client.call("POST", "/a").json("1").send().await.unwrap_err();
        assert!(matches!(error, Error::Uncertain(_)), "{error:?}");
        let connections = fake.connections();
        // The second call may have met the end of the first connection.
        assert!((3..=4).contains(&connections), "{connections}");
    }
}

#[tokio::test]
async fn a_server_that_stops_says_so_to_all_calls() {
    let (fake, client) = start(CallVia::Tcp, |number, peer| {
        let (id, _) = peer.request()?;
        if number == 0 {
            return peer.send(&format!("503 -\n{}", problem("stopping")));
        }
        peer.send(&format!("200 {id}\n1"))
    });
    assert_eq!(client.call("GET", "/a").send().await.unwrap().status(), 200);
    assert_eq!(fake.connections(), 2);
}

#[tokio::test]
async fn a_slow_caller_holds_the_server_back_and_loses_nothing() {
    let item = "x".repeat(50_000);
    for via in VIAS {
        let text = item.clone();
        let (_fake, client) = start(via, move |_, peer| {
            let (id, _) = peer.request()?;
            for _ in 0..400 {
                peer.send(&format!("206 {id}\n{text}"))?;
            }
            peer.send(&format!("200 {id}"))?;
            peer.conn.wait()
        });
        let limits = Limits { waiting_bytes_max: 1000, ..Limits::default() };
        let client = client.limits(limits);
        let mut stream = client.call("GET", "/a").stream().await.unwrap();
        let mut count = 0;
        while let Some(found) = stream.next().await.unwrap() {
            assert!(found == item.as_bytes());
            count += 1;
        }
        assert_eq!(count, 400);
    }
}

#[tokio::test]
async fn what_is_no_reply_ends_the_connection_and_too_long_a_message_too() {
    for via in VIAS {
        for wrong in ["", "hello", "20 0", &format!("200 0\n{}", "x".repeat(9000))] {
            let wrong = wrong.to_owned();
            let (_fake, client) = start(via, move |_, peer| {
                peer.request()?;
                peer.send(&wrong)?;
                peer.conn.wait()
            });
            let client = client.limits(Limits { event_bytes_max: 100, ..Limits::default() });
            let call =
                tokio::time::timeout(Duration::from_secs(20), client.call("GET", "/").send());
            let error = call.await.unwrap().unwrap_err();
            let is_malformed = matches!(&error, Error::Shared(error)
                if matches!(**error, Error::Malformed(_) | Error::WebSocket(_)));
            assert!(is_malformed, "{via}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_long_body_leaves_while_replies_arrive() {
    // The server reads no further while nobody takes its replies.
    let item = "x".repeat(60_000);
    let (_fake, client) = start(CallVia::Tcp, move |_, peer| {
        let (id, _) = peer.request()?;
        for _ in 0..200 {
            peer.send(&format!("206 {id}\n{item}"))?;
        }
        let (other, rest) = peer.request()?;
        peer.send(&format!("200 {other}\n{}", rest.len()))?;
        peer.send(&format!("200 {id}"))?;
        peer.conn.wait()
    });
    let mut stream = client.call("GET", "/a").stream().await.unwrap();
    let body = "y".repeat(8 << 20);
    let call = tokio::spawn(client.call("POST", "/b").json(body).send());
    let mut count = 0;
    while stream.next().await.unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 200);
    let reply = call.await.unwrap().unwrap();
    assert_eq!(&reply.body()[..], format!("{}", (8 << 20) + "POST /b\n".len()).as_bytes());
}

#[tokio::test]
async fn a_transport_must_match_the_scheme() {
    for (url, via) in [("tcp://127.0.0.1:1", CallVia::Http), ("http://127.0.0.1:1", CallVia::Tcp)] {
        let error = Client::new(url).unwrap().via(via).call("GET", "/").send().await.unwrap_err();
        assert!(matches!(error, Error::Url(_)), "{error:?}");
    }
    let client = Client::new("tcp://127.0.0.1:1").unwrap().header("Cookie", "a=b");
    let error = client.call("GET", "/").send().await.unwrap_err();
    assert!(matches!(error, Error::Url(_)), "{error:?}");
}

#[tokio::test]
async fn a_server_below_a_path_is_found_and_calls_have_their_paths_on_it() {
    // At the root there is something else: a page, another WebSocket, nothing.
    for root in 0..3 {
        let fake = Fake::start(move |_, mut conn| {
            let request = conn.request()?;
            match &*request.target {
                "/a/b/ws" => conn.upgrade(&request)?,
                "/ws" if root == 0 => return conn.answer("200 OK", "", "<html>"),
                "/ws" if root == 1 => return conn.upgrade_without_subprotocol(&request),
                _ => return conn.answer("404 Not Found", "", ""),
            }
            let mut peer = Peer { conn, via: CallVia::Mux };
            for expected in ["GET /work?n=1", "GET /work"] {
                let (id, rest) = peer.request()?;
                assert_eq!(rest, expected);
                peer.send(&format!("200 {id}\n1"))?;
            }
            Ok(())
        });
        let url = format!("http://{}/a/b/work?n=1", fake.address());
        let (client, target) = Client::split(&url).unwrap();
        let client = client.via(CallVia::Mux).retry(Retry { failures_max: Some(5), ..SOON });
        for round in 0..2 {
            // The second round is on another connection, to the place that is known.
            let reply = client.call("GET", &*target).send().await.unwrap();
            assert_eq!(reply.body().as_ref(), b"1");
            client.call("GET", "/a/b/work").send().await.unwrap();
            assert_eq!(fake.connections(), 3 + round, "/ws, /a/ws, /a/b/ws");
        }
    }
}

#[tokio::test]
async fn the_answer_of_a_server_at_the_root_is_final_and_a_given_server_is_not_guessed() {
    let fake = Fake::start(|_, mut conn| {
        assert_eq!(conn.request()?.target, "/ws");
        conn.problem("403 Forbidden", "", "foreign-origin")
    });
    let url = format!("http://{}/a/work", fake.address());
    let (client, target) = Client::split(&url).unwrap();
    let error = client.via(CallVia::Mux).call("GET", target).send().await.unwrap_err();
    assert!(matches!(&error, Error::Refused(refused) if refused.status() == 403), "{error:?}");
    assert_eq!(fake.connections(), 1);

    let fake = Fake::start(|_, mut conn| {
        conn.request()?;
        conn.answer("404 Not Found", "", "")
    });
    let address = fake.address();
    let given = Client::new(&format!("http://{address}/")).unwrap().via(CallVia::Mux);
    assert!(given.call("GET", "/a/work").send().await.is_err());
    assert_eq!(fake.connections(), 1);
    // The places that are tried have a limit.
    let (guessed, target) = Client::split(&format!("http://{address}{}", "/a".repeat(20))).unwrap();
    let error = guessed.via(CallVia::Mux).call("GET", target).send().await.unwrap_err();
    assert!(matches!(&error, Error::Refused(refused) if refused.status() == 404), "{error:?}");
    assert_eq!(fake.connections(), 1 + 8);
}
