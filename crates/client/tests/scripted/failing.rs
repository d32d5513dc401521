//! Failures: one that will last is an error at once. After any other, the client waits and tries again.

use std::time::Duration;

use anemone_client::{
    After, Error, Foreign, Item, Limits, Malformed, Retry, Subscribe, Timeouts, Via,
};
use anemone_ws::proto::ProtocolError;
use anemone_ws::proto::handshake::ResponseError;
use anemone_ws::{self as ws, ConnectError};
use futures_util::FutureExt;

use crate::fake::{Conn, Fake, Log, problem};
use crate::{SOON, events, short, subscribe, told};

/// The transports whose first words are a request of HTTP.
const WEB: [Via; 6] = [Via::WebSocket, Via::Mux, Via::Sse, Via::Ndjson, Via::LongPoll, Via::Poll];

fn is_web_socket(via: Via) -> bool {
    matches!(via, Via::WebSocket | Via::Mux)
}

/// The error that a subscription ends with.
async fn error(subscribe: Subscribe) -> Error {
    let mut subscription = subscribe.start().unwrap();
    loop {
        match subscription.next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the topic has not ended"),
            Err(error) => {
                assert!(subscription.next().await.unwrap().is_none());
                return error;
            }
        }
    }
}

#[tokio::test]
async fn a_refusal_that_stays_is_told_with_its_reason() {
    for (status, name) in [
        ("404 Not Found", "unknown-topic"),
        ("403 Forbidden", "origin-refused"),
        ("400 Bad Request", "position-ahead"),
    ] {
        let fake = Fake::start(move |_, mut conn| {
            conn.request()?;
            conn.problem(status, "", name)
        });
        for via in WEB {
            let Error::Refused(refused) = error(subscribe(&fake, via)).await else { panic!() };
            assert_eq!(refused.problem(), Some(name), "{via}");
            assert!(refused.to_string().ends_with("No: for a reason"), "{refused}");
        }
        assert_eq!(fake.connections(), WEB.len());
        // The server itself refuses, so another transport would not help.
        assert!(matches!(error(Subscribe::new(fake.url(Via::Sse))).await, Error::Refused(_)));
        assert_eq!(fake.connections(), WEB.len() + 1);
    }
}

#[tokio::test]
async fn a_multiplexed_refusal_is_one_too() {
    let body = problem("unknown-topic");
    let reply = format!("404 1\n{body}");
    let tcp = reply.clone();
    let fake = Fake::start(move |_, mut conn| {
        let request = conn.request()?;
        conn.upgrade(&request)?;
        conn.receive()?;
        conn.message(&reply)?;
        conn.wait()
    });
    assert!(matches!(error(subscribe(&fake, Via::Mux)).await, Error::Refused(_)));
    let fake = Fake::start(move |_, mut conn| {
        conn.write(u32::try_from(tcp.len()).unwrap().to_be_bytes())?;
        conn.write(&tcp)?;
        conn.wait()
    });
    assert!(matches!(error(subscribe(&fake, Via::Tcp)).await, Error::Refused(_)));
}

