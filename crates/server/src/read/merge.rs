//! The order of events from several topics: by time, and within each topic as in its log. Pure.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anemone_hub::UnixTime;

use crate::read::reader::Page;

/// Gives turns to pages: to that whose next event is the oldest. A page without an event has one turn, the first.
#[derive(Debug)]
pub(crate) struct Merge<'a> {
    pages: Vec<&'a Page>,
    /// The next turn of each page: its time, the page, and the event.
    turns: BinaryHeap<Reverse<(UnixTime, usize, usize)>>,
}

impl<'a> Merge<'a> {
    pub(crate) fn of(pages: impl IntoIterator<Item = &'a Page>) -> Self {
        let pages: Vec<_> = pages.into_iter().collect();
        let turn = |(index, page): (usize, &&Page)| Reverse((time_of(page, 0), index, 0));
        let turns = pages.iter().enumerate().map(turn).collect();
        Self { pages, turns }
    }
}

/// The next page to take an event from.
impl Iterator for Merge<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let Reverse((_, index, event)) = self.turns.pop()?;
        let next = event + 1;
        if next < self.pages[index].events.len() {
            self.turns.push(Reverse((time_of(self.pages[index], next), index, next)));
        }
        Some(index)
    }
}

fn time_of(page: &Page, event: usize) -> UnixTime {
    page.events.get(event).map_or_else(UnixTime::default, |event| event.time)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anemone_hub::{Data, Epoch, Event, Position};

    use super::*;

    fn page(times: &[u64]) -> Page {
        let position = Position { epoch: Epoch::from_bits(1), offset: 0 };
        let event = |(offset, time): (u64, &u64)| {
            let (time, data) = (UnixTime::from_micros(*time), Data::json(&1).unwrap());
            Arc::new(Event { offset, time, data })
        };
        let events: Vec<_> = (1..).zip(times).map(event).collect();
        let next = position.at(events.len() as u64);
        Page { first: 1, gap: None, begin: position, skipped: 0, events, next, is_last: false }
    }

    fn order(pages: &[&[u64]]) -> Vec<usize> {
        let pages: Vec<_> = pages.iter().map(|times| page(times)).collect();
        Merge::of(&pages).collect()
    }

    #[test]
    fn events_come_by_time_and_those_of_a_topic_in_their_order() {
        assert_eq!(order(&[&[1, 4, 9], &[2, 3, 5]]), [0, 1, 1, 0, 1, 0]);
        assert_eq!(order(&[&[5, 1, 6], &[2, 7]]), [1, 0, 0, 0, 1], "a clock went back");
        assert_eq!(order(&[&[1, 1], &[1]]), [0, 0, 1]);
        assert_eq!(order(&[&[3], &[], &[2]]), [1, 2, 0], "a page without events has a turn");
        assert_eq!(order(&[]), [0_usize; 0]);
    }

    #[test]
    fn each_page_has_as_many_turns_as_events() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..100 {
            let times: Vec<Vec<u64>> = (0..random.usize(1..6))
                .map(|_| (0..random.usize(1..9)).map(|_| random.u64(0..20)).collect())
                .collect();
            let order = order(&times.iter().map(Vec::as_slice).collect::<Vec<_>>());
            for (index, own) in times.iter().enumerate() {
                assert_eq!(order.iter().filter(|page| **page == index).count(), own.len());
            }
        }
    }
}
