//! Each request gets exactly one final status, for any requests and any order of crossing messages.

use std::collections::BTreeMap;
use std::num::NonZero;

use anemone_hub::{DataDir, DataOptions, Epoch, Hub, Retention};
use anemone_server::{Options, PublishRight, TopicRule, TopicRules};
use anemone_testing::multiplexed::{BOTH, Carrier, Client, Reply};
use anemone_testing::{Fixture, seed};
use fastrand::Rng;

use crate::multiplexed::calls::routes::Service;

const ROUNDS: u64 = 30;
const MESSAGES: u64 = 80;

fn options(options: &mut Options) {
    options.threads = NonZero::new(1);
    let publish = PublishRight::Anyone;
    let rule = TopicRule { publish, ..TopicRule::new("scratch-*".parse().unwrap()) };
    options.topics = TopicRules::new([rule]).unwrap();
    options.mounts.push(Service::default().mount());
}

#[test]
fn each_request_has_exactly_one_final_status_in_memory() {
    let fixture = Fixture::with(options, Retention::default());
    BOTH.into_iter().for_each(|carrier| check(&fixture, carrier));
}

#[test]
fn each_request_has_exactly_one_final_status_on_a_disk() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::open(folder.path(), DataOptions::default()).unwrap();
    let hub = Hub::with_data(Epoch::from_bits(1234), data).unwrap();
    let fixture = Fixture::of(hub, options, Retention::default());
    BOTH.into_iter().for_each(|carrier| check(&fixture, carrier));
}

/// The messages that were sent on a connection, and those received.
#[derive(Debug, Default)]
struct Ledger {
    /// The number of requests by id.
    requests: BTreeMap<String, u64>,
    finals: BTreeMap<String, u64>,
    /// Requests that were none, for their id was in use.
    refused: u64,
}

impl Ledger {
    /// Takes note of a request; its message.
    fn request(&mut self, method: &str, id: &str, rest: &str) -> String {
        *self.requests.entry(id.to_owned()).or_default() += 1;
        format!("{method} {id} {rest}")
    }

    fn take(&mut self, reply: &Reply) {
        match (reply.status, &*reply.id) {
            (100 | 110 | 206, _) => {}
            (400, "-") => {
                let detail = reply.problem(400, "-", "bad-message");
                // The others are of a CANCEL that is none.
                if let Some(rest) = detail.strip_prefix("request ") {
                    let id = rest.split(' ').next().unwrap();
                    *self.requests.get_mut(id).unwrap() -= 1;
                    self.refused += 1;
                }
            }
            (_, "-") => panic!("{reply:?}"),
            (_, id) => {
                let finals = self.finals.entry(id.to_owned()).or_default();
                *finals += 1;
                let requests = self.requests.get(id).copied().unwrap_or_default();
                assert!(*finals <= requests, "one more than there were requests: {reply:?}");
            }
        }
    }

    fn is_even(&self) -> bool {
        self.requests.iter().all(|(id, requests)| self.finals.get(id).unwrap_or(&0) == requests)
    }
}

fn check(fixture: &Fixture, carrier: Carrier) {
    let mut random = Rng::with_seed(seed());
    let (mut requests, mut refused) = (0, 0);
    for round in 0..ROUNDS {
        // Few ids, which are used again and again; or one for each request, of which many have ended.
        let ids = if round % 2 == 0 { 6 } else { 1000 };
        let mut client = Client::open(carrier, fixture);
        let mut ledger = Ledger::default();
        let messages: Vec<String> =
            (0..MESSAGES).map(|number| message(&mut random, ids, number, &mut ledger)).collect();
        for burst in messages.chunks(1 + random.u64(..MESSAGES) as usize) {
            client.send_all(burst);
            if random.u64(..2) == 0 {
                let first = ledger.request("GET", "barrier", "/clock");
                client.send(&first);
                while ledger.finals.get("barrier") != ledger.requests.get("barrier") {
                    ledger.take(&client.next());
                }
            }
        }
        let cancels: Vec<String> =
            ledger.requests.keys().map(|id| format!("CANCEL {id}")).collect();
        client.send_all(&cancels);
        while !ledger.is_even() {
            ledger.take(&client.next());
        }
        // Nothing comes after the last.
        client.send_all(&cancels);
        let last = client.ask("GET last /clock");
        assert_eq!((last.status, &*last.id), (200, "last"));
        requests += ledger.requests.values().sum::<u64>();
        refused += ledger.refused;
    }
    println!("{carrier:?}: {requests} requests, each with one final status; {refused} refused");
}

/// Calls that are answered at once, later or never, and a stream.
const CALLS: [&str; 6] =
    ["/svc/hello", "/svc/count/3", "/svc/sleep", "/svc/yield", "/svc/never", "/svc/late-panic"];

fn message(random: &mut Rng, ids: u64, number: u64, ledger: &mut Ledger) -> String {
    let id = if ids > MESSAGES { number } else { random.u64(..ids) };
    let (id, earlier) = (format!("i{id}"), format!("i{}", random.u64(..ids.min(number + 1))));
    let name = format!("/topics/scratch-{}", random.u64(..3));
    match random.u64(..18) {
        0..3 => ledger.request("POST", &id, &format!("{name}\n{{\"n\":1}}")),
        3 => ledger.request("GET", &id, "/clock"),
        4 => ledger.request("GET", &id, "/topics/nothing"),
        5 => ledger.request("GET", &id, "/topics/wind"),
        6 => ledger.request("GET", &id, &format!("{name}?after=earliest")),
        7 => ledger.request("DELETE", &id, &name),
        8 => format!("CANCEL {earlier} /"),
        9..15 => ledger.request("GET", &id, CALLS[random.usize(..CALLS.len())]),
        _ => format!("CANCEL {earlier}"),
    }
}
