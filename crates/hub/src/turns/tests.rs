use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::*;

type Asking = Pin<Box<dyn Future<Output = Result<Turn, TooManyWait>>>>;

fn turns(places: usize, waiting_per_client_max: usize) -> Turns {
    Turns::new(TurnLimits { places, waiting_per_client_max })
}

fn waiter(client: u8, connection: u64) -> Waiter {
    Waiter { client: Some(OwnerKey(client.into())), connection }
}

fn poll(asking: &mut Asking) -> Option<Result<Turn, TooManyWait>> {
    match asking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(asked) => Some(asked),
        Poll::Pending => None,
    }
}

/// Those who wait, in the order in which they came.
#[derive(Default)]
struct Waiters(Vec<(Waiter, Asking)>);

impl Waiters {
    fn ask(&mut self, turns: &Turns, waiter: Waiter) -> Option<Turn> {
        let turns = turns.clone();
        let mut asking: Asking = Box::pin(async move { turns.take(waiter).await });
        let turn = poll(&mut asking);
        if turn.is_none() {
            self.0.push((waiter, asking));
        }
        turn.map(Result::unwrap)
    }

    fn called(&mut self) -> Option<(Waiter, Turn)> {
        for place in 0..self.0.len() {
            if let Some(turn) = poll(&mut self.0[place].1) {
                let (waiter, _) = self.0.remove(place);
                return Some((waiter, turn.unwrap()));
            }
        }
        None
    }

    /// Returns the order in which all of them get the places that are returned one after the other.
    fn order(mut self, first: Turn) -> Vec<Waiter> {
        let (mut turn, mut order) = (first, Vec::new());
        loop {
            drop(turn);
            let Some((waiter, next)) = self.called() else { return order };
            order.push(waiter);
            turn = next;
        }
    }
}

#[test]
fn whoever_comes_is_next_however_many_another_client_has_in_line() {
    let (turns, mut waiters) = (turns(1, 999), Waiters::default());
    let first = waiters.ask(&turns, waiter(1, 1)).unwrap();
    for _ in 0..999 {
        assert!(waiters.ask(&turns, waiter(1, 1)).is_none());
    }
    assert!(waiters.ask(&turns, waiter(2, 1)).is_none());
    let order = waiters.order(first);
    assert_eq!(order.len(), 1_000);
    assert_eq!(order.iter().position(|one| *one == waiter(2, 1)), Some(0));
}

#[test]
fn the_connections_of_a_client_take_turns_and_count_as_one_client() {
    let (turns, mut waiters) = (turns(1, 99), Waiters::default());
    let first = waiters.ask(&turns, waiter(1, 1)).unwrap();
    for (client, connection) in [(1, 1), (1, 1), (1, 1), (1, 2), (1, 3), (2, 1), (2, 1), (2, 1)] {
        assert!(waiters.ask(&turns, waiter(client, connection)).is_none());
    }
    let order = [(2, 1), (1, 1), (2, 1), (1, 2), (2, 1), (1, 3), (1, 1), (1, 1)];
    assert_eq!(waiters.order(first), order.map(|(client, connection)| waiter(client, connection)));
}

#[test]
fn one_who_leaves_the_line_gets_no_place_and_one_who_has_it_passes_it_on() {
    let (turns, mut waiters) = (turns(1, 99), Waiters::default());
    let first = waiters.ask(&turns, waiter(1, 1)).unwrap();
    for connection in 1..=4 {
        assert!(waiters.ask(&turns, waiter(1, connection)).is_none());
    }
    drop(waiters.0.remove(1));
    drop(first);
    // The next one has been called, and leaves before it knows.
    drop(waiters.0.remove(0));
    let (next, turn) = waiters.called().unwrap();
    assert_eq!(next, waiter(1, 3));
    assert!(turns.try_take().is_none(), "the place is taken");
    assert_eq!(waiters.order(turn), [waiter(1, 4)]);
    assert!(turns.line().clients.is_empty(), "nothing is kept of who is gone");
    assert!(turns.try_take().is_some());
}

#[test]
fn so_much_of_one_client_waits_and_no_more() {
    let (turns, mut waiters) = (turns(2, 3), Waiters::default());
    let places = [1, 2].map(|connection| waiters.ask(&turns, waiter(1, connection)).unwrap());
    for connection in 1..=3 {
        assert!(waiters.ask(&turns, waiter(1, connection)).is_none());
    }
    let ask = |turns: &Turns| {
        let turns = turns.clone();
        poll(&mut (Box::pin(async move { turns.take(waiter(1, 9)).await }) as Asking))
    };
    let refused = ask(&turns).unwrap().unwrap_err();
    assert_eq!(refused.to_string(), "3 requests of this client wait for their turn already");
    assert!(waiters.ask(&turns, waiter(2, 1)).is_none(), "another client may wait");
    for _ in 0..9 {
        assert!(waiters.ask(&turns, Waiter::default()).is_none(), "one without a client may, too");
    }
    drop(waiters.0.remove(0));
    assert!(ask(&turns).is_none(), "one has left the line");
    drop(places);
}

#[test]
fn a_client_has_half_of_the_places_while_others_wait_and_all_of_them_otherwise() {
    let (turns, mut waiters) = (turns(4, 99), Waiters::default());
    let mut places: Vec<_> = (0..4).map(|_| waiters.ask(&turns, waiter(1, 1)).unwrap()).collect();
    for client in [1, 1, 2, 2, 2] {
        assert!(waiters.ask(&turns, waiter(client, 1)).is_none());
    }
    for expected in [2, 2, 1] {
        drop(places.remove(0));
        let (next, turn) = waiters.called().unwrap();
        assert_eq!(next, waiter(expected, 1));
        places.push(turn);
    }
}

proptest! {
    /// Steps: come (0, 1), return a place (2), leave the line (3).
    #[test]
    fn no_place_is_lost_or_given_twice_and_a_connections_own_come_in_order(
        steps in prop::collection::vec((0_u8..4, 0_u8..3, 0_u64..3, 0_usize..9), 0..120),
        places in 1_usize..4,
    ) {
        let (turns, mut waiters, mut held) = (turns(places, 5), Waiters::default(), Vec::new());
        for (step, client, connection, at) in steps {
            match step {
                0 | 1 => {
                    let one = waiter(client, connection);
                    let own = waiters.0.iter().filter(|(waiting, _)| waiting.client == one.client);
                    if own.count() < 5 {
                        held.extend(waiters.ask(&turns, one));
                    }
                }
                2 if at < held.len() => drop(held.swap_remove(at)),
                3 if at < waiters.0.len() => drop(waiters.0.remove(at)),
                _ => {}
            }
            while let Some((called, turn)) = waiters.called() {
                let first = waiters.0.iter().position(|(waiting, _)| *waiting == called);
                // Those who came later on the same connection still wait behind it.
                prop_assert!(first.is_none_or(|first| poll(&mut waiters.0[first].1).is_none()));
                held.push(turn);
            }
            prop_assert!(held.len() <= places);
            prop_assert!(waiters.0.is_empty() || held.len() == places);
            let line = turns.line();
            prop_assert_eq!((line.queue.len(), line.queue.running().len()), (waiters.0.len(), held.len()));
        }
        drop((waiters, held));
        prop_assert!(turns.line().clients.is_empty());
        prop_assert_eq!(turns.line().queue.running().len(), 0);
    }
}
