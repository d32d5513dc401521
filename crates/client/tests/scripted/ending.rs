//! The end of a topic ends a subscription in the same way over every transport.

use std::io;

use anemone_client::{Item, Via};

use crate::fake::{Conn, Fake, Log};
use crate::{short, subscribe};

const GAP: &str = r#"{"reason":"retention","after":"e-2","missed":7,"resume":"e-9"}"#;

/// The words with which a server announces the end.
#[derive(Clone)]
struct End {
    /// The notice of streams.
    notice: String,
    /// The final status of requests that wait or are multiplexed, and its body.
    status: &'static str,
    problem: String,
}

fn too_slow() -> End {
    End {
        notice: format!(r#"{{"end":{{"reason":"too-slow","gap":{GAP}}}}}"#),
        status: "410 Gone",
        problem: format!(r#"{{"type":"/problems/too-slow","title":"No","gap":{GAP}}}"#),
    }
}

fn deleted() -> End {
    End {
        notice: r#"{"end":{"reason":"deleted"}}"#.to_owned(),
        status: "410 Gone",
        problem: r#"{"type":"/problems/topic-deleted","title":"No"}"#.to_owned(),
    }
}

/// The answer to a poll once its topic is no more.
fn unknown() -> End {
    let problem = r#"{"type":"/problems/unknown-topic","title":"No"}"#.to_owned();
    End { status: "404 Not Found", problem, ..deleted() }
}

impl End {
    /// Two events, and then the end.
    fn serve(&self, via: Via, conn: &mut Conn) -> io::Result<()> {
        let Self { notice, status, problem } = self;
        let fields = "content-type: application/problem+json\r\n";
        match via {
            Via::Poll | Via::LongPoll => {
                let request = conn.request()?;
                Log::of(2).answer(conn, &request)?;
                conn.request()?;
                return conn.answer(status, fields, problem);
            }
            _ => Log::of(2).serve_for(via, conn, false)?,
        }
        match via {
            Via::WebSocket => conn.message(notice)?,
            Via::Mux => {
                conn.message(&format!("110 1 e-2\n{notice}"))?;
                conn.message(&format!("410 1\n{problem}"))?;
            }
            Via::Tcp => {
                conn.frame(&format!("110 1 e-2\n{notice}"))?;
                conn.frame(&format!("410 1\n{problem}"))?;
            }
            Via::Sse => conn.chunk(&format!("event: end\ndata: {notice}\n\n"))?,
            _ => conn.chunk(&format!("{notice}\n"))?,
        }
        Ok(())
    }
}

/// Returns all items of the topic.
async fn told(via: Via, end: End) -> (Vec<String>, Option<String>) {
    let fake = Fake::start(move |_, mut conn| end.serve(via, &mut conn));
    let mut subscription = subscribe(&fake, via).after("e-0".parse().unwrap()).start().unwrap();
    let (mut told, mut last) = (Vec::new(), None);
    while let Some(item) = subscription.next().await.unwrap() {
        told.extend(short(&item));
        last = item.to_json();
        assert!(!matches!(item, Item::Disconnected { .. }), "{via}: {item:?}");
    }
    (told, last)
}

#[tokio::test]
async fn who_was_too_slow_is_told_what_went_by_on_every_transport() {
    for via in Via::ALL {
        let (told, last) = told(via, too_slow()).await;
        assert_eq!(told.len(), 3, "{via}: {told:?}");
        assert_eq!(told[2], "end too-slow", "{via}");
        let line = format!(r#"{{"end":{{"reason":"too-slow","gap":{GAP}}}}}"#);
        assert_eq!(last, Some(line), "{via}");
    }
}

#[tokio::test]
async fn a_topic_that_was_deleted_ends_alike_on_every_transport() {
    for via in Via::ALL {
        for end in [deleted(), unknown()] {
            let (told, last) = told(via, end).await;
            assert_eq!(told.len(), 3, "{via}: {told:?}");
            assert_eq!(last.as_deref(), Some(r#"{"end":{"reason":"deleted"}}"#), "{via}");
        }
    }
}

#[tokio::test]
async fn a_topic_that_is_gone_when_a_connection_is_opened_anew_was_deleted() {
    for via in Via::ALL {
        let fake = Fake::start(move |number, mut conn| match (number, via) {
            (0, _) => Log::of(2).serve_for(via, &mut conn, false),
            (_, Via::Tcp) => conn.frame(&format!("404 1\n{}", unknown().problem)),
            (_, Via::Mux) => {
                let request = conn.request()?;
                conn.upgrade(&request)?;
                conn.message(&format!("404 1\n{}", unknown().problem))
            }
            _ => {
                conn.request()?;
                conn.problem("404 Not Found", "", "unknown-topic")
            }
        });
        let mut subscription = subscribe(&fake, via).after("e-0".parse().unwrap()).start().unwrap();
        let mut told = Vec::new();
        while let Some(item) = subscription.next().await.unwrap() {
            told.extend(short(&item));
        }
        assert_eq!(told.last().map(String::as_str), Some("end deleted"), "{via}: {told:?}");
    }
}
