//! Checks the order of a topic's items. Pure.
//!
//! Owns the position of a subscription. It passes no event twice and no event out of order. It reports a hole before it
//! passes the next event.

use std::collections::VecDeque;

use crate::{EndReason, Gap, GapReason, Hole, Item, Position};

/// An item of one topic, from a server.
type TopicItem = anemone_wire::Item<'static>;

/// Tracks a topic across all connections of a subscription.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    /// The last reported position; `None` until the server has sent the position at which reading begins.
    position: Option<Position>,
    /// The number of events that were skipped before the next one, and are not reported yet.
    skipped: u64,
    /// The position after which a hole was found. If the hole is found there again, it becomes a gap.
    hole_after: Option<Position>,
    repeated: u64,
}

/// The effect of a [`TopicItem`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    Forward,
    /// The item was nothing new.
    Stay,
    /// The topic has ended.
    End,
}

impl Tracker {
    /// Creates a tracker that continues after this position.
    pub(crate) fn resume(position: Position) -> Self {
        Self { position: Some(position), ..Self::default() }
    }

    /// Returns the position to continue from.
    pub(crate) fn position(&self) -> Option<Position> {
        self.position
    }

    /// Returns the number of events that the server sent again, over all connections.
    pub(crate) fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Begins a new connection. On it, the server repeats the items that were not reported.
    pub(crate) fn reconnect(&mut self) {
        self.skipped = 0;
    }

    /// Takes an item of the server, and appends the items to report to `items`.
    pub(crate) fn receive(
        &mut self,
        said: TopicItem,
        items: &mut VecDeque<Item>,
    ) -> Result<Step, Hole> {
        match said {
            TopicItem::Begin(found) | TopicItem::Quiet(found) => self.standing(found, items),
            TopicItem::Event { position, time, data } => {
                if !self.follows(position, items)? {
                    self.repeated += 1;
                    return Ok(Step::Stay);
                }
                if self.position.is_none() {
                    // A page contains only its end position; its first event shows where it begins.
                    let before = position.offset.saturating_sub(self.skipped.saturating_add(1));
                    items.push_back(Item::Position(position.at(before)));
                }
                if self.skipped > 0 {
                    items.push_back(Item::Skipped(self.skipped));
                }
                self.skipped = 0;
                self.move_to(position);
                items.push_back(Item::Event { position, time, data: data.into_owned() });
                Ok(Step::Forward)
            }
            TopicItem::Gap(gap) => self.gap(gap, items),
            TopicItem::Skipped { count, .. } => {
                self.skipped = self.skipped.saturating_add(count);
                Ok(Step::Stay)
            }
            TopicItem::End(reason) => {
                items.push_back(self.end(reason));
                Ok(Step::End)
            }
        }
    }

    /// Returns the end of the topic. If it names a gap, the gap begins after the last reported event.
    pub(crate) fn end(&self, mut reason: EndReason) -> Item {
        if let EndReason::TooSlow { gap: Some(gap) } = &mut reason {
            *gap = self.seen_from_here(gap.clone());
        }
        Item::End { reason }
    }

    fn standing(&mut self, found: Position, items: &mut VecDeque<Item>) -> Result<Step, Hole> {
        let Some(position) = self.position else {
            items.push_back(Item::Position(found));
            self.move_to(found);
            return Ok(Step::Forward);
        };
        // An earlier position is harmless: the events between are known.
        if position.epoch == found.epoch && found.offset <= position.offset {
            return Ok(Step::Stay);
        }
        self.on_hole(found, found, items)?;
        Ok(Step::Forward)
    }

    /// Returns true if an event is new, and false if it was reported before. Handles a hole before a new event.
    fn follows(&mut self, found: Position, items: &mut VecDeque<Item>) -> Result<bool, Hole> {
        let Some(position) = self.position else { return Ok(true) };
        if position.epoch == found.epoch {
            let expected = position.offset.saturating_add(self.skipped).saturating_add(1);
            if found.offset == expected {
                return Ok(true);
            }
            if found.offset <= position.offset {
                return Ok(false);
            }
        }
        let before = found.at(found.offset.saturating_sub(1));
        self.on_hole(found, before, items)?;
        Ok(true)
    }

