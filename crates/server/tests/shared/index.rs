//! `/topics`, the index of topics, and `/topics/$topics`, which tells what is created and deleted.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use anemone_hub::{Data, Hub, Retention};
use anemone_server::{PublishRight, TopicRule, TopicRules, TopicRulesError};
use anemone_testing::multiplexed::{Carrier, Client};
use anemone_testing::{Fixture, wait_for, wait_until};
use serde_json::{Value, json};

const WRITERS: usize = 16;
const ROUNDS: usize = 60;
const CLIENTS: usize = 4;

fn start() -> Fixture {
    let rule =
        TopicRule { publish: PublishRight::Anyone, ..TopicRule::new("t-*".parse().unwrap()) };
    let rules = TopicRules::new([rule]).unwrap();
    Fixture::with(|options| options.topics = rules, Retention::default())
}

fn names(list: &Value) -> Vec<String> {
    let topics = list["topics"].as_array().unwrap().iter();
    topics.map(|topic| topic["name"].as_str().unwrap().to_owned()).collect()
}

fn list(fixture: &Fixture, target: &str) -> Value {
    let reply = fixture.get(target, &[]);
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

#[test]
fn the_list_has_the_units_of_the_closest_rule_and_says_where_events_are_stored() {
    let units = |unit: &str| [("speed".to_owned(), unit.to_owned())].into();
    let rule = |name: &str, unit: &str| TopicRule {
        units: units(unit),
        ..TopicRule::new(name.parse().unwrap())
    };
    let rules = TopicRules::new([rule("t-*", "kn"), rule("t-1", "m/s")]).unwrap();
    let fixture = Fixture::with(|options| options.topics = rules, Retention::default());
    fixture.hub.create("t-2".parse().unwrap(), Retention::default()).unwrap();
    let list = list(&fixture, "/topics");
    let units = |at: usize| list["topics"][at]["units"].clone();
    assert_eq!(names(&list), ["t-1", "t-2", "wind"]);
    assert_eq!([units(0), units(1)], [json!({"speed": "m/s"}), json!({"speed": "kn"})]);
    assert_eq!(units(2), Value::Null, "without a rule");
    assert_eq!(list["topics"][0]["storage"], "memory");
}

#[test]
fn the_list_says_of_which_source_a_topic_has_the_status_and_nothing_of_one_that_only_has_the_name()
{
    let status = |name: &str| TopicRule {
        status_of: Some("wind".parse().unwrap()),
        ..TopicRule::new(name.parse().unwrap())
    };
    let rules = TopicRules::new([status("wind.status"), status("t-*")]).unwrap();
    let fixture = Fixture::with(|options| options.topics = rules, Retention::default());
    fixture.hub.create("t-1.status".parse().unwrap(), Retention::default()).unwrap();
    let list = list(&fixture, "/topics");
    assert_eq!(names(&list), ["t-1.status", "wind", "wind.status"]);
    let of = list["topics"].as_array().unwrap().iter().map(|topic| topic["status_of"].clone());
    assert_eq!(of.collect::<Vec<_>>(), [Value::Null, Value::Null, json!("wind")]);
}

#[test]
fn a_rule_has_few_short_units() {
    let rules = |units: Vec<(String, String)>| {
        let rule = TopicRule::new("t".parse().unwrap());
        TopicRules::new([TopicRule { units: units.into_iter().collect(), ..rule }])
    };
    let many = |count: usize| (0..count).map(|n| (n.to_string(), "m/s".to_owned())).collect();
    let one = |unit: &str| vec![("speed".to_owned(), unit.to_owned())];
    assert!(rules(many(32)).is_ok() && rules(one("µg/m³ in the air")).is_ok());
    for refused in [many(33), one(""), one("metres per second")] {
        assert!(matches!(rules(refused), Err(TopicRulesError::Units { .. })));
    }
}

/// A client that lists the topics in pages and then follows the index, until `is_over` and it has all.
fn follow(fixture: &Fixture, is_over: &AtomicBool) -> BTreeSet<String> {
    let first = list(fixture, "/topics?limit=7");
    let mut position = first["position"].as_str().unwrap().to_owned();
    let mut view: BTreeSet<String> = names(&first).into_iter().collect();
    let mut next = first["next"].as_str().map(str::to_owned);
    while let Some(after) = next {
        let page = list(fixture, &format!("/topics?limit=7&after={after}"));
        view.extend(names(&page));
        next = page["next"].as_str().map(str::to_owned);
    }
    loop {
        let was_over = is_over.load(Ordering::SeqCst);
        let page = list(fixture, &format!("/topics/$topics?limit=13&after={position}"));
        assert_eq!(page.get("gap"), None, "{page}");
        let events = page["events"].as_array().unwrap();
        if events.is_empty() && was_over {
            return view;
        }
        for event in events {
            match (event["data"]["created"].as_str(), event["data"]["deleted"].as_str()) {
                (Some(created), None) => drop(view.insert(created.to_owned())),
                (None, Some(deleted)) => drop(view.remove(deleted)),
                _ => panic!("{event}"),
            }
        }
        page["next"].as_str().unwrap().clone_into(&mut position);
    }
}

#[test]
fn who_lists_and_then_follows_ends_with_the_truth() {
    let (fixture, is_over) = (start(), AtomicBool::new(false));
    let seed = fastrand::u64(..);
    std::thread::scope(|scope| {
        let clients = || loop_of_clients(&fixture, &is_over);
        let views: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(clients)).collect();
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let hub = fixture.hub.clone();
                scope.spawn(move || write(&hub, seed + writer as u64))
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::SeqCst);
        let truth: BTreeSet<String> =
            fixture.hub.topics().iter().map(|topic| topic.name().to_string()).collect();
        for view in views {
            for view in view.join().unwrap() {
                assert_eq!(view, truth, "seed {seed}");
            }
        }
    });
}

