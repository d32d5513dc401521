//! No event is lost, and none comes twice, wherever a connection breaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anemone_client::{After, Item, Via};
use futures_util::FutureExt;

use crate::fake::{Fake, Log};
use crate::{events, short, subscribe, told};

#[tokio::test]
async fn a_connection_cut_at_any_byte_costs_nothing() {
    const LOG: u64 = 5;
    for via in Via::ALL {
        // The first connection after it was set is cut there, the others are whole.
        let cut = Arc::new(AtomicUsize::new(usize::MAX));
        let next = Arc::clone(&cut);
        let fake = Fake::start(move |_, conn| {
            let cut = next.swap(usize::MAX, Ordering::SeqCst);
            Log::of(LOG).serve(via, &mut conn.cut_after(cut))
        });
        let mut was_whole = false;
        for at in (0..2000).step_by(3) {
            cut.store(at, Ordering::SeqCst);
            let before = fake.connections();
            let mut subscription = subscribe(&fake, via).after(After::Earliest).start().unwrap();
            let mut told = told(&mut subscription, LOG as usize).await;
            // A page has its position only at its end.
            told.retain(|item| !item.starts_with("at"));
            assert_eq!(told, events(1..=LOG), "{via} cut at {at}");
            was_whole = fake.connections() == before + 1;
            if was_whole {
                break;
            }
        }
        assert!(was_whole, "{via}");
    }
}

#[tokio::test]
async fn many_cuts_in_a_row_cost_nothing_and_dropped_futures_neither() {
    const LOG: u64 = 40;
    for via in Via::ALL {
        let fake = Fake::start(move |number, conn| {
            Log::of(LOG).serve(via, &mut conn.cut_after(130 + 160 * number))
        });
        let mut subscription = subscribe(&fake, via).after(After::Earliest).start().unwrap();
        let mut told = Vec::new();
        while told.len() < LOG as usize {
            // A future that is dropped takes nothing along.
            let item = match subscription.next().now_or_never() {
                Some(item) => item,
                None => subscription.next().await,
            };
            let item = item.unwrap().unwrap();
            if let Item::Event { .. } = item {
                told.extend(short(&item));
            }
        }
        assert_eq!(told, events(1..=LOG), "{via}");
        assert!(fake.connections() > 2, "{via}");
    }
}

#[tokio::test]
async fn a_server_that_repeats_itself_is_not_echoed() {
    let log = Log { is_deaf: true, ..Log::of(6) };
    for via in [Via::WebSocket, Via::Mux, Via::Sse, Via::Ndjson, Via::Tcp, Via::Poll] {
        let fake = Fake::start(move |number, conn| {
            let cut = if number < 3 { 500 + 150 * number } else { usize::MAX };
            log.serve(via, &mut conn.cut_after(cut))
        });
        let after = After::Position("e-0".parse().unwrap());
        let mut subscription = subscribe(&fake, via).after(after).start().unwrap();
        assert_eq!(told(&mut subscription, 6).await, events(1..=6), "{via}");
    }
}

#[tokio::test]
async fn a_gap_is_passed_on_and_reading_goes_on_after_it() {
    let log = Log { first: 4, ..Log::of(6) };
    for via in Via::ALL {
        let fake = Fake::start(move |_, mut conn| log.serve(via, &mut conn));
        let after = After::Position("e-1".parse().unwrap());
        let mut subscription = subscribe(&fake, via).after(after).start().unwrap();
        let mut expected = events(4..=6);
        expected.insert(0, "gap retention Some(2) to e-3".to_owned());
        assert_eq!(told(&mut subscription, 3).await, expected, "{via}");
    }
}

