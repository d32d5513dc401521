//! The resource of the demo, through the binary: what survives a kill, who may change it, and its documents.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anemone_testing::process::{ask, get, serve};
use anemone_testing::wait_until;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::tempdir;

fn body(reply: &str) -> Value {
    let (_, body) = reply.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {reply}"))
}

fn status(reply: &str) -> u16 {
    reply.split(' ').nth(1).unwrap_or_default().parse().unwrap_or_default()
}

/// The reply to a request; `None` if the server ends before it has sent one.
fn try_ask(address: SocketAddr, head: &str, body: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
    let length = body.len();
    let request = format!(
        "{head} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).ok()?;
    reply.contains("\r\n\r\n").then_some(reply)
}

/// A writer's knowledge of its record: the text that the server has acknowledged, and the one whose reply did not come.
#[derive(Clone, Debug, Default)]
struct Known {
    acknowledged: Option<String>,
    uncertain: Option<String>,
}

/// Changes one record again and again until the server is gone.
fn write(address: SocketAddr, id: &str, known: &mut Known, round: usize, done: &AtomicUsize) {
    for step in 0.. {
        let text = format!("{id}-{round}-{step}-{}", "x".repeat(step % 300));
        let (head, body) = match known.acknowledged {
            None => ("POST /messages".to_owned(), json!({"id": id, "text": text})),
            Some(_) => (format!("PUT /messages/{id}"), json!({"text": text})),
        };
        let Some(reply) = try_ask(address, &head, &body.to_string()) else {
            known.uncertain = Some(text);
            return;
        };
        assert!([200, 201].contains(&status(&reply)), "{reply}");
        *known = Known { acknowledged: Some(text), uncertain: None };
        done.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn acknowledged_changes_survive_kills_at_any_moment() {
    const WRITERS: usize = 8;
    let directory = tempdir().unwrap();
    let data = directory.path().to_str().unwrap();
    let mut known = vec![Known::default(); WRITERS];
    for round in 0..6 {
        let (server, address) = serve(&["--demo", "--data", data, "--threads", "2"]);
        let found = body(&get(address, "/messages?$limit=1000"));
        let texts: BTreeMap<String, String> =
            found["data"].as_array().unwrap().iter().map(text_of).collect();
        for (writer, known) in known.iter_mut().enumerate() {
            let id = format!("w{writer}");
            let text = texts.get(&id).cloned();
            let is_one = text == known.acknowledged || text.is_some() && text == known.uncertain;
            assert!(is_one, "{id} is {text:?} in round {round}, and was {known:?}");
            known.acknowledged = text;
        }
        assert_eq!(
            as_read(address),
            texts,
            "whoever reads the topic has the same, in round {round}"
        );
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for (writer, known) in known.iter_mut().enumerate() {
                let done = &done;
                scope.spawn(move || write(address, &format!("w{writer}"), known, round, done));
            }
            wait_until("changes", || done.load(Ordering::Relaxed) > 40 + 13 * round);
            server.signal(Signal::KILL);
        });
        server.wait();
    }
}

fn text_of(record: &Value) -> (String, String) {
    (record["id"].as_str().unwrap().to_owned(), record["text"].as_str().unwrap().to_owned())
}

/// The texts of the records that the events of the topic make.
fn as_read(address: SocketAddr) -> BTreeMap<String, String> {
    let (mut records, mut after) = (BTreeMap::new(), "earliest".to_owned());
    loop {
        let page = body(&get(address, &format!("/topics/messages?after={after}")));
        let events = page["events"].as_array().unwrap();
        if events.is_empty() {
            return records;
        }
        for event in events {
            let (name, record) = event["data"].as_object().unwrap().iter().next().unwrap();
            let (id, text) = text_of(record);
            match &**name {
                "removed" => drop(records.remove(&id)),
                _ => drop(records.insert(id, text)),
            }
        }
        after = page["next"].as_str().unwrap().to_owned();
    }
}

fn field<'a>(reply: &'a str, name: &str) -> &'a str {
    let (head, _) = reply.split_once("\r\n\r\n").unwrap();
    let fields = head.lines().filter_map(|line| line.split_once(": "));
    fields
        .into_iter()
        .find(|(own, _)| own.eq_ignore_ascii_case(name))
        .map_or("", |(_, value)| value)
}

#[test]
fn a_create_with_a_key_happens_once_across_a_kill() {
    let directory = tempdir().unwrap();
    let data = directory.path().to_str().unwrap();
    let create = |address, text: &str| {
        let head = "POST /messages HTTP/1.1\r\nIdempotency-Key: a-key";
        ask(address, head, &json!({"text": text}).to_string())
    };
    let (server, address) = serve(&["--demo", "--data", data]);
    let first = create(address, "a");
    assert_eq!((status(&first), field(&first, "location")), (201, "messages/1"));
    server.signal(Signal::KILL);
    server.wait();
    let (_server, address) = serve(&["--demo", "--data", data]);
    let again = create(address, "a");
    assert_eq!((status(&again), field(&again, "idempotent-replayed")), (200, "true"));
    assert_eq!((body(&again), field(&again, "etag")), (body(&first), field(&first, "etag")));
    assert_eq!(status(&create(address, "b")), 422);
    assert_eq!(body(&get(address, "/messages"))["total"], 1);
}