    fn gap(&mut self, gap: Gap, items: &mut VecDeque<Item>) -> Result<Step, Hole> {
        let gap = self.seen_from_here(gap);
        if gap.missed == Some(0) {
            return Ok(Step::Stay);
        }
        self.skipped = 0;
        self.move_to(gap.resume);
        items.push_back(Item::Gap(gap));
        Ok(Step::Forward)
    }

    /// Returns a gap without the part before the current position.
    fn seen_from_here(&self, gap: Gap) -> Gap {
        let Some(position) = self.position else { return gap };
        let is_same_log = position.epoch == gap.resume.epoch;
        let missed = is_same_log.then(|| gap.resume.offset.saturating_sub(position.offset));
        Gap { after: position, missed, ..gap }
    }

    /// Handles events that are missing up to `resume` without a gap from the server. The first time, this is an error,
    /// since another connection may return the events. The second time, it becomes a gap.
    fn on_hole(
        &mut self,
        found: Position,
        resume: Position,
        items: &mut VecDeque<Item>,
    ) -> Result<(), Hole> {
        let Some(after) = self.position else { return Ok(()) };
        if self.hole_after != Some(after) {
            self.hole_after = Some(after);
            return Err(Hole { after, found });
        }
        let is_same_log = after.epoch == resume.epoch;
        let missed = is_same_log.then(|| resume.offset.saturating_sub(after.offset));
        self.skipped = 0;
        self.move_to(resume);
        if resume == after {
            // The server announced skipped events, but skipped none.
            return Ok(());
        }
        items.push_back(Item::Gap(Gap { reason: GapReason::Unannounced, after, missed, resume }));
        Ok(())
    }