#[tokio::test]
async fn what_is_left_out_silently_is_asked_for_again_and_then_told_as_a_gap() {
    for via in Via::ALL {
        let (healing, hiding) = (Log::of(6), Log { hidden: Some(3), ..Log::of(6) });
        for is_healing in [true, false] {
            let fake = Fake::start(move |number, mut conn| {
                let log = if is_healing && number > 0 { healing } else { hiding };
                log.serve(via, &mut conn)
            });
            let after = After::Position("e-0".parse().unwrap());
            let mut subscription = subscribe(&fake, via).after(after).start().unwrap();
            let mut expected = events(1..=6);
            if !is_healing {
                expected[2] = "gap unannounced Some(1) to e-3".to_owned();
            }
            let events = if is_healing { 6 } else { 5 };
            assert_eq!(told(&mut subscription, events).await, expected, "{via}");
            assert_eq!(fake.connections(), 2, "{via}");
        }
    }
}

#[tokio::test]
async fn a_quiet_topic_says_where_it_stands_and_what_comes_while_nobody_reads_is_not_lost() {
    for via in Via::ALL {
        // The first connection sends the position, and breaks before there is an event.
        let fake = Fake::start(move |number, mut conn| {
            Log::of(if number == 0 { 7 } else { 9 }).serve_for(via, &mut conn, number > 0)
        });
        let mut subscription = subscribe(&fake, via).start().unwrap();
        let mut expected = events(8..=9);
        expected.insert(0, "at e-7".to_owned());
        assert_eq!(told(&mut subscription, 2).await, expected, "{via}");
        assert!(fake.connections() > 1, "{via}");
    }
}

#[tokio::test]
async fn the_end_of_a_topic_is_the_last_there_is() {
    let fake = Fake::start(|_, mut conn| {
        let request = conn.request()?;
        conn.upgrade(&request)?;
        conn.message(r#"{"position":"e-7"}"#)?;
        conn.message(r#"{"end":{"reason":"deleted"}}"#)?;
        conn.wait()
    });
    let gone = |problem| {
        Fake::start(move |_, mut conn| {
            conn.request()?;
            conn.problem("410 Gone", "", problem)
        })
    };
    let (deleted, slow) = (gone("topic-deleted"), gone("too-slow"));
    for (fake, via, end) in [
        (&fake, Via::WebSocket, "end deleted"),
        (&deleted, Via::LongPoll, "end deleted"),
        (&deleted, Via::Sse, "end deleted"),
        (&slow, Via::Poll, "end too-slow"),
        (&slow, Via::LongPoll, "end too-slow"),
    ] {
        let mut subscription = subscribe(fake, via).start().unwrap();
        let mut last = None;
        while let Some(item) = subscription.next().await.unwrap() {
            last = short(&item);
        }
        assert_eq!(last.as_deref(), Some(end), "{via}");
        assert!(subscription.next().await.unwrap().is_none());
    }
}

#[tokio::test]
async fn polls_begin_where_they_are_told_and_then_go_on() {
    for via in [Via::Poll, Via::LongPoll] {
        // Ends readers of removed events, and announces a gap to those that begin there.
        let fake = Fake::start(|_, mut conn| {
            let log = Log { first: 6, ..Log::of(8) };
            for expected in ["e-2~", "e-8"] {
                let request = conn.request()?;
                match request.parameter("after") {
                    Some(after) if after == expected => {}
                    other => panic!("{other:?} instead of {expected}"),
                }
                let after = if expected == "e-8" { 8 } else { 2 };
                let page = log.page(after);
                conn.answer("200 OK", "content-type: application/json\r\n", &page)?;
            }
            conn.request()?;
            conn.problem("410 Gone", "", "too-slow")
        });
        let after = "e-2~".parse().unwrap();
        let mut subscription = subscribe(&fake, via).after(after).start().unwrap();
        let mut expected = vec!["gap retention Some(3) to e-5".to_owned()];
        expected.extend(events(6..=8));
        assert_eq!(told(&mut subscription, 3).await, expected, "{via}");
        let mut last = None;
        while let Some(item) = subscription.next().await.unwrap() {
            last = short(&item);
        }
        assert_eq!(last.as_deref(), Some("end too-slow"), "{via}");
    }
}
