//! The offline checker: whether what everyone saw can be one and the same log. Pure.
//!
//! First all claims where an event is are put together; two that disagree are a violation. Then every
//! history is followed from its beginning to its end.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use crate::history::{Head, History, Id, MayBeGone, Place, Record, Role};

/// The violations: what must not happen.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Kind {
    /// An event that was acknowledged is not there, or one that is there was left out.
    Lost,
    /// An event is there twice, or came twice.
    Doubled,
    /// Events came, or are kept, in another order than they were sent.
    Reordered,
    /// An event that was never sent.
    Phantom,
    /// Two events have the same position.
    Reused,
    /// A part of a batch is there, or it is not in a row.
    Torn,
    /// A gap that nothing explains, or with figures that are wrong.
    WrongGap,
    /// The topic is in another epoch.
    Epoch,
    /// A reader did not get to the end.
    Behind,
    /// A batch that was sent with a key was never acknowledged.
    Unanswered,
    /// Something that is never allowed.
    Fault,
}

#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) kind: Kind,
    topic: String,
    who: String,
    what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {} of {}: {}", self.kind, self.who, self.topic, self.what)
    }
}

/// Everything in these histories that must not happen.
pub(crate) fn check(histories: &[History], may_be_gone: &MayBeGone) -> Vec<Violation> {
    let mut topics: BTreeMap<&str, Vec<&History>> = BTreeMap::new();
    for history in histories {
        topics.entry(&history.head.topic).or_default().push(history);
    }
    let mut violations = Vec::new();
    for (name, histories) in topics {
        let gone = may_be_gone.get(name).copied().unwrap_or_default();
        violations.extend(Topic::new(&histories, gone).check());
    }
    violations
}

struct Topic<'a> {
    histories: Vec<&'a History>,
    may_be_gone: u64,
    epoch: Option<&'a str>,
    /// The events by offset, and the history that has each.
    at: BTreeMap<u64, (&'a Id, &'a str)>,
    of: HashMap<&'a Id, u64>,
    /// The first and the last offset of the final log.
    kept: (u64, u64),
    violations: Vec<Violation>,
}