/// The views of clients that come one after the other; each stays to the end.
fn loop_of_clients(fixture: &Fixture, is_over: &AtomicBool) -> Vec<BTreeSet<String>> {
    std::thread::scope(|scope| {
        let mut views = Vec::new();
        while !is_over.load(Ordering::SeqCst) && views.len() < 20 {
            views.push(scope.spawn(|| follow(fixture, is_over)));
            std::thread::yield_now();
        }
        views.into_iter().map(|view| view.join().unwrap()).collect()
    })
}

/// Creates and deletes topics, whose names others use, too.
fn write(hub: &Hub, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..ROUNDS {
        let name = format!("t-{}", random.u32(..40)).parse().unwrap();
        match random.bool() {
            true => drop(hub.create(name, Retention::default())),
            false => drop(hub.delete(&name)),
        }
        std::thread::yield_now();
    }
}

#[test]
fn the_index_is_read_like_a_topic_and_nobody_changes_it() {
    let fixture = start();
    assert_eq!(fixture.request("POST", "/topics/t-1", &[("Content-Length", "0")]).status, 400);
    let mut client = Client::open(Carrier::Tcp, &fixture);
    let begin = client.ask("GET r /topics/$topics");
    assert_eq!(begin.status, 100);
    let mut socket = fixture.websocket("/topics/$topics", &[], &[]);
    let mut events = fixture.events("/topics/%24topics", &[]);
    let (path, about) = ("/topics/$topics", "$topics");
    assert_eq!(client.ask("POST a /topics/t-1\n1").status, 201);
    let told = client.next();
    assert_eq!((told.status, told.json()), (206, json!({"created":"t-1"})));
    assert_eq!(socket.event(), r#"{"created":"t-1"}"#);
    let block = wait_for("no event", || events.block().filter(|block| block.contains("data:")));
    assert!(block.contains(r#"data: {"created":"t-1"}"#), "{block}");
    let newest = list(&fixture, path);
    assert_eq!(newest["events"][0]["data"], json!({"created":"t-1"}), "{newest}");

    let readers = list(&fixture, "/topics/$topics/readers");
    assert_eq!(readers["count"], 3, "{readers}");
    assert_eq!(names(&list(&fixture, "/topics")), ["t-1", "wind"], "not {about}");
    for method in ["POST", "DELETE", "PUT"] {
        let refused = fixture.request(method, path, &[("Content-Length", "0")]);
        refused.problem(405, "method-not-allowed");
        assert_eq!(refused.field("allow"), Some("GET, HEAD"));
    }
    client.ask("POST b /topics/$topics\n1").problem(405, "b", "method-not-allowed");
    client.ask("DELETE c /topics/$topics").problem(405, "c", "method-not-allowed");
    for other in ["/topics/$topics2", "/topics/$", "/topics/$Topics"] {
        fixture.get(other, &[]).problem(400, "bad-name");
    }
    assert_eq!(client.ask("DELETE d /topics/t-1").status, 204);
    assert_eq!(client.next().json(), json!({"deleted":"t-1"}));
}

#[test]
fn a_page_has_what_a_home_page_needs() {
    let fixture = start();
    fixture.publish(1..=3);
    let _socket = fixture.websocket("/topics/wind", &[], &[]);
    fixture.hub.create("wild".parse().unwrap(), Retention::default()).unwrap();
    let of = |target: &str| list(&fixture, target);
    wait_until("the reader", || of("/topics")["topics"][1]["readers"] == 1);
    let page = of("/topics?prefix=w");
    let (empty, wind) = (&page["topics"][0], &page["topics"][1]);
    assert_eq!(
        (&empty["events"], &empty["time"], &empty["readers"]),
        (&json!(0), &json!(null), &json!(0))
    );
    assert_eq!((&wind["events"], &wind["next"]), (&json!(3), &json!("ya-3")));
    let newest = of("/topics/wind");
    assert_eq!(wind["time"], newest["events"][0]["time"]);
    assert_eq!(names(&of("/topics?prefix=win")), ["wind"]);
    assert_eq!(names(&of("/topics?prefix=x")), [""; 0]);
    let first = fixture.get("/topics?prefix=wi&limit=1", &[]);
    assert_eq!(first.field("link"), Some("<?prefix=wi&after=wild&limit=1>; rel=\"next\""));
    assert_eq!(names(&of("/topics?prefix=wi&after=wild&limit=1")), ["wind"]);
    let mut client = Client::open(Carrier::WebSocket, &fixture);
    assert_eq!(client.ask("GET 1 /topics?prefix=win").json()["topics"][0]["name"], "wind");
    fixture.get("/topics?prefix=-", &[]).problem(400, "bad-parameter");
    let position = page["position"].as_str().unwrap();
    let rest = of(&format!("/topics/$topics?after={position}"));
    assert_eq!(rest["events"], json!([]));
}

#[test]
fn who_is_too_far_behind_and_who_comes_after_a_restart_gets_a_gap() {
    let limits = |options: &mut anemone_server::Options| options.limits.index_events_max = 5;
    let fixture = Fixture::with(limits, Retention::default());
    let position = list(&fixture, "/topics")["position"].as_str().unwrap().to_owned();
    for number in 0..10 {
        fixture.hub.create(format!("n{number}").parse().unwrap(), Retention::default()).unwrap();
    }
    let page = list(&fixture, &format!("/topics/$topics?after={position}"));
    assert_eq!((&page["gap"]["reason"], &page["gap"]["missed"]), (&json!("retention"), &json!(5)));
    assert_eq!(page["events"].as_array().unwrap().len(), 5);
    drop(fixture);
    let other =
        Fixture::of(Hub::new(anemone_hub::Epoch::from_bits(77)), |_| {}, Retention::default());
    let page = list(&other, &format!("/topics/$topics?after={position}"));
    assert_eq!(page["gap"]["reason"], "epoch");
    let now = SystemTime::now().into();
    let data = Data::json(&1).unwrap();
    assert!(other.wind.publish(now, data).is_ok());
}
