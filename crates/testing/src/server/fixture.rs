//! A server on a free port, with two threads and the topic `wind`.

use std::net::SocketAddr;
use std::num::NonZero;
use std::ops::Deref;
use std::sync::Arc;
use std::time::SystemTime;

use anemone_hub::run::Runs;
use anemone_hub::{Data, Epoch, Hub, Retention, Topic};
use anemone_server::{Limits, ListenAt, Options, Running, Server};

use crate::server::endpoint::Endpoint;
use crate::server::page;

pub struct Fixture {
    pub hub: Hub,
    pub wind: Arc<Topic>,
    pub runs: Runs,
    endpoint: Endpoint,
    running: Option<Running>,
}

impl Fixture {
    pub fn start() -> Self {
        Self::with(|_| {}, Retention::default())
    }

    pub fn with(change: impl FnOnce(&mut Options), retention: Retention) -> Self {
        Self::of(Hub::new(Epoch::from_bits(1234)), change, retention)
    }

    /// Starts a server with the topics of this hub.
    pub fn of(hub: Hub, change: impl FnOnce(&mut Options), retention: Retention) -> Self {
        let wind = hub.ensure("wind".parse().unwrap(), retention).unwrap();
        let mut options = Options::new("127.0.0.1:0".parse().unwrap());
        options.threads = NonZero::new(2);
        options.tcp = Some("127.0.0.1:0".parse().unwrap());
        (options.echo, options.broadcast) = (true, true);
        options.mounts = vec![page::mount()];
        change(&mut options);
        let server = Server::bind(options, hub.clone()).unwrap();
        let (runs, running) = (server.runs().clone(), server.start().unwrap());
        let endpoint = Endpoint { address: running.local_addr().unwrap() };
        Self { hub, wind, runs, endpoint, running: Some(running) }
    }

    pub fn with_limits(change: impl FnOnce(&mut Limits)) -> Self {
        Self::with(|options| change(&mut options.limits), Retention::default())
    }

    /// Publishes the numbers `from..=to` and returns the position of the last.
    pub fn publish(&self, numbers: std::ops::RangeInclusive<u64>) -> String {
        let mut last = String::new();
        for number in numbers {
            let data = Data::json(&serde_json::json!({ "n": number })).unwrap();
            last = self.wind.publish(SystemTime::now().into(), data).unwrap().to_string();
        }
        last
    }

    /// The bytes that the server counts as held for its clients.
    pub fn held_bytes(&self) -> usize {
        self.running.as_ref().unwrap().held_bytes()
    }

    /// Returns true if this topic exists; a pattern that only allows it is not enough.
    pub fn has(&self, topic: &str) -> bool {
        self.hub.topic(&topic.parse().unwrap()).is_some()
    }

    pub fn tcp(&self) -> SocketAddr {
        self.running.as_ref().unwrap().tcp_addr().unwrap()
    }

    pub fn tcp_echo(&self) -> SocketAddr {
        self.running.as_ref().unwrap().tcp_echo_addr().unwrap()
    }

    /// The places on which it listens.
    pub fn places(&self) -> &[ListenAt] {
        self.running.as_ref().unwrap().places()
    }

    pub fn stop(&mut self) {
        self.running.take().unwrap().stop_blocking();
    }

    /// Stops while the clients read their last words and close. The server waits for clients that do neither.
    pub fn stop_while<T>(&mut self, clients: impl FnOnce() -> T) -> T {
        std::thread::scope(|scope| {
            scope.spawn(|| self.stop());
            clients()
        })
    }
}

impl Deref for Fixture {
    type Target = Endpoint;

    fn deref(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop_blocking();
        }
    }
}
