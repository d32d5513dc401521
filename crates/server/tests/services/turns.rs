//! Clients of a service that take turns.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anemone_hub::{TurnLimits, Turns, Waiter};
use anemone_testing::multiplexed::{BOTH, Client};
use axum::extract::State;
use socket2::SockRef;
use tokio::sync::Semaphore;

use super::*;

/// A service of which one call works at a time, until the test lets it go.
#[derive(Clone)]
struct Gate {
    turns: Turns,
    begun: Arc<Mutex<Vec<String>>>,
    pass: Arc<Semaphore>,
    open: Open,
}

impl Gate {
    fn new(waiting_per_client_max: usize) -> Self {
        let turns = Turns::new(TurnLimits { places: 1, waiting_per_client_max });
        let (begun, pass) = (Arc::default(), Arc::new(Semaphore::new(0)));
        Self { turns, begun, pass, open: Open::default() }
    }

    fn start(&self) -> Fixture {
        let routes = Router::new().route("/gate/{name}", get(pass)).with_state(self.clone());
        with_mounts(vec![mount("/gate", routes)], |options| {
            options.tcp = Some("127.0.0.1:0".parse().unwrap());
        })
    }

    fn begun(&self) -> Vec<String> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until these calls have begun, in this order.
    fn wait(&self, names: &[&str]) {
        wait_until(&format!("not {names:?} have begun"), || self.begun() == names);
    }
}

async fn pass(
    State(gate): State<Gate>,
    Extension(waiter): Extension<Waiter>,
    Path(name): Path<String>,
) -> Result<String, (StatusCode, String)> {
    let _open = gate.open.one();
    let turn = gate.turns.take(waiter).await;
    let _turn = turn.map_err(|full| (StatusCode::TOO_MANY_REQUESTS, full.to_string()))?;
    gate.begun.lock().unwrap_or_else(PoisonError::into_inner).push(name.clone());
    if let Ok(permit) = gate.pass.acquire().await {
        permit.forget();
    }
    Ok(name)
}

/// Ends a connection so that the server notices at once.
fn cut(client: Client) {
    let stream = match &client {
        Client::WebSocket(socket) => &socket.stream,
        Client::Tcp(stream) => stream,
    };
    SockRef::from(stream).set_linger(Some(Duration::ZERO)).unwrap();
}

#[test]
fn connections_take_turns_and_a_cancel_and_an_end_take_out_what_waits_and_what_works() {
    for carrier in BOTH {
        let gate = Gate::new(99);
        let fixture = gate.start();
        let (mut busy, mut other) =
            (Client::open(carrier, &fixture), Client::open(carrier, &fixture));
        busy.send("GET 1 /gate/a1");
        gate.wait(&["a1"]);
        for number in 2..=9 {
            busy.send(&format!("GET {number} /gate/a{number}"));
        }
        gate.open.wait(9);
        other.send("GET 1 /gate/b1");
        gate.open.wait(10);
        busy.ask("CANCEL 2").is_line(204, "2", "");
        gate.open.wait(9);
        gate.pass.add_permits(1);
        assert_eq!(busy.next().payload, "a1");
        gate.wait(&["a1", "a3"]);
        gate.pass.add_permits(1);
        assert_eq!(busy.next().payload, "a3");
        gate.wait(&["a1", "a3", "b1"]);
        // The connection is cut, and all that waits on it. A client that only ends its side still gets its replies.
        cut(busy);
        gate.open.wait(1);
        cut(other);
        gate.open.wait(0);
        assert_eq!(gate.begun(), ["a1", "a3", "b1"], "{carrier:?}");
        assert!(gate.turns.try_take().is_some(), "the place of the one that worked is free");
    }
}

#[test]
fn so_many_calls_of_a_client_wait_on_all_its_connections_together() {
    let gate = Gate::new(2);
    let fixture = gate.start();
    let [mut first, mut second] = BOTH.map(|carrier| Client::open(carrier, &fixture));
    first.send("GET 1 /gate/1");
    gate.wait(&["1"]);
    first.send("GET 2 /gate/2");
    second.send("GET 3 /gate/3");
    gate.open.wait(3);
    for client in [&mut first, &mut second] {
        let refused = client.ask("GET 4 /gate/4");
        let detail = "2 requests of this client wait for their turn already";
        assert_eq!((refused.status, &*refused.payload), (429, detail));
    }
    assert_eq!(ask(&fixture, "GET", "/gate/5", &[], "").status, 429);
    first.ask("CANCEL 2").is_line(204, "2", "");
    first.send("GET 6 /gate/6");
    gate.open.wait(3);
}
