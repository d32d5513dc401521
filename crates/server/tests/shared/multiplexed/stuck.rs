//! A client that does not read, or has much to read, delays no other.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anemone_hub::{Data, Retention};
use anemone_testing::multiplexed::{BOTH, Client};
use anemone_testing::{Fixture, wait_until};
use anemone_ws::proto::Config;

use crate::multiplexed::start;

fn with_backlog() -> Fixture {
    let fixture = start(|_| {}, Retention { bytes_max: 64 << 20, ..Retention::default() });
    publish(&fixture, 600);
    fixture
}

/// So many events of 50 kB.
fn publish(fixture: &Fixture, count: usize) {
    let text = "x".repeat(50_000);
    for n in 1..=count {
        let data = Data::json(&serde_json::json!({ "n": n, "text": text })).unwrap();
        fixture.wind.publish(SystemTime::now().into(), data).unwrap();
    }
}

#[test]
fn a_client_that_does_not_read_holds_nobody_up_and_gets_everything_in_the_end() {
    let fixture = with_backlog();
    for carrier in BOTH {
        let mut stuck = Client::open(carrier, &fixture);
        stuck.send("GET big /topics/wind?after=earliest");
        let mut other = Client::open(carrier, &fixture);
        for _ in 0..100 {
            assert_eq!(other.ask("GET 7 /clock").status, 200);
        }
        stuck.send("GET clock /clock");
        let mut numbers = Vec::new();
        while numbers.len() < 600 {
            match stuck.next() {
                reply if reply.status == 206 => numbers.push(reply.number()),
                reply => assert!(matches!(reply.status, 100 | 200), "{reply:?}"),
            }
        }
        assert_eq!(numbers, (1..=600).collect::<Vec<_>>());
    }
}

#[test]
fn a_reader_with_a_long_past_waits_its_turn_like_all_others() {
    let fixture = with_backlog();
    let small = fixture.hub.create("small".parse().unwrap(), Retention::default()).unwrap();
    small.publish(SystemTime::now().into(), Data::parse(r#"{"n":1}"#).unwrap()).unwrap();
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        client.send_all(&[
            "GET big /topics/wind?after=earliest".to_owned(),
            "GET two /topics/wind?after=earliest".to_owned(),
            "GET small /topics/small?after=earliest".to_owned(),
        ]);
        let mut before_small = 0;
        let (mut big, mut two) = (0_i32, 0_i32);
        let mut is_told = false;
        while big + two < 1200 {
            let reply = client.next();
            match (&*reply.id, reply.status) {
                ("small", 206) => is_told = true,
                ("big", 206) => big += 1,
                ("two", 206) => two += 1,
                (_, 100) => {}
                other => panic!("{other:?}"),
            }
            before_small += u32::from(!is_told && reply.status == 206);
            assert!((big - two).abs() <= 2, "{big} and {two} are told in turns");
        }
        assert!(before_small <= 4, "{before_small} events stood before it");
    }
}

#[test]
fn a_client_that_never_reads_is_given_up() {
    let config = Config {
        ping_interval: Duration::from_millis(200),
        idle_timeout: Duration::from_secs(3),
        close_timeout: Duration::from_millis(100),
        ..Config::default()
    };
    for carrier in BOTH {
        let retention = Retention { bytes_max: 64 << 20, ..Retention::default() };
        let fixture = start(
            |options| {
                options.limits.multiplexed = Arc::new(config.clone());
                options.limits.heartbeat = Duration::from_millis(100);
                options.limits.connections_max = 1;
            },
            retention,
        );
        let mut stuck = Client::open(carrier, &fixture);
        assert_eq!(stuck.ask("GET r /topics/wind").status, 100);
        fixture.get("/clock", &[]).problem(503, "too-many-connections");
        // More than the kernel takes for it.
        publish(&fixture, 400);
        wait_until("it is still held", || fixture.get("/clock", &[]).status == 200);
    }
}