#[tokio::test]
async fn another_server_is_recognized() {
    let page = |mut conn: Conn| {
        while conn.request().is_ok() {
            conn.answer("200 OK", "content-type: text/html\r\n", "<html>")?;
        }
        Ok(())
    };
    let fake = Fake::start(move |_, conn| page(conn));
    for via in [Via::Sse, Via::Ndjson, Via::LongPoll, Via::Poll] {
        let error = error(subscribe(&fake, via)).await;
        assert!(matches!(error, Error::Foreign(Foreign::ContentType { .. })), "{via}: {error}");
    }
    let other = Fake::start(|_, mut conn| {
        conn.request()?;
        conn.answer("200 OK", "content-type: application/json\r\n", r#"{"weather":"fine"}"#)
    });
    let found = error(subscribe(&other, Via::Poll)).await;
    assert!(matches!(found, Error::Foreign(Foreign::Content(_))), "{found}");
    let chat = Fake::start(|_, mut conn| {
        let request = conn.request()?;
        conn.upgrade(&request)?;
        conn.message("hello")?;
        conn.wait()
    });
    let found = error(subscribe(&chat, Via::WebSocket)).await;
    assert!(matches!(found, Error::Foreign(Foreign::Content(_))), "{found}");
    // Another transport reports the same.
    assert!(matches!(error(Subscribe::new(fake.url(Via::Sse))).await, Error::Foreign(_)));
}

/// Answers of something on the way to the server: status, fields, body.
const OF_A_NETWORK: [(&str, &str, &str); 14] = [
    ("200 OK", "content-type: text/html\r\n", "<p>Log in"),
    ("200 OK", "content-type: application/json\r\n", r#"{"login":"https://portal.example/"}"#),
    ("200 OK", "", ""),
    ("204 No Content", "", ""),
    ("302 Found", "location: http://portal.example/\r\n", ""),
    ("307 Temporary Redirect", "location: https://portal.example/\r\n", ""),
    ("401 Unauthorized", "www-authenticate: Basic\r\n", ""),
    ("403 Forbidden", "content-type: application/problem+json\r\n", r#"{"title":"Log in"}"#),
    ("404 Not Found", "content-type: text/html\r\n", "<p>Not here"),
    ("407 Proxy Authentication Required", "", ""),
    ("501 Not Implemented", "", ""),
    ("502 Bad Gateway", "", "<html>"),
    ("503 Service Unavailable", "", ""),
    ("511 Network Authentication Required", "content-type: text/html\r\n", "<p>Log in"),
];

#[tokio::test]
async fn what_a_network_answers_in_the_middle_is_waited_out() {
    for (status, fields, body) in OF_A_NETWORK {
        for via in WEB {
            let fake = Fake::start(move |number, mut conn| match number {
                0 => Log::of(2).serve_for(via, &mut conn, false),
                1..=3 => {
                    conn.request()?;
                    conn.answer(status, fields, body)
                }
                _ => Log::of(4).serve(via, &mut conn),
            });
            let after = After::Position("e-0".parse().unwrap());
            let mut subscription = subscribe(&fake, via).after(after).start().unwrap();
            let mut told = told(&mut subscription, 4).await;
            told.retain(|item| !item.starts_with("at"));
            assert_eq!(told, events(1..=4), "{via}: {status}");
        }
    }
}

#[tokio::test]
async fn a_network_may_answer_every_transport_in_turn() {
    for (status, fields, body) in OF_A_NETWORK {
        let fake = Fake::start(move |number, mut conn| match number {
            0 => Log::of(2).serve_for(Via::WebSocket, &mut conn, false),
            1..=8 => {
                conn.request()?;
                conn.answer(status, fields, body)
            }
            _ => Log::of(4).serve(Via::WebSocket, &mut conn),
        });
        let after = After::Position("e-0".parse().unwrap());
        let url = fake.url(Via::WebSocket);
        let mut subscription = Subscribe::new(url).retry(SOON).after(after).start().unwrap();
        let mut told = told(&mut subscription, 4).await;
        told.retain(|item| !item.starts_with("at"));
        assert_eq!(told, events(1..=4), "{status}");
    }
}

#[tokio::test]
async fn a_network_that_speaks_http_on_the_tcp_port_is_waited_out_too() {
    let fake = Fake::start(|number, mut conn| match number {
        0 => Log::of(2).serve_for(Via::Tcp, &mut conn, false),
        1..=3 => {
            conn.receive_frame()?;
            conn.answer("302 Found", "location: http://portal.example/\r\n", "")
        }
        _ => Log::of(4).serve(Via::Tcp, &mut conn),
    });
    let after = After::Position("e-0".parse().unwrap());
    let mut subscription = subscribe(&fake, Via::Tcp).after(after).start().unwrap();
    let mut told = told(&mut subscription, 4).await;
    told.retain(|item| !item.starts_with("at"));
    assert_eq!(told, events(1..=4));
}

#[tokio::test]
async fn what_the_server_itself_refuses_in_the_middle_is_an_error() {
    for via in WEB {
        let fake = Fake::start(move |number, mut conn| match number {
            0 => Log::of(2).serve_for(via, &mut conn, false),
            _ => {
                conn.request()?;
                conn.problem("403 Forbidden", "", "origin-refused")
            }
        });
        let Error::Refused(refused) = error(subscribe(&fake, via)).await else { panic!("{via}") };
        assert_eq!(refused.problem(), Some("origin-refused"), "{via}");
    }
}

#[tokio::test]
async fn a_network_is_waited_out_as_often_as_was_said() {
    for via in WEB {
        let fake = Fake::start(move |number, mut conn| match number {
            0 => Log::of(2).serve_for(via, &mut conn, false),
            _ => {
                conn.request()?;
                conn.answer("302 Found", "location: http://portal.example/\r\n", "")
            }
        });
        let retry = Retry { failures_max: Some(3), ..SOON };
        let error = error(subscribe(&fake, via).retry(retry)).await;
        assert!(
            error.to_string().contains("redirects to http://portal.example/"),
            "{via}: {error}"
        );
    }
}

#[tokio::test]
async fn a_server_that_asks_for_time_gets_it() {
    for via in WEB {
        let fake = Fake::start(move |number, mut conn| {
            if number > 0 {
                return Log::of(7).serve(via, &mut conn);
            }
            conn.request()?;
            conn.problem("503 Service Unavailable", "retry-after: 7\r\n", "too-many-connections")
        });
        let mut subscription = subscribe(&fake, via).start().unwrap();
        let Ok(Some(Item::Disconnected { retry_in, .. })) = subscription.next().await else {
            panic!()
        };
        assert_eq!(retry_in, Duration::from_secs(7), "{via}");
        tokio::time::pause();
        tokio::time::advance(Duration::from_millis(6900)).await;
        assert!(subscription.next().now_or_never().is_none());
        tokio::time::advance(Duration::from_millis(101)).await;
        tokio::time::resume();
        assert!(matches!(subscription.next().await, Ok(Some(Item::Connected { .. }))), "{via}");
        assert_eq!(fake.connections(), 2, "{via}");
    }
}

#[tokio::test]
async fn waits_grow_and_are_short_again_after_progress() {
    let fake = Fake::start(|number, mut conn| {
        if number == 6 {
            conn.request()?;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            conn.write(format!("{head}id: e-1\ndata: 1\n\n"))?;
        }
        Ok(())
    });
    let mut subscription = subscribe(&fake, Via::Sse)
        .after(After::Earliest)
        .retry(Retry { delay_min: Duration::from_micros(64), ..SOON })
        .start()
        .unwrap();
    let (mut waits, mut at) = (Vec::new(), None);
    while waits.len() < 9 {
        match subscription.next().await.unwrap().unwrap() {
            Item::Disconnected { retry_in, .. } => waits.push(retry_in),
            Item::Event { .. } => at = Some(waits.len()),
            _ => {}
        }
    }
    let longest = |failures: u32| Duration::from_micros(64) * 2_u32.pow(failures);
    let at = at.expect("an event came");
    assert_eq!(at, 6);
    for (index, wait) in waits.iter().enumerate() {
        let failures = if index < at { index } else { index - at } as u32;
        let bounds = longest(failures) / 2..=longest(failures);
        assert!(bounds.contains(wait), "{index}: {wait:?}");
    }
}

#[tokio::test]
async fn it_gives_up_when_told_to() {
    let fake = Fake::start(|_, _| Ok(()));
    let retry = Retry { failures_max: Some(3), ..SOON };
    let error = error(subscribe(&fake, Via::Sse).retry(retry)).await;
    assert!(!error.is_permanent(), "{error}");
    assert_eq!(fake.connections(), 4);
}

#[tokio::test]
async fn silence_is_noticed() {
    let timeouts = Timeouts {
        connect: Duration::from_millis(20),
        answer: Duration::from_millis(20),
        stall: Duration::from_millis(40),
        ..Timeouts::default()
    };
    let mute = Fake::start(|_, mut conn| conn.wait());
    for via in Via::ALL {
        let mut subscription = subscribe(&mute, via).timeouts(timeouts).start().unwrap();
        let item = subscription.next().await.unwrap().unwrap();
        let Item::Disconnected { error, .. } = item else { panic!("{via}: {item:?}") };
        let is_silence = match &*error {
            Error::Connect(ConnectError::TimedOut { .. }) => true,
            Error::Unanswered { .. } => !is_web_socket(via),
            _ => false,
        };
        assert!(is_silence, "{via}: {error:?}");
    }
    for via in [Via::WebSocket, Via::Mux, Via::Sse, Via::Ndjson, Via::LongPoll, Via::Tcp] {
        let fake = Fake::start(move |_, mut conn| Log::of(7).serve(via, &mut conn));
        let mut subscription = subscribe(&fake, via).timeouts(timeouts).start().unwrap();
        let mut is_connected = false;
        let error = loop {
            match subscription.next().await.unwrap().unwrap() {
                Item::Connected { .. } => is_connected = true,
                Item::Disconnected { error, .. } if is_connected => break error,
                _ => {}
            }
        };
        let is_silence = match &*error {
            // Its own pings are not answered.
            Error::WebSocket(ws::Error::Protocol(ProtocolError::IdleTimeout { .. })) => {
                via == Via::WebSocket
            }
            Error::Stalled { .. } => via != Via::WebSocket,
            _ => false,
        };
        assert!(is_silence, "{via}: {error:?}");
    }
}

#[tokio::test]
async fn what_is_too_long_is_not_kept() {
    let limits = Limits { event_bytes_max: 100, page_bytes_max: 300, ..Limits::default() };
    for via in Via::ALL {
        let fake = Fake::start(move |_, mut conn| Log::of(9).serve(via, &mut conn));
        let retry = Retry { failures_max: Some(0), ..SOON };
        let after = "e-1".parse().unwrap();
        let mut subscription =
            subscribe(&fake, via).limits(limits).retry(retry).after(after).start().unwrap();
        let mut events = 0;
        let error = loop {
            match subscription.next().await {
                Ok(item) => {
                    events +=
                        usize::from(short(&item.unwrap()).is_some_and(|item| item.contains('=')))
                }
                Err(error) => break error,
            }
        };
        assert_eq!(events, 0, "{via}: {error}");
        let is_too_long = match &error {
            Error::WebSocket(ws::Error::Protocol(ProtocolError::FrameTooBig { limit, .. })) => {
                is_web_socket(via) && *limit == 100
            }
            Error::Malformed(Malformed::TooLong { limit }) => {
                let is_page = matches!(via, Via::Poll | Via::LongPoll);
                *limit == if is_page { 300 } else { 100 }
            }
            _ => false,
        };
        assert!(is_too_long, "{via}: {error:?}");
    }
}

#[tokio::test]
async fn an_endless_head_is_not_read_to_its_end() {
    let fake = Fake::start(|_, mut conn| {
        conn.request()?;
        conn.write("HTTP/1.1 200 OK\r\n")?;
        loop {
            conn.write(format!("x: {}\r\n", "y".repeat(1000)))?;
        }
    });
    for via in WEB {
        let mut subscription = subscribe(&fake, via).start().unwrap();
        // A time-out would be another error.
        let is_too_long = match subscription.next().await {
            Err(Error::Connect(ConnectError::Response(ResponseError::TooLong { .. }))) => {
                is_web_socket(via)
            }
            Ok(Some(Item::Disconnected { error, .. })) => {
                matches!(&*error, Error::Http(error) if error.is_parse_too_large())
            }
            other => panic!("{via}: {other:?}"),
        };
        assert!(is_too_long, "{via}");
    }
}