impl<'a> Topic<'a> {
    fn new(histories: &[&'a History], may_be_gone: u64) -> Self {
        Self {
            histories: histories.to_vec(),
            may_be_gone,
            epoch: None,
            at: BTreeMap::new(),
            of: HashMap::new(),
            kept: (1, 0),
            violations: Vec::new(),
        }
    }

    fn check(mut self) -> Vec<Violation> {
        self.take_log();
        let histories = self.histories.clone();
        for history in &histories {
            self.take_claims(history);
        }
        for history in &histories {
            match history.head.role {
                Role::Publisher => self.follow_publisher(history),
                Role::Reader | Role::Log => self.follow_reader(history),
            }
        }
        self.check_order();
        self.check_phantoms();
        self.violations
    }

    fn found(&mut self, kind: Kind, head: &Head, what: String) {
        let (topic, who) = (head.topic.clone(), head.who.clone());
        self.violations.push(Violation { kind, topic, who, what });
    }

    /// Takes the log that was read after the last restart: it has precedence.
    fn take_log(&mut self) {
        let Some(log) = self.histories.iter().find(|history| history.head.role == Role::Log) else {
            let head = self.histories[0].head.clone();
            return self.found(Kind::Lost, &head, "nobody read it at the end".to_owned());
        };
        let log = *log;
        let begins = log.records.iter().find_map(|record| match record {
            Record::Begins(place) => Some(place),
            _ => None,
        });
        let Some(begins) = begins else {
            return self.found(Kind::Lost, &log.head, "it does not begin".to_owned());
        };
        if begins.offset > self.may_be_gone {
            self.found(Kind::Lost, &log.head, format!("it begins after {begins}"));
        }
        self.epoch = Some(&begins.epoch);
        self.kept = (begins.offset + 1, u64::MAX);
        self.take_claims(log);
        let offsets = log.records.iter().map(|record| match record {
            Record::Event { at: Some(at), .. } => at.offset,
            _ => begins.offset,
        });
        self.kept.1 = offsets.max().unwrap_or(begins.offset);
    }

    fn take_claims(&mut self, history: &'a History) {
        for record in &history.records {
            match record {
                Record::Event { at: Some(at), id } => self.claim(&history.head, at, id),
                Record::Acked { first, last, at: Some((from, to)) }
                    if to.offset.checked_sub(from.offset) != last.checked_sub(*first) =>
                {
                    let what = format!("{first} to {last} are {from} to {to}");
                    self.found(Kind::Torn, &history.head, what);
                }
                _ => {}
            }
        }
    }

    fn claim(&mut self, head: &'a Head, at: &'a Place, id: &'a Id) {
        self.same_epoch(head, at);
        if let Some((other, says)) = self.at.get(&at.offset).copied() {
            if other != id {
                let what = format!("{id} at {at}, where {other} is by {says}");
                self.found(Kind::Reused, head, what);
            }
            return;
        }
        if at.offset > self.kept.1 {
            let what = format!("{id} was at {at}, and the log ends at {}", self.kept.1);
            self.found(Kind::Lost, head, what);
        }
        if let Some(other) = self.of.get(id).copied() {
            let what = format!("{id} is at {at} and at {other}");
            return self.found(Kind::Doubled, head, what);
        }
        self.at.insert(at.offset, (id, &head.who));
        self.of.insert(id, at.offset);
    }

    fn same_epoch(&mut self, head: &Head, place: &'a Place) {
        let epoch = *self.epoch.get_or_insert(&place.epoch);
        if epoch != place.epoch {
            self.found(Kind::Epoch, head, format!("{place}, and the epoch is {epoch}"));
        }
    }

    fn follow_publisher(&mut self, history: &'a History) {
        let head = &history.head;
        for record in &history.records {
            match record {
                Record::Sent { first, last, keyed } => {
                    self.check_batch(head, *first, *last);
                    let answers = |record: &Record| matches!(record, Record::Acked { first: f, .. } if f == first);
                    if *keyed && !history.records.iter().any(answers) {
                        let what = format!("{first} to {last} were never acknowledged");
                        self.found(Kind::Unanswered, head, what);
                    }
                }
                Record::Acked { first, last, at } => {
                    self.check_acknowledged(head, (*first, *last), at.as_ref());
                }
                Record::Fault(fault) => self.found(Kind::Fault, head, fault.clone()),
                _ => {}
            }
        }
    }

    /// All of it in a row, or nothing.
    fn check_batch(&mut self, head: &'a Head, first: u64, last: u64) {
        let publisher = &head.who;
        let of = |number| Id { publisher: publisher.clone(), number };
        let places: Vec<_> =
            (first..=last).map(|number| self.of.get(&of(number)).copied()).collect();
        let known: Vec<u64> = places.iter().copied().flatten().collect();
        let is_whole = known.len() == places.len() || known.is_empty();
        let in_a_row = known.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        let may_be_gone = known.iter().all(|offset| *offset <= self.may_be_gone);
        if !in_a_row || !is_whole && !may_be_gone {
            self.found(Kind::Torn, head, format!("{first} to {last} are at {places:?}"));
        }
    }

    fn check_acknowledged(
        &mut self,
        head: &'a Head,
        numbers: (u64, u64),
        at: Option<&'a (Place, Place)>,
    ) {
        for number in numbers.0..=numbers.1 {
            let id = Id { publisher: head.who.clone(), number };
            let found = self.of.get(&id).copied();
            let Some((first, _)) = at else {
                if found.is_none() && self.covers_all() {
                    self.found(Kind::Lost, head, format!("{id} was acknowledged, and is nowhere"));
                }
                continue;
            };
            self.same_epoch(head, first);
            let at = first.at(first.offset + number - numbers.0);
            match found {
                Some(other) if other != at.offset => {
                    let what = format!("{id} was acknowledged at {at}, and is at {other}");
                    self.found(Kind::Doubled, head, what);
                }
                Some(_) => {}
                None if at.offset < self.kept.0 => {
                    // Nobody who could have seen it need have been there while it was kept.
                    if let Some((other, says)) = self.at.get(&at.offset).copied() {
                        let what = format!("{id} at {at}, where {other} is by {says}");
                        self.found(Kind::Reused, head, what);
                    }
                }
                None => {
                    let what = match self.at.get(&at.offset) {
                        Some((other, _)) => format!("there is {other}"),
                        None => "there is nothing".to_owned(),
                    };
                    let what = format!("{id} was acknowledged at {at}, where {what}");
                    self.found(Kind::Lost, head, what);
                }
            }
        }
    }

    /// Returns true if the event at each offset is known.
    fn covers_all(&self) -> bool {
        self.at.len() as u64 == self.kept.1
    }

    fn follow_reader(&mut self, history: &'a History) {
        let head = &history.head;
        let mut last: Option<Place> = None;
        for record in &history.records {
            match record {
                // Also heartbeats, and the first item of each connection.
                Record::Begins(place) | Record::Resumed(place) => {
                    self.same_epoch(head, place);
                    if last.as_ref().is_some_and(|last| last.offset != place.offset) {
                        let what = format!("stands at {place} after {}", last.clone().unwrap());
                        self.found(Kind::WrongGap, head, what);
                    }
                    last = Some(place.clone());
                }
                Record::Event { at, id } => {
                    last = self.follow_event(head, last.take(), at.as_ref(), id)
                }
                Record::Gap { reason, after, missed, resume } => {
                    self.same_epoch(head, resume);
                    let is_explained = reason == "retention"
                        && resume.offset <= self.may_be_gone
                        && resume.offset.checked_sub(after.offset) == *missed
                        && resume.offset > after.offset
                        && last.as_ref().is_none_or(|last| last == after);
                    if !is_explained {
                        let what = format!("{record:?} after {last:?}");
                        self.found(Kind::WrongGap, head, what);
                    }
                    last = Some(resume.clone());
                }
                Record::Fault(fault) => self.found(Kind::Fault, head, fault.clone()),
                Record::Sent { .. } | Record::Acked { .. } => {}
            }
        }
        let end = last.map_or(0, |last| last.offset);
        if end != self.kept.1 {
            let what = format!("it ends at {end}, and the log at {}", self.kept.1);
            self.found(Kind::Behind, head, what);
        }
    }

    /// Moves a reader on after this event.
    fn follow_event(
        &mut self,
        head: &'a Head,
        last: Option<Place>,
        at: Option<&Place>,
        id: &'a Id,
    ) -> Option<Place> {
        let Some(last) = last else {
            self.found(Kind::Fault, head, format!("{id} came before reading began"));
            return at.cloned();
        };
        let expected = last.offset + 1;
        // Without a position, the event itself contains its offset.
        let known = self.of.get(id).copied().unwrap_or(expected);
        let found = at.map_or(known, |at| at.offset);
        let kind = match found {
            _ if found == expected => return Some(last.at(expected)),
            _ if found > expected => Kind::Lost,
            _ if found == last.offset => Kind::Doubled,
            _ => Kind::Reordered,
        };
        self.found(kind, head, format!("{id} at {found} came after {last}"));
        Some(last.at(found))
    }

    /// A publisher sends one batch after the other.
    fn check_order(&mut self) {
        let mut newest: HashMap<&str, (u64, u64)> = HashMap::new();
        let mut wrong = Vec::new();
        for (offset, (id, says)) in &self.at {
            let place = (id.number, *offset);
            if let Some((before, at)) = newest.insert(&id.publisher, place)
                && before > id.number
            {
                wrong.push((*says, format!("{id} is at {offset}, and number {before} at {at}")));
            }
        }
        let topic = self.histories[0].head.topic.clone();
        let (kind, new) = (Kind::Reordered, |(who, what): (&str, String)| (who.to_owned(), what));
        for (who, what) in wrong.into_iter().map(new) {
            self.violations.push(Violation { kind, topic: topic.clone(), who, what });
        }
    }

    /// Checks that every received event was sent.
    fn check_phantoms(&mut self) {
        let mut sent: HashMap<&str, Vec<(u64, u64)>> = HashMap::new();
        for history in &self.histories {
            for record in &history.records {
                if let Record::Sent { first, last, .. } = record {
                    sent.entry(&history.head.who).or_default().push((*first, *last));
                }
            }
        }
        let was_sent = |id: &Id| {
            // In the order of their numbers.
            let batches = sent.get(&*id.publisher).map_or(&[][..], Vec::as_slice);
            let place = batches.partition_point(|(_, last)| *last < id.number);
            batches.get(place).is_some_and(|(first, _)| *first <= id.number)
        };
        let mut phantoms = Vec::new();
        for history in &self.histories {
            for record in &history.records {
                if let Record::Event { id, at } = record
                    && !was_sent(id)
                {
                    phantoms.push((&history.head, format!("{id} at {at:?} was never sent")));
                }
            }
        }
        for (head, what) in phantoms {
            self.found(Kind::Phantom, head, what);
        }
    }
}