#[test]
fn of_eight_changes_of_one_version_one_happens() {
    let (_server, address) = serve(&["--demo"]);
    let created = ask(address, "POST /messages HTTP/1.1", r#"{"id":"a","text":"a"}"#);
    let mut tag = field(&created, "etag").to_owned();
    for round in 0..10 {
        let head = format!("PATCH /messages/a HTTP/1.1\r\nIf-Match: {tag}");
        let text = json!({"text": round.to_string()}).to_string();
        let replies: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| ask(address, &head, &text))).collect();
            all.into_iter().map(|reply| reply.join().unwrap()).collect()
        });
        let (won, lost): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| status(reply) == 200);
        assert_eq!((won.len(), lost.len()), (1, 7), "{replies:?}");
        assert!(lost.iter().all(|reply| status(reply) == 412), "{lost:?}");
        tag = field(won[0], "etag").to_owned();
    }
}

#[test]
fn testing_is_the_message_of_the_published_figures() {
    let (_server, address) = serve(&["--demo"]);
    let reply = get(address, "/messages/testing");
    assert_eq!(reply.split_once("\r\n\r\n").unwrap().1, r#"{"id":"testing"}"#);
    assert!(!reply.to_ascii_lowercase().contains("\r\netag:"), "{reply}");
    let head = ask(address, "HEAD /messages/testing HTTP/1.1", "");
    assert!(
        head.ends_with("\r\n\r\n") && head.to_ascii_lowercase().contains("content-length: 16"),
        "{head}"
    );
}

#[test]
fn only_clients_of_this_machine_change_messages_unless_the_configuration_says_otherwise() {
    let json = "Content-Type: application/json";
    let create = |address, more: &str| {
        status(&ask(
            address,
            &format!("POST /messages HTTP/1.1\r\n{json}{more}"),
            r#"{"text":"a"}"#,
        ))
    };
    let proxied = "\r\nX-Forwarded-For: 192.0.2.1";
    let (_server, address) = serve(&["--demo"]);
    assert_eq!(create(address, ""), 201);
    assert_eq!(create(address, proxied), 403);
    let read = ask(address, &format!("GET /messages HTTP/1.1{proxied}"), "");
    assert_eq!((status(&read), &body(&read)["total"]), (200, &json!(1)));
    let publish = ask(address, &format!("POST /topics/messages HTTP/1.1\r\n{json}"), "1");
    assert_eq!(status(&publish), 405, "nobody publishes to the topic");
    let delete = ask(address, "DELETE /topics/messages HTTP/1.1", "");
    assert_eq!(status(&delete), 405);

    let directory = tempdir().unwrap();
    let file = directory.path().join("a.toml");
    std::fs::write(
        &file,
        "demo = true\ndemo_messages = \"anyone\"\n[[topic]]\nname = \"m*\"\npublish = \"anyone\"",
    )
    .unwrap();
    let (_server, address) = serve(&["--config", file.to_str().unwrap()]);
    assert_eq!(create(address, proxied), 201);
    let publish = ask(address, &format!("POST /topics/messages HTTP/1.1\r\n{json}"), "1");
    assert_eq!(status(&publish), 405, "a pattern opens the topic to nobody");
}

#[test]
fn the_configuration_limits_the_records() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("a.toml");
    let created = |limit: &str, lengths: &[usize]| {
        std::fs::write(&file, format!("demo = true\n[limits.messages]\n{limit}")).unwrap();
        let (_server, address) = serve(&["--config", file.to_str().unwrap()]);
        let head = "POST /messages HTTP/1.1\r\nContent-Type: application/json";
        let create = |length: &usize| {
            let record = json!({"text": "a".repeat(*length)});
            status(&ask(address, head, &record.to_string()))
        };
        lengths.iter().map(create).collect::<Vec<_>>()
    };
    assert_eq!(created("records_max = 2", &[1, 1, 1]), [201, 201, 507]);
    // Beside its text, a record takes 160 bytes and those of {"created":{"id":"1","text":""}}.
    let fits = 2048 - 160 - r#"{"created":{"id":"1","text":""}}"#.len();
    assert_eq!(created("bytes_max = 4096", &[fits, fits]), [201, 201]);
    assert_eq!(created("bytes_max = 4096", &[fits, fits + 1, fits]), [201, 507, 201]);
}

