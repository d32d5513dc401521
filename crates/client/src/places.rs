//! The places of a subscription: one in its only topic, or one in each of several topics. Pure.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::Arc;

use anemone_wire::{ReadItem, Token};

use crate::item::ServerItem;
use crate::refused::Refused;
use crate::start::Start;
use crate::tracker::{Step, Tracker};
use crate::{After, EndReason, Error, Item, Position};

/// The name of the index of topics. Its place is in each token of a server.
const INDEX: &str = "$topics";

/// The places of a subscription, across all its connections.
#[derive(Debug)]
pub(crate) enum Places {
    One(Tracker),
    Several(SeveralPlaces),
}

/// A tracker for each topic, and one token with all places.
#[derive(Debug)]
pub(crate) struct SeveralPlaces {
    trackers: HashMap<Arc<str>, Tracker>,
    /// `None` until the server has told where reading begins.
    token: Option<Token>,
    /// True if the subscription reads the index itself.
    reads_index: bool,
    topics_max: usize,
    repeated: u64,
}

impl Places {
    /// Returns the place to continue from, once there is one.
    pub(crate) fn start(&self) -> Option<Start> {
        match self {
            Self::One(tracker) => tracker.position().map(|at| After::Position(at).into()),
            Self::Several(several) => several.token.clone().map(Start::Token),
        }
    }

    /// Returns the number of events that the server sent again, over all connections.
    pub(crate) fn repeated(&self) -> u64 {
        match self {
            Self::One(tracker) => tracker.repeated(),
            Self::Several(several) => several.repeated,
        }
    }

    /// Begins a new connection. On it, the server repeats the items that were not reported.
    pub(crate) fn reconnect(&mut self) {
        match self {
            Self::One(tracker) => tracker.reconnect(),
            Self::Several(several) => several.trackers.values_mut().for_each(Tracker::reconnect),
        }
    }

    /// Takes an item of the server, and appends the items to report to `items`.
    pub(crate) fn receive(
        &mut self,
        said: ServerItem,
        items: &mut VecDeque<Item>,
    ) -> Result<Step, Error> {
        match (self, said) {
            (Self::One(tracker), ServerItem::One(item)) => Ok(tracker.receive(item, items)?),
            (Self::Several(several), ServerItem::Several(item)) => several.receive(item, items),
            // No transport mixes them.
            _ => Ok(Step::Stay),
        }
    }

    /// Returns the end of the topic, if the refusal means that the only topic has ended. A subscription to several
    /// topics does not end.
    pub(crate) fn end_of(&self, refused: &Refused, was_there: bool) -> Option<Item> {
        match self {
            Self::One(tracker) => Some(tracker.end(refused.end_reason(was_there)?)),
            Self::Several(_) => None,
        }
    }
}

impl SeveralPlaces {
    pub(crate) fn new(topics: &[String], token: Option<Token>, topics_max: usize) -> Self {
        let position = |name: &str| match token.as_ref()?.get(name)? {
            After::Position(position) => Some(position),
            _ => None,
        };
        let names = token.iter().flat_map(Token::names);
        let trackers =
            names.filter_map(|name| Some((name.into(), Tracker::resume(position(name)?))));
        let trackers = trackers.collect();
        let reads_index = topics.iter().any(|name| name == INDEX);
        Self { trackers, token, reads_index, topics_max, repeated: 0 }
    }

    fn receive(&mut self, said: ReadItem, items: &mut VecDeque<Item>) -> Result<Step, Error> {
        match said {
            ReadItem::At(token) => self.on_places(token, items),
            ReadItem::Of { topic, item: anemone_wire::Item::End(reason) } => {
                self.end(&topic, reason, items);
                Ok(Step::Stay)
            }
            ReadItem::Of { topic, item } => self.on_item(&topic, item, items),
            ReadItem::Failed(problem) => {
                Err(Error::Refused(Box::new(Refused::of_problem(&problem))))
            }
        }
    }

