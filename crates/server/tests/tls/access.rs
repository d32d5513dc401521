//! The access log with TLS and HTTP/2. No other test of this process enables it.

use anemone_server::AccessLog;
use anemone_testing::logged;

use super::*;

#[test]
fn requests_streams_and_websockets_of_http2_have_a_line_each() {
    logged::keep();
    let secure = Secure::with(|options| options.access_log = AccessLog::All);
    let position = secure.fixture.publish(1..=1);
    run(async {
        let over_http1 = secure.get("/topics/wind").await.body.len();
        let mut http2 = secure.http2().await;
        let (mut page, _) = http2.get("/topics/wind?after=earliest", &[]).await;
        let page = text(page.body_mut()).await.len();
        let (mut stream, _) = http2.get("/topics/wind", &[("accept", "text/event-stream")]).await;
        let begin = stream.body_mut().data().await.unwrap().unwrap().len();
        drop(stream);
        assert_eq!(http2.refused("/clock", &[("sec-websocket-version", "13")]).await.0, 400);
        let (mut socket, _) = http2.websocket("/topics/wind?after=earliest", &[]).await;
        assert_eq!(socket.text().await, "{\"n\":1}");
        // As over a plain socket, a topic takes no messages.
        socket.send(Message::Text("hello")).await;
        assert_eq!(socket.text().await, "close 1008");
        assert_eq!(socket.text().await, "end of stream");
        let mut lines = logged::all_requests(5);
        lines.sort();
        // The length of a problem's text does not matter here.
        let refused = lines.remove(4);
        assert!(
            refused.starts_with("GET /topics/wind 200 websocket bytes=9 position="),
            "{refused}"
        );
        assert!(refused.contains("end=server closed 1008: "), "{refused}");
        let refused = lines.remove(0);
        assert!(refused.starts_with("GET /clock 400 http bytes="), "{refused}");
        let mut expected = vec![
            format!("GET /topics/wind 200 poll bytes={over_http1} position={position}"),
            format!("GET /topics/wind 200 poll bytes={page} position={position}"),
            format!("GET /topics/wind 200 sse bytes={begin} position={position} end=client gone"),
        ];
        expected.sort();
        assert_eq!(lines, expected);
        // A long poll that is given up before it has a reply: the clock's comes after it was begun.
        let poll = http2.request("GET", &format!("/topics/wind?after={position}&wait=30"), &[]);
        let (poll, _) = http2.client.send_request(poll, true).unwrap();
        assert_eq!(http2.get("/clock", &[]).await.1, 200);
        drop(poll);
        // The connection sends that before the next request.
        assert_eq!(http2.get("/clock", &[]).await.1, 200);
        let lines = logged::all_requests(8);
        let given_up = "GET /topics/wind long-poll bytes=0 end=client gone";
        assert!(lines.iter().any(|line| line == given_up), "{lines:?}");
    });
}
