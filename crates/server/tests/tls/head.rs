//! `HEAD` of everything, over HTTP/1.1 and HTTP/2: the head of the reply to a `GET`, and no content (RFC 9110 section
//! 9.3.2).

use anemone_hub::Data;
use anemone_hub::run::{RunWork, StartRun};
use anemone_server::{Mount, StaticDir};
use axum::handler::HandlerWithoutStateExt;
use futures_util::stream;

use super::*;

type Fields = &'static [(&'static str, &'static str)];

const EVENTS: Fields = &[("accept", "text/event-stream")];
const LINES: Fields = &[("accept", "application/x-ndjson")];
const BROWSER: Fields = &[("accept", "text/html"), ("sec-fetch-mode", "navigate")];
const FRAME: Fields =
    &[("accept", "text/html"), ("sec-fetch-dest", "iframe"), ("sec-fetch-site", "same-origin")];

/// One request of each kind. `RUN` stands for the key of a run.
const KINDS: &[(&str, Fields)] = &[
    ("/topics/wind?after=earliest", &[]),
    ("/topics/wind", &[("if-none-match", "\"1.ya-3\"")]),
    ("/topics/wind?after=latest&wait=1", &[]),
    ("/topics/wind", EVENTS),
    ("/topics/wind", LINES),
    ("/topics/wind?frame=f", FRAME),
    ("/topics/wind", BROWSER),
    ("/topics?topic=wind&after=earliest", &[]),
    ("/topics?topic=w*", EVENTS),
    ("/topics?topic=wind", LINES),
    ("/topics?topic=wind&wait=1", &[]),
    ("/topics", &[]),
    ("/topics?limit=1", &[]),
    ("/topics/wind/readers", &[]),
    ("/clock", &[]),
    ("/health", &[]),
    ("/openapi.json", &[]),
    ("/asyncapi.json", &[]),
    ("/connections", &[]),
    ("/connections/closed", &[]),
    ("/connections/threads", &[]),
    ("/runs", &[]),
    ("/runs/RUN", &[]),
    ("/runs/RUN", EVENTS),
    ("/runs/RUN?state", &[]),
    ("/problems/unknown-topic", &[]),
    ("/files/text.txt", &[]),
    ("/files/text.txt", &[("range", "bytes=1-2")]),
    ("/whole", &[]),
    ("/parts", &[]),
    ("/parts", EVENTS),
    ("/", &[]),
    ("/echo", &[]),
    ("/ws", &[]),
    ("/topics/nothing", &[]),
    ("/topics/nothing", BROWSER),
    ("/topics/wind?limit=0", &[]),
    ("/nothing", &[]),
    ("/nothing", BROWSER),
    ("/runs/0123456789abcdef0123456789abcdef", &[]),
    ("/clock", &[("origin", "https://elsewhere.example")]),
];

/// Returns a server with something at each of these paths. Its services send content whatever the method.
fn everything(folder: &std::path::Path) -> (Secure, String) {
    std::fs::write(folder.join("text.txt"), "text").unwrap();
    let files = StaticDir::new("/files/".parse().unwrap(), folder);
    let whole = async || "all of it";
    let parts = async || {
        let parts = stream::iter(["1\n", "2\n"].map(Ok::<_, std::io::Error>));
        ([("content-type", "application/x-ndjson")], axum::body::Body::from_stream(parts))
    };
    let mounts = [
        Mount::new("/whole", whole.into_service()).unwrap(),
        Mount::new("/parts", parts.into_service()).unwrap(),
    ];
    let secure = Secure::with(|options| {
        options.static_dirs = vec![files];
        options.mounts.extend(mounts);
    });
    secure.fixture.publish(1..=3);
    let work = RunWork::new(|_| Ok(Some(Data::json(&"done").unwrap())));
    let run = secure.fixture.runs.start(StartRun::new("/driven", work)).unwrap().run;
    (secure, run.key().to_string())
}

/// A status, and the fields that do not change from one request to the next.
type Told = (u16, Vec<(String, String)>);

const TOLD: [&str; 4] = ["content-type", "content-length", "etag", "location"];

#[test]
fn head_has_no_content_whatever_it_is_for_over_http1_and_over_http2() {
    let folder = tempfile::tempdir().unwrap();
    let (secure, run_key) = everything(folder.path());
    run(async {
        let mut http2 = secure.http2().await;
        for (target, fields) in KINDS {
            let target = target.replace("RUN", &run_key);
            let of_http1 = over_http1(&secure, &target, fields).await;
            let of_http2 = over_http2(&mut http2, &target, fields).await;
            assert_eq!(of_http1, of_http2, "{target} {fields:?}");
        }
        // The connection is still in order.
        assert_eq!(http2.get("/clock", &[]).await.1, 200);
    });
}

async fn over_http1(secure: &Secure, target: &str, fields: Fields) -> Told {
    let mut stream = secure.connect(&["http/1.1"]).await.unwrap();
    let mut request = format!("HEAD {target} HTTP/1.1\r\nconnection: close\r\n");
    let host = format!("localhost:{}", secure.fixture.address.port());
    for (name, value) in [("host", &*host)].iter().chain(fields) {
        request += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{request}\r\n").as_bytes()).await.unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.unwrap();
    let reply = String::from_utf8(reply).unwrap();
    let (head, content) = reply.split_once("\r\n\r\n").unwrap();
    assert_eq!(content, "", "{target} {fields:?}");
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let mut told: Vec<_> = lines
        .filter_map(|line| line.split_once(": "))
        .filter(|(name, _)| TOLD.contains(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    told.sort();
    (status, told)
}

async fn over_http2(http2: &mut Http2, target: &str, fields: Fields) -> Told {
    let request = http2.request("HEAD", target, fields);
    let (response, _) = http2.client.send_request(request, true).unwrap();
    let mut response = response.await.unwrap();
    assert!(response.body().is_end_stream(), "{target} {fields:?}: the head is not the end");
    assert_eq!(text(response.body_mut()).await, "", "{target} {fields:?}");
    let named = |name: &&str| Some(((*name).to_owned(), response.headers().get(*name)?));
    let mut told: Vec<_> = TOLD
        .iter()
        .filter_map(named)
        .map(|(name, value)| (name, value.to_str().unwrap().to_owned()))
        .collect();
    told.sort();
    (response.status().as_u16(), told)
}