    /// Takes an event or a notice of a topic.
    fn on_item(
        &mut self,
        topic: &str,
        said: anemone_wire::Item<'static>,
        items: &mut VecDeque<Item>,
    ) -> Result<Step, Error> {
        let name = self.name(topic)?;
        let tracker = self.trackers.entry(Arc::clone(&name)).or_default();
        let (before, mut told) = (tracker.repeated(), VecDeque::new());
        let step = tracker.receive(said, &mut told);
        self.repeated += tracker.repeated() - before;
        if let Some(position) = tracker.position() {
            self.token.get_or_insert_default().set(topic, After::Position(position));
        }
        // The token tells where reading begins.
        let told = told.into_iter().filter(|item| !matches!(item, Item::Position(_)));
        items.extend(told.map(|item| of(&name, item)));
        Ok(step?)
    }

    /// Takes the places that the server has reached. Forgets the topics that the token no longer names.
    fn on_places(&mut self, mut token: Token, items: &mut VecDeque<Item>) -> Result<Step, Error> {
        let before = self.token.clone();
        let is_read = |name: &&str| self.reads_index || *name != INDEX;
        let names: Vec<_> = token.names().filter(is_read).map(str::to_owned).collect();
        for topic in &names {
            if let Some(After::Position(found)) = token.get(topic) {
                self.on_item(topic, anemone_wire::Item::Begin(found), items)?;
                // It may be behind what was told.
                let position = self.trackers.get(topic.as_str()).and_then(Tracker::position);
                token.set(topic, After::Position(position.unwrap_or(found)));
            }
        }
        self.trackers.retain(|name, _| token.get(name).is_some());
        if before.as_ref() == Some(&token) {
            return Ok(Step::Stay);
        }
        items.push_back(Item::Token(token.clone()));
        self.token = Some(token);
        Ok(Step::Forward)
    }

    /// Ends a topic. If the reader was too slow, the topic continues after the gap once the server reads the topic
    /// again.
    fn end(&mut self, topic: &str, reason: EndReason, items: &mut VecDeque<Item>) {
        let (name, tracker) = match self.trackers.remove_entry(topic) {
            Some(known) => known,
            None => (topic.into(), Tracker::default()),
        };
        let resume: Option<Position> = match &reason {
            EndReason::TooSlow { gap } => gap.as_ref().map(|gap| gap.resume),
            _ => None,
        };
        items.push_back(of(&name, tracker.end(reason)));
        let token = self.token.get_or_insert_default();
        match resume {
            Some(resume) => {
                token.set(topic, After::Anew(resume));
                self.trackers.insert(name, Tracker::resume(resume));
            }
            None => token.remove(topic),
        }
    }

    /// Returns the shared name of a topic. It is an error if there are too many topics.
    fn name(&self, topic: &str) -> Result<Arc<str>, Error> {
        match self.trackers.get_key_value(topic) {
            Some((name, _)) => Ok(Arc::clone(name)),
            None if self.trackers.len() >= self.topics_max => {
                Err(Error::TooManyTopics { limit: self.topics_max })
            }
            None => Ok(topic.into()),
        }
    }
}