#[test]
fn the_documents_describe_the_messages() {
    let (_server, address) = serve(&["--demo"]);
    let paths = body(&get(address, "/openapi.json"))["paths"].take();
    for path in ["/topics/{name}", "/messages", "/messages/{id}", "/echo"] {
        assert!(paths[path].is_object(), "{path}");
    }
    assert_eq!(paths["/messages/{id}"]["patch"]["operationId"], "patch_messages");
    let described = body(&get(address, "/asyncapi.json"));
    let channel = &described["channels"]["topic-messages"];
    assert_eq!(channel["address"], "/topics/messages");
    assert_eq!(channel["messages"]["event"]["payload"]["title"], "MessageEvent");
    assert_eq!(described["operations"]["read-topic-messages"]["action"], "send");
    assert_eq!(described["operations"]["publish-topic-messages"], Value::Null);
    assert_eq!(described["operations"]["publish-topics-scratch-"]["action"], "receive");
    for (path, own) in [("/computations", &["states", "batch", "pace"][..]), ("/propagation", &[])]
    {
        let post = &paths[path]["post"];
        let parameters = post["parameters"].as_array().unwrap().iter().map(|one| &one["name"]);
        let general = ["Prefer", "Idempotency-Key", "attach", "name"];
        assert!(parameters.eq(general.iter().chain(own)), "{post}");
        assert!(post["summary"].as_str().unwrap().ends_with('.'), "{post}");
        assert!(post["description"].as_str().unwrap().contains("events of the run"), "{post}");
        let example = &post["requestBody"]["content"]["application/json"]["example"];
        let head = format!(
            "POST {path} HTTP/1.1\r\nContent-Type: application/json\r\nPrefer: respond-async"
        );
        assert_eq!(status(&ask(address, &head, &example.to_string())), 202, "{example}");
    }

    let (_server, address) = serve(&["--host"]);
    let paths = body(&get(address, "/openapi.json"))["paths"].take();
    for path in ["/messages", "/echo"] {
        assert_eq!(paths[path], Value::Null, "{path}");
    }
    assert_eq!(paths["/topics/{name}"]["post"], Value::Null, "no client may publish");
}

#[test]
fn the_document_has_the_fields_and_members_of_replies() {
    let (_server, address) = serve(&["--demo"]);
    let document = body(&get(address, "/openapi.json"));
    let field = |reply: &str, name: &str| {
        let start = format!("{}:", name.to_lowercase());
        reply.lines().any(|line| line.to_lowercase().starts_with(&start))
    };
    // The reply to a request, whose fields are described under this path.
    let told = |path: &str, request: &str, fields: &str, sent: &str| {
        let head = format!("{request} HTTP/1.1\r\nContent-Type: application/json{fields}");
        let reply = ask(address, &head, sent);
        let verb = request.split(' ').next().unwrap().to_lowercase();
        let described = &document["paths"][path][&verb]["responses"][status(&reply).to_string()];
        for name in ["ETag", "Location", "Idempotent-Replayed", "Preference-Applied"] {
            let words = &described["headers"][name];
            let words = words["$ref"].as_str().map_or(Some(words), |at| document.pointer(&at[1..]));
            let is_described = words.is_some_and(|words| words["schema"].is_object());
            assert!(!field(&reply, name) || is_described, "{request}: {name}: {described}");
        }
        reply
    };
    let post = &document["paths"]["/computations"]["post"];
    let run = post["requestBody"]["content"]["application/json"]["example"].to_string();
    for is_replayed in [false, true] {
        for (number, (path, request, sent)) in [
            ("/topics/{name}", "POST /topics/scratch-a", "1"),
            ("/messages", "POST /messages", r#"{"text":"a"}"#),
            ("/messages/{id}", "PUT /messages/1", r#"{"text":"b"}"#),
            ("/messages/{id}", "PATCH /messages/1", r#"{"text":"c"}"#),
            ("/messages/{id}", "DELETE /messages/1", ""),
            ("/computations", "POST /computations", &run),
        ]
        .into_iter()
        .enumerate()
        {
            let reply = told(path, request, &format!("\r\nIdempotency-Key: k{number}"), sent);
            assert_eq!(field(&reply, "Idempotent-Replayed"), is_replayed, "{reply}");
        }
        let fields = "\r\nPrefer: respond-async\r\nIdempotency-Key: state";
        let state = body(&told("/computations", "POST /computations", fields, &run));
        let described = &document["components"]["schemas"]["Run"]["properties"];
        for name in state.as_object().unwrap().keys() {
            assert!(described[name].is_object(), "{name}: {described}");
        }
    }
    for (path, request) in [
        ("/topics", "GET /topics?topic=scratch-a&after=latest"),
        ("/topics/{name}", "GET /topics/scratch-a?after=latest"),
    ] {
        let reply = told(path, request, "\r\nPrefer: wait=0.01", "");
        assert!(field(&reply, "Preference-Applied"), "{reply}");
    }
}