    fn move_to(&mut self, position: Position) {
        self.position = Some(position);
        self.hole_after = None;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Position {
        text.parse().unwrap()
    }

    fn event(position: &str) -> TopicItem {
        TopicItem::Event { position: at(position), time: None, data: "1".into() }
    }

    fn gap_between(after: Position, resume: Position) -> TopicItem {
        TopicItem::Gap(Gap { reason: GapReason::Retention, after, missed: Some(1), resume })
    }

    fn gap(after: &str, missed: Option<u64>, resume: &str) -> TopicItem {
        let (after, resume) = (at(after), at(resume));
        TopicItem::Gap(Gap { reason: GapReason::Retention, after, missed, resume })
    }

    /// Returns the items to report for `said`, and the hole that ends reading, if there is one.
    fn told(tracker: &mut Tracker, said: Vec<TopicItem>) -> (Vec<String>, Option<Hole>) {
        let mut items = VecDeque::new();
        let hole = said.into_iter().find_map(|item| tracker.receive(item, &mut items).err());
        let told = items.iter().map(|item| match item {
            Item::Position(position) => format!("at {position}"),
            Item::Event { position, .. } => position.to_string(),
            Item::Gap(gap) => format!("gap {:?} to {}", gap.missed, gap.resume),
            Item::Skipped(count) => format!("skipped {count}"),
            other => format!("{other:?}"),
        });
        (told.collect(), hole)
    }

    #[test]
    fn the_place_is_told_once_and_events_once_each() {
        let mut tracker = Tracker::default();
        let standing = TopicItem::Begin(at("a-2"));
        let said = vec![standing.clone(), event("a-3"), event("a-3"), event("a-2"), event("a-4")];
        assert_eq!(told(&mut tracker, said).0, ["at a-2", "a-3", "a-4"]);
        assert_eq!(tracker.repeated(), 2);
        tracker.reconnect();
        let said = vec![TopicItem::Begin(at("a-4")), event("a-5"), TopicItem::Begin(at("a-5"))];
        assert_eq!(told(&mut tracker, said), (vec!["a-5".to_owned()], None));
    }

    #[test]
    fn where_reading_begins_is_told_also_when_an_event_is_what_comes_first() {
        let mut tracker = Tracker::default();
        assert_eq!(
            told(&mut tracker, vec![event("a-3"), event("a-4")]).0,
            ["at a-2", "a-3", "a-4"]
        );
        let mut tracker = Tracker::default();
        let said = vec![
            TopicItem::Skipped { count: 2, last: None },
            event("a-3"),
            TopicItem::Begin(at("a-3")),
        ];
        assert_eq!(told(&mut tracker, said).0, ["at a-0", "skipped 2", "a-3"]);
    }

    #[test]
    fn a_hole_is_an_error_and_the_second_time_a_gap() {
        for (found, missed) in [("a-8", "Some(3)"), ("b-8", "None")] {
            let mut tracker = Tracker::resume(at("a-4"));
            let (items, hole) = told(&mut tracker, vec![event(found), event("a-9")]);
            assert_eq!((items.len(), hole), (0, Some(Hole { after: at("a-4"), found: at(found) })));
            assert_eq!(tracker.position(), Some(at("a-4")));
            let resume = at(found).at(7);
            let (items, hole) = told(&mut tracker, vec![event(found)]);
            assert_eq!(items, [format!("gap {missed} to {resume}"), found.to_owned()]);
            assert_eq!(hole, None);
        }
    }

    #[test]
    fn a_server_that_stands_somewhere_else_left_something_out() {
        let mut tracker = Tracker::resume(at("a-4"));
        assert!(told(&mut tracker, vec![TopicItem::Begin(at("a-3"))]).1.is_none());
        assert!(told(&mut tracker, vec![TopicItem::Begin(at("a-6"))]).1.is_some());
        let (items, _) = told(&mut tracker, vec![TopicItem::Begin(at("a-7")), event("a-8")]);
        assert_eq!(items, ["gap Some(3) to a-7", "a-8"]);
    }

    #[test]
    fn a_gap_is_passed_on_once_and_reading_goes_on_after_it() {
        let mut tracker = Tracker::resume(at("a-4"));
        let said = vec![gap("a-4", Some(2), "a-6"), gap("a-4", Some(2), "a-6"), event("a-7")];
        assert_eq!(
            told(&mut tracker, said),
            (vec!["gap Some(2) to a-6".into(), "a-7".into()], None)
        );
        let said = vec![gap("a-7", None, "b-0"), event("b-1")];
        assert_eq!(told(&mut tracker, said).0, ["gap None to b-0", "b-1"]);
        // A gap from before the known position: only the rest is reported.
        let said = vec![gap("b-0", Some(4), "b-4")];
        assert_eq!(told(&mut tracker, said).0, ["gap Some(3) to b-4"]);
    }

    #[test]
    fn what_was_skipped_is_told_with_the_event_after_it() {
        let mut tracker = Tracker::resume(at("a-4"));
        assert_eq!(
            told(&mut tracker, vec![TopicItem::Skipped { count: 3, last: None }]).0.len(),
            0
        );
        tracker.reconnect();
        let said = vec![TopicItem::Skipped { count: 5, last: None }, event("a-10"), event("a-11")];
        assert_eq!(
            told(&mut tracker, said),
            (["skipped 5", "a-10", "a-11"].map(Into::into).into(), None)
        );
        let (_, hole) =
            told(&mut tracker, vec![TopicItem::Skipped { count: 5, last: None }, event("a-16")]);
        assert!(hole.is_some());
    }

    proptest! {
        /// Events come in order and once, whatever a server says. A missing event is always part of a gap, or counted
        /// as skipped.
        #[test]
        fn a_resume_gives_each_event_once_or_says_there_is_a_gap(
            said in prop::collection::vec((0_u8..5, 1_u64..12, 1_u64..12), 0..60),
        ) {
            let (mut tracker, mut items) = (Tracker::resume(at("a-0")), VecDeque::new());
            for (kind, first, second) in said {
                let place = |offset| at("a-0").at(offset);
                let item = match kind {
                    0 => TopicItem::Begin(place(first)),
                    1 => TopicItem::Skipped { count: first, last: None },
                    2 => gap_between(place(first), place(first + second)),
                    _ => event(&format!("a-{first}")),
                };
                if tracker.receive(item, &mut items).is_err() {
                    tracker.reconnect();
                }
            }
            let (mut offset, mut skipped) = (0, 0);
            for item in items {
                match item {
                    Item::Event { position, .. } => {
                        prop_assert_eq!(position.offset, offset + skipped + 1);
                        (offset, skipped) = (position.offset, 0);
                    }
                    Item::Skipped(count) => skipped = count,
                    Item::Gap(gap) => {
                        prop_assert_eq!(gap.after.offset, offset);
                        prop_assert_eq!(gap.missed, Some(gap.resume.offset - offset));
                        prop_assert!(gap.resume.offset > offset);
                        offset = gap.resume.offset;
                    }
                    other => prop_assert!(false, "{:?}", other),
                }
            }
        }
    }
}
