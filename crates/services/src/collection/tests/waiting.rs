//! Finds of many records, and changes, wait for their turn.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use anemone_hub::TooManyWait;
use anemone_hub::run::OwnerKey;

use super::*;

/// A collection with so many records that a find looks at them on another thread.
async fn filled(options: CollectionOptions) -> Collection {
    let collection =
        open(&hub(), CollectionOptions { records_max: 500, bytes_max: 1 << 20, ..options });
    for _ in 0..200 {
        collection.create(note(&"a".repeat(500)), &Call::default()).await.unwrap();
    }
    collection
}

/// A call of a client on its only connection.
fn of_client(client: u128) -> Call {
    let mut call = Call::default();
    call.extensions.insert(Waiter { client: Some(OwnerKey(client)), connection: 1 });
    call
}

/// Polls what waits for its turn, and returns the outcome if it does not wait.
fn poll<T>(mut future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    }
}

/// Takes all places at finds.
async fn occupied(collection: &Collection) -> Vec<Turn> {
    let mut places = Vec::new();
    for _ in 0..OPTIONS.finds_max {
        places.push(collection.0.finding.take(Waiter::default()).await.unwrap());
    }
    places
}

#[tokio::test]
async fn a_find_of_many_records_waits_for_its_turn() {
    let collection = filled(OPTIONS).await;
    let (query, call) = (Query::default(), Call::default());
    let places = occupied(&collection).await;
    let mut waiting = pin!(collection.find(&query, &call));
    for _ in 0..9 {
        assert!(poll(waiting.as_mut()).is_none());
        tokio::task::yield_now().await;
    }
    drop(places);
    assert_eq!(waiting.await.unwrap().total, 200);
}

#[tokio::test]
async fn a_client_is_next_whatever_another_one_has_in_line() {
    let collection = filled(CollectionOptions { finds_max: 1, ..OPTIONS }).await;
    let (query, busy, other) = (Query::default(), of_client(1), of_client(2));
    let place = collection.0.finding.take(busy.extensions.get().copied().unwrap()).await.unwrap();
    let mut waiting: Vec<_> = (0..100).map(|_| Box::pin(collection.find(&query, &busy))).collect();
    assert!(waiting.iter_mut().all(|find| poll(find.as_mut()).is_none()));
    let mut others = pin!(collection.find(&query, &other));
    assert!(poll(others.as_mut()).is_none());
    drop(place);
    assert_eq!(others.await.unwrap().total, 200);
    // They were not polled meanwhile, so none of them has begun.
    for find in waiting {
        assert_eq!(find.await.unwrap().total, 200);
    }
}

#[tokio::test]
async fn so_many_finds_of_a_client_wait_and_the_next_is_refused() {
    let options = CollectionOptions { finds_waiting_per_client_max: 3, ..OPTIONS };
    let collection = filled(options).await;
    let (query, call, other) = (Query::default(), of_client(1), of_client(2));
    let places = occupied(&collection).await;
    let mut finds: Vec<_> = (0..3).map(|_| Box::pin(collection.find(&query, &call))).collect();
    assert!(finds.iter_mut().all(|find| poll(find.as_mut()).is_none()));
    let too_many = ResourceError::TooManyWait(TooManyWait { waiting_per_client_max: 3 });
    assert_eq!(poll(pin!(collection.find(&query, &call))), Some(Err(too_many)));
    assert!(poll(pin!(collection.find(&query, &other))).is_none(), "others may wait");
    finds.pop();
    let mut find = pin!(collection.find(&query, &call));
    assert!(poll(find.as_mut()).is_none(), "one has gone");
    drop((places, finds));
    assert_eq!(find.await.unwrap().total, 200);
}

#[tokio::test]
async fn a_change_is_next_whatever_another_client_has_in_line() {
    let collection = open(&hub(), CollectionOptions { records_max: 200, ..OPTIONS });
    let (busy, other) = (of_client(1), of_client(2));
    let changing =
        collection.0.changing.take(busy.extensions.get().copied().unwrap()).await.unwrap();
    let mut waiting: Vec<_> =
        (0..100).map(|_| Box::pin(collection.create(note("a"), &busy))).collect();
    assert!(waiting.iter_mut().all(|change| poll(change.as_mut()).is_none()));
    let mut others = pin!(collection.create(note("b"), &other));
    assert!(poll(others.as_mut()).is_none());
    drop(changing);
    assert_eq!(others.await.unwrap().record.fields["id"], "1");
}

#[tokio::test]
async fn a_change_whose_client_has_gone_before_its_turn_never_happens() {
    let collection = filled(OPTIONS).await;
    let call = Call::default();
    let changing = collection.0.changing.try_take().unwrap();
    let mut gone = Box::pin(collection.create(note("gone"), &call));
    let mut stays = pin!(collection.create(note("stays"), &call));
    assert!(poll(gone.as_mut()).is_none() && poll(stays.as_mut()).is_none());
    drop((gone, changing));
    assert_eq!(stays.await.unwrap().record.fields["text"], "stays");
    assert_eq!(collection.len(), 201);
}

#[tokio::test]
async fn a_find_stops_at_its_next_step_once_nobody_waits_for_it() {
    let collection = filled(OPTIONS).await;
    let query = Query::parse(Some("$sort[text]=-1"), collection.schema()).unwrap();
    let find = |steps: usize| {
        let left = std::cell::Cell::new(steps);
        collection.0.find(&query, &|| left.replace(left.get().saturating_sub(1)) > 0)
    };
    // It looks at the records, sorts them and makes the page.
    assert_eq!([0, 1, 2].map(find), [None, None, None]);
    assert_eq!(find(3).unwrap().total, 200);
}

#[test]
fn a_find_that_nobody_waits_for_returns_its_place() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let collection = filled(CollectionOptions { finds_max: 1, ..OPTIONS }).await;
        let (query, call) = (Query::default(), Call::default());
        // The thread for finds has another work, so that this one stays where it is.
        let (other_work, end) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || end.recv());
        let mut gone = Box::pin(collection.find(&query, &call));
        assert!(poll(gone.as_mut()).is_none());
        drop((gone, other_work));
        assert_eq!(collection.find(&query, &call).await.unwrap().total, 200);
    });
}