fn of(topic: &Arc<str>, item: Item) -> Item {
    Item::Of { topic: Arc::clone(topic), item: Box::new(item) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn several(token: Option<&str>, topics_max: usize) -> Places {
        let token = token.map(|token| token.parse().unwrap());
        Places::Several(SeveralPlaces::new(&["a".to_owned(), "b*".to_owned()], token, topics_max))
    }

    /// Returns the reported items for these lines, and the token to continue from.
    fn told(places: &mut Places, lines: &[&str]) -> (Vec<String>, String) {
        let mut items = VecDeque::new();
        for line in lines {
            let item = ReadItem::parse(line.as_bytes()).unwrap().unwrap();
            if let Err(error) = places.receive(ServerItem::Several(item), &mut items) {
                items.push_back(Item::End { reason: EndReason::Other(error.to_string()) });
            }
        }
        let Some(Start::Token(token)) = places.start() else { panic!() };
        (items.iter().map(|item| item.to_json().unwrap()).collect(), token.to_string())
    }

    #[test]
    fn each_topic_goes_on_where_it_was_and_the_token_says_so() {
        let mut places = several(None, 9);
        let begin = r#"{"position":"$topics:z-4,a:2,b1:0"}"#;
        let event = r#"{"topic":"a","position":"z-3","data":1}"#;
        let (items, token) = told(&mut places, &[begin, event, event, begin]);
        assert_eq!((items, places.repeated()), (vec![begin.to_owned(), event.to_owned()], 1));
        assert_eq!(token, "$topics:z-4,a:3,b1:0");
        let later = r#"{"topic":"a","position":"z-4","data":1}"#;
        let other = r#"{"topic":"b1","position":"z-1","data":1}"#;
        let (items, token) = told(&mut places, &[later, other]);
        assert_eq!((items.len(), &*token), (2, "$topics:z-4,a:4,b1:1"));
        // A connection that goes on with the same token tells nothing of it.
        assert!(told(&mut places, &[r#"{"position":"$topics:z-4,a:4,b1:1"}"#]).0.is_empty());
        let joined = r#"{"position":"$topics:z-5,a:4,b1:1,b2:0"}"#;
        assert_eq!(told(&mut places, &[joined]).0, [joined]);
    }

    #[test]
    fn a_topic_leaves_or_goes_on_after_a_gap() {
        let mut places = several(Some("$topics:z-4,a:2,b1:3"), 9);
        let deleted = r#"{"topic":"b1","end":{"reason":"deleted"}}"#;
        assert_eq!(
            told(&mut places, &[deleted]),
            (vec![deleted.to_owned()], "$topics:z-4,a:2".to_owned())
        );
        let gap = r#"{"reason":"retention","after":"z-2","missed":6,"resume":"z-8"}"#;
        let slow = format!(r#"{{"topic":"a","end":{{"reason":"too-slow","gap":{gap}}}}}"#);
        let next = r#"{"topic":"a","position":"z-9","data":1}"#;
        assert_eq!(
            told(&mut places, &[&slow]),
            (vec![slow.clone()], "$topics:z-4,a:8~".to_owned())
        );
        assert_eq!(
            told(&mut places, &[next]),
            (vec![next.to_owned()], "$topics:z-4,a:9".to_owned())
        );
        let gap = format!(r#"{{"topic":"a","gap":{}}}"#, gap.replace("z-8", "z-10"));
        let (items, token) = told(&mut places, &[&gap]);
        assert!(items[0].contains(r#""after":"z-9","missed":1"#), "{items:?}");
        assert_eq!(token, "$topics:z-4,a:10");
    }

    #[test]
    fn a_hole_and_too_many_topics_are_errors() {
        let mut places = several(Some("$topics:z-4,a:2,b1:3"), 3);
        let hole = r#"{"topic":"a","position":"z-5","data":1}"#;
        let (items, token) = told(&mut places, &[hole]);
        assert!(items[0].contains("arrived after z-2"), "{items:?}");
        assert_eq!(token, "$topics:z-4,a:2,b1:3");
        let (items, token) = told(&mut places, &[hole]);
        assert!(items[0].contains(r#"{"topic":"a","gap":{"reason":"unannounced""#), "{items:?}");
        assert_eq!((items.len(), &*token), (2, "$topics:z-4,a:5,b1:3"));
        let one_more = r#"{"topic":"b2","position":"z-1","data":1}"#;
        assert!(told(&mut places, &[one_more]).0[0].contains("more than 3 topics"));
        let failed = r#"{"end":{"reason":"failed","problem":{"type":"/problems/token-too-long","title":"T","status":400}}}"#;
        assert!(told(&mut places, &[failed]).0[0].contains("server answered 400 T"));
    }
}
