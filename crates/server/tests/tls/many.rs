//! Several topics on one stream or poll over HTTP/2.

use std::collections::{BTreeMap, VecDeque};
use std::time::SystemTime;

use anemone_hub::{Data, Retention};
use serde_json::{Value, json};

use super::*;

const ROUNDS: u64 = 12;
const WAYS: [Way; 3] = [Way::Sse, Way::Ndjson, Way::LongPoll];

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    Sse,
    Ndjson,
    LongPoll,
}

/// A reader of several topics. Its token is that of the last item that was taken.
struct Reader {
    way: Way,
    query: &'static str,
    token: Option<String>,
    stream: Option<RecvStream>,
    input: String,
    /// The items that came and were not taken: JSON, and the token after it if that came, too.
    came: VecDeque<(Value, Option<String>)>,
}

impl Reader {
    fn new(way: Way, query: &'static str) -> Self {
        let (stream, input, came) = Default::default();
        Self { way, query, token: None, stream, input, came }
    }

    /// Resets the stream. What came and was not taken is lost. The token of a page is that of its end.
    fn cut(&mut self) {
        if self.way != Way::LongPoll {
            (self.stream, self.input, self.came) = Default::default();
        }
    }

    /// The next event or notice.
    async fn item(&mut self, http2: &mut Http2) -> Value {
        loop {
            let Some((item, token)) = self.came.pop_front() else {
                match self.way {
                    Way::LongPoll => self.page(http2).await,
                    _ => self.piece(http2).await,
                }
                continue;
            };
            self.take(&item, token);
            if !item["topic"].is_null() || !item["end"].is_null() {
                return item;
            }
        }
    }

    /// Sets the token to that after an item. A client of lines makes it itself.
    fn take(&mut self, item: &Value, token: Option<String>) {
        match (item["topic"].as_str(), item["position"].as_str()) {
            _ if token.is_some() => self.token = token,
            (None, Some(token)) => self.token = Some(token.to_owned()),
            (Some(topic), Some(position)) if self.way == Way::Ndjson => {
                let mut token: anemone_wire::Token = self.token.take().unwrap().parse().unwrap();
                token.set(topic, position.parse().unwrap());
                self.token = Some(token.to_string());
            }
            _ => {}
        }
    }

    async fn page(&mut self, http2: &mut Http2) {
        let after = self.token.as_deref().unwrap_or("earliest");
        let target = format!("/topics?{}&wait=30&limit=7&after={after}", self.query);
        let (mut reply, status) = http2.get(&target, &[]).await;
        let page = text(reply.body_mut()).await;
        assert_eq!(status, 200, "{target}: {page}");
        let page: Value = serde_json::from_str(&page).unwrap();
        for list in ["notices", "events"] {
            let items = page[list].as_array().into_iter().flatten();
            self.came.extend(items.map(|item| (item.clone(), None)));
        }
        self.came.push_back((json!({}), Some(page["next"].as_str().unwrap().to_owned())));
    }

    /// Receives the next piece of the stream, with the items that are whole.
    async fn piece(&mut self, http2: &mut Http2) {
        if self.stream.is_none() {
            self.stream = Some(self.open(http2).await);
        }
        let stream = self.stream.as_mut().unwrap();
        let piece = stream.data().await.unwrap().unwrap();
        stream.flow_control().release_capacity(piece.len()).unwrap();
        self.input += std::str::from_utf8(&piece).unwrap();
        let end = if self.way == Way::Sse { "\n\n" } else { "\n" };
        while let Some((item, rest)) = self.input.split_once(end) {
            let line = |name| item.lines().find_map(|line| line.strip_prefix(name));
            let (json, token) = match self.way {
                Way::Sse => (line("data: ").unwrap_or("{}"), line("id: ").map(str::to_owned)),
                _ => (item, None),
            };
            self.came.push_back((serde_json::from_str(json).unwrap(), token));
            self.input = rest.to_owned();
        }
    }

