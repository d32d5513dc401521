//! The examples run and do what their documentation says.

use std::io::Read;

use anemone_testing::process::Logging;

use super::*;

fn ask(endpoint: &Endpoint, method: &str, target: &str, body: &str) -> Reply {
    let mut stream = endpoint.connect();
    let len = body.len().to_string();
    let fields = [("Content-Length", &*len), ("Content-Type", "application/json")];
    let head = request(endpoint.address, method, target, &fields);
    stream.write_all((head + body).as_bytes()).unwrap();
    Reply::read(&mut BufReader::new(stream), method)
}

/// Speaks to an example in each way, whose topics are below `path`, and ends it.
fn try_out(name: &str, path: &str) {
    let mut example = Logging::example(name);
    let endpoint = Endpoint { address: example.address() };
    assert!(ask(&endpoint, "GET", "/", "").body.contains("<title>Wind</title>"));
    assert_eq!(ask(&endpoint, "GET", "/hello", "").body, "hello");
    let page = ask(&endpoint, "GET", &format!("{path}/topics/wind?after=earliest"), "").json();
    assert_eq!(page["events"][0]["data"]["speed"], 2.7);
    let chat = format!("{path}/topics/chat");
    assert_eq!(ask(&endpoint, "POST", &chat, "{\"text\":\"hi\"}").status, 201);
    let target = format!("{chat}?after=earliest");
    let mut events = endpoint.events(&target, &[]);
    events.block().unwrap();
    assert!(events.event().ends_with("data: {\"text\":\"hi\"}\n"));
    let mut socket = endpoint.websocket(&target, &[], &[]);
    assert_eq!(socket.next(), "{\"text\":\"hi\"}");

    example.terminate();
    assert_eq!(events.block(), None);
    assert_eq!(socket.next(), "close 1001 the server is stopping");
    drop((events, socket));
    let mut said = String::new();
    example.log.read_to_string(&mut said).unwrap();
    assert_eq!(said, "Stopped { connections_cut: 0, requests_open: 0, runs_open: 0 }\n");
    assert!(example.wait().success());
}

#[test]
fn the_example_with_axum_has_a_page_a_route_and_topics_and_stops() {
    try_out("within_axum", "/live");
}

#[test]
fn the_example_with_axum_ends_though_a_client_has_sent_half_a_request() {
    let mut example = Logging::example("within_axum");
    let mut client = Endpoint { address: example.address() }.connect();
    client.write_all(b"GET /live/topics/wi").unwrap();
    example.terminate();
    assert!(example.wait().success());
    drop(client);
}

#[test]
fn the_example_with_a_listener_of_ours_has_the_same() {
    try_out("embedded", "");
}

/// The Rust code of a document, without the lines that rustdoc hides.
fn code(document: &str, fence: &str) -> Vec<String> {
    let blocks = document.split(fence).skip(1).map(|rest| rest.split("\n```").next().unwrap());
    let shown = |block: &str| {
        block.lines().filter(|line| !line.starts_with("# ")).collect::<Vec<_>>().join("\n")
    };
    blocks.map(shown).collect()
}

#[test]
fn the_tutorial_shows_the_code_that_the_documentation_of_the_crate_compiles() {
    let compiled = code(include_str!("../../../README.md"), "```rust,no_run\n");
    assert_eq!(compiled.len(), 2);
    assert_eq!(code(include_str!("../../../../../docs/TUTORIAL.md"), "```rust\n"), compiled);
}
