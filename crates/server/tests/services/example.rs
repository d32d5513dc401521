//! The example runs and does what its documentation says.

use anemone_testing::Socket;
use anemone_testing::process::Logging;
use anemone_ws::proto::Message;

use super::*;

#[test]
fn the_example_serves_a_router_over_every_transport() {
    let mut example = Logging::example("router");
    let endpoint = Endpoint { address: example.address() };
    assert_eq!(endpoint.get("/hello", &[]).body, "hello over http");
    let count = |accept, body| ask(&endpoint, "POST", "/count", &[("Accept", accept)], body);
    assert_eq!(count("*/*", "3").body, "1\n2\n3\n");
    let events = count("text/event-stream", "2").body;
    assert!(events.starts_with("data: 1\n\ndata: 2\n\nevent: end\n"), "{events}");
    let detail = "\"many\" is not a number to count to";
    assert_eq!(count("*/*", "many").problem(422, "unprocessable"), detail);

    let open = |target| -> Socket { endpoint.websocket(target, &[], &[]) };
    let mut socket = open("/count");
    socket.send(Message::Text("2"));
    assert_eq!([socket.next(), socket.next(), socket.next()], ["1", "2", "close 1000 "]);
    let mut socket = open("/count");
    socket.send(Message::Text("many"));
    socket.next();
    assert_eq!(socket.next(), format!("close 4422 {detail}"));
    let mut socket = open("/hello");
    socket.send(Message::Text(""));
    assert_eq!(socket.next(), "hello over websocket");

    let mut multiplexed: Socket = endpoint.websocket("/ws", &["anemone.v1"], &[]);
    for (sent, received) in [
        ("POST 1 /count\n2", &["206 1\n1", "206 1\n2", "200 1"][..]),
        (
            "GET 2 /hello",
            &["200 2 content-type=text/plain;%20charset%3Dutf-8\nhello over multiplexed"],
        ),
    ] {
        multiplexed.send(Message::Text(sent));
        for received in received {
            assert_eq!(multiplexed.next(), *received);
        }
    }

    let run = ask(&endpoint, "POST", "/count", &[("Prefer", "respond-async")], "3");
    assert_eq!(run.status, 202);
    let path = format!("/{}", run.field("location").unwrap());
    let events = ask(&endpoint, "GET", &path, &[("Accept", "application/x-ndjson")], "").body;
    let is_in_order = ["{\"partial\":1}", "{\"partial\":3}", "\"state\":\"done\"", "\"ended\""];
    let places =
        is_in_order.map(|part| events.find(part).unwrap_or_else(|| panic!("{part}: {events}")));
    assert!(places.is_sorted(), "{events}");

    drop((socket, multiplexed));
    example.terminate();
    assert!(example.wait().success());
}