    async fn open(&self, http2: &mut Http2) -> RecvStream {
        let mut target = format!("/topics?{}", self.query);
        let accept = match self.way {
            Way::Sse => "text/event-stream",
            _ => "application/x-ndjson",
        };
        let mut fields = vec![("accept", accept)];
        match &self.token {
            Some(token) if self.way == Way::Sse => fields.push(("last-event-id", token)),
            token => target += &format!("&after={}", token.as_deref().unwrap_or("earliest")),
        }
        let (reply, status) = http2.get(&target, &fields).await;
        assert_eq!(status, 200, "{target}");
        reply.into_body()
    }
}

fn publish(secure: &Secure, name: &str, number: u64) {
    let name = name.parse().unwrap();
    let topic = secure.fixture.hub.ensure(name, Retention::default()).unwrap();
    topic.publish(SystemTime::now().into(), Data::json(&json!(number)).unwrap()).unwrap();
}

#[test]
fn all_topics_of_a_stream_go_on_where_each_was_when_its_stream_is_reset() {
    for way in WAYS {
        let secure = Secure::start();
        ["a", "b1"].into_iter().for_each(|name| publish(&secure, name, 0));
        run(async {
            let mut http2 = secure.http2().await;
            let mut reader = Reader::new(way, "topic=a&topic=b*");
            let mut random = fastrand::Rng::with_seed(way as u64);
            let mut read = BTreeMap::<String, Vec<u64>>::new();
            let mut count = 0;
            for round in 0..ROUNDS {
                if round > 0 {
                    // In the middle, a topic joins.
                    let names = ["a", "b1", if round < ROUNDS / 2 { "b1" } else { "b2" }];
                    names.into_iter().for_each(|name| publish(&secure, name, round));
                }
                // Sometimes all that there is.
                let all = 2 + 3 * round;
                let until = if round + 1 == ROUNDS { all } else { random.u64(count..=all) };
                while count < until {
                    let item = reader.item(&mut http2).await;
                    let topic = item["topic"].as_str().unwrap().to_owned();
                    read.entry(topic).or_default().push(item["data"].as_u64().unwrap());
                    count += 1;
                }
                reader.cut();
            }
            let half = ROUNDS / 2;
            let twice = (1..half).flat_map(|round| [round; 2]);
            let b1: Vec<_> = [0].into_iter().chain(twice).chain(half..ROUNDS).collect();
            assert_eq!(read["a"], (0..ROUNDS).collect::<Vec<_>>(), "{way:?}");
            assert_eq!(read["b1"], b1, "{way:?}");
            assert_eq!(read["b2"], (half..ROUNDS).collect::<Vec<_>>(), "{way:?}");
            // The connection remains usable.
            assert_eq!(http2.get("/clock", &[]).await.1, 200);
        });
    }
}

#[test]
fn a_token_that_is_too_long_is_told_before_a_stream_and_within_it() {
    for way in [Way::Sse, Way::Ndjson] {
        let secure = Secure::with(|options| options.limits.token_bytes_max = 64);
        publish(&secure, "c1", 1);
        run(async {
            let mut http2 = secure.http2().await;
            let mut reader = Reader::new(way, "topic=c*");
            assert_eq!(reader.item(&mut http2).await["data"], 1);
            publish(&secure, &format!("c2{}", "x".repeat(60)), 2);
            let end = reader.item(&mut http2).await;
            assert_eq!(end["end"]["problem"]["type"], "/problems/token-too-long", "{end}");
            let mut rest = reader.stream.take().unwrap();
            assert_eq!(text(&mut rest).await, "", "the stream ends, and is not reset");
            for accept in ["text/event-stream", "application/x-ndjson", "application/json"] {
                let id = "c1:1".repeat(20);
                for fields in [&[("accept", accept)][..], &[("last-event-id", &id)]] {
                    let (mut reply, status) = http2.get("/topics?topic=c*&wait=30", fields).await;
                    let problem = text(reply.body_mut()).await;
                    assert_eq!(status, 400, "{problem}");
                    assert!(problem.contains("\"type\":\"/problems/token-too-long\""), "{problem}");
                }
            }
        });
    }
}
