//! Hand-made histories, good and bad.

use super::*;

fn id(text: &str) -> Id {
    let (publisher, number) = text.split_at(1);
    Id { publisher: publisher.to_owned(), number: number.parse().unwrap() }
}

fn place(text: &str) -> Place {
    text.parse().unwrap()
}

fn history(who: &str, role: Role, records: Vec<Record>) -> History {
    History { head: Head { who: who.to_owned(), topic: "t".to_owned(), role }, records }
}

fn sent(first: u64, last: u64) -> Record {
    Record::Sent { first, last, keyed: false }
}

fn acked(first: u64, last: u64, at: &str, to: &str) -> Record {
    Record::Acked { first, last, at: Some((place(at), place(to))) }
}

fn gap(after: &str, missed: u64, resume: &str) -> Record {
    let (after, resume) = (place(after), place(resume));
    Record::Gap { reason: "retention".to_owned(), after, missed: Some(missed), resume }
}

/// The records of reading from the position of epoch `e` before the first: `a1@3` is an event at 3, `a1` one without a
/// position.
fn read(begins: u64, events: &str) -> Vec<Record> {
    let mut records = vec![Record::Begins(place("e-0").at(begins))];
    records.extend(events.split_whitespace().map(|event| match event.split_once('@') {
        Some((event, at)) => {
            Record::Event { at: Some(place("e-0").at(at.parse().unwrap())), id: id(event) }
        }
        None => Record::Event { at: None, id: id(event) },
    }));
    records
}

/// Publisher `a` sent 1, 2 and 3 and received their positions; `b` sent 1 and has no answer.
fn publishers() -> Vec<History> {
    let a = vec![
        sent(1, 1),
        acked(1, 1, "e-1", "e-1"),
        sent(2, 3),
        acked(2, 3, "e-3", "e-4"),
        acked(2, 3, "e-3", "e-4"),
    ];
    vec![history("a", Role::Publisher, a), history("b", Role::Publisher, vec![sent(1, 1)])]
}

const GOOD: &str = "a1@1 b1@2 a2@3 a3@4";

fn log(records: Vec<Record>) -> History {
    history("log", Role::Log, records)
}

fn reader(records: Vec<Record>) -> History {
    history("reader", Role::Reader, records)
}

/// Returns the kinds of the findings for these histories and the publishers.
fn kinds(others: Vec<History>, may_be_gone: u64) -> Vec<Kind> {
    let histories = [publishers(), others].concat();
    let violations = check(&histories, &MayBeGone::from([("t".to_owned(), may_be_gone)]));
    let mut kinds: Vec<_> = violations.iter().map(|violation| violation.kind).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

/// The same with a log that is right.
fn of_reader(records: Vec<Record>) -> Vec<Kind> {
    kinds(vec![log(read(0, GOOD)), reader(records)], 0)
}

/// The same with this log alone.
fn of_log(events: &str) -> Vec<Kind> {
    kinds(vec![log(read(0, events))], 0)
}

#[test]
fn what_is_as_it_should_be_is_not_complained_about() {
    assert_eq!(of_log(GOOD), []);
    assert_eq!(of_reader(read(0, GOOD)), []);
    assert_eq!(of_reader(read(0, "a1 b1 a2 a3")), [], "without positions");
    assert_eq!(of_reader(read(2, "a2@3 a3@4")), [], "from the middle on");
    let mut resumed = read(0, "a1@1 b1@2");
    resumed.push(Record::Resumed(place("e-2")));
    resumed.extend(read(2, "a2@3 a3@4"));
    assert_eq!(of_reader(resumed), []);
}

#[test]
fn an_event_without_an_answer_may_be_missing() {
    let a = vec![sent(1, 1), acked(1, 1, "e-1", "e-1")];
    let publishers =
        [history("a", Role::Publisher, a), history("b", Role::Publisher, vec![sent(1, 1)])];
    let histories = [publishers.to_vec(), vec![log(read(0, "a1@1"))]].concat();
    assert_eq!(check(&histories, &MayBeGone::new()).len(), 0);
}

#[test]
fn a_lost_event_is_found() {
    // Cut off at the end, left out, and replaced by an event that was not acknowledged.
    assert_eq!(of_log("a1@1 b1@2"), [Kind::Lost]);
    assert_eq!(of_log("a1@1 a2@3 a3@4"), [Kind::Lost]);
    assert_eq!(of_log("b1@1 b1@2 a2@3 a3@4"), [Kind::Lost, Kind::Doubled]);
    // A reader saw it, and it is gone.
    let seen = reader(read(0, "a1@1 b1@2 a2@3 a3@4 b2@5"));
    assert!(kinds(vec![log(read(0, GOOD)), seen], 0).contains(&Kind::Lost));
    assert_eq!(of_reader(read(0, "a1@1 a2@3 a3@4")), [Kind::Lost]);
    assert_eq!(of_reader(read(0, "a1 a2 a3")), [Kind::Lost], "without positions");
}

#[test]
fn one_that_was_acknowledged_without_a_position_is_missed_too() {
    let plain = |events: &str| {
        let acked = Record::Acked { first: 1, last: 1, at: None };
        let publisher = history("c", Role::Publisher, vec![sent(1, 1), acked]);
        kinds(vec![log(read(0, events)), publisher], 0)
    };
    assert_eq!(plain("a1@1 b1@2 a2@3 a3@4 c1@5"), []);
    assert_eq!(plain(GOOD), [Kind::Lost]);
}

#[test]
fn a_doubled_event_is_found() {
    assert_eq!(of_log("a1@1 b1@2 a2@3 a3@4 b1@5"), [Kind::Doubled]);
    assert_eq!(of_reader(read(0, "a1@1 b1@2 b1@2 a2@3 a3@4")), [Kind::Doubled]);
    assert_eq!(of_reader(read(0, "a1 b1 b1 a2 a3")), [Kind::Doubled], "without positions");
    let twice = vec![sent(1, 1), acked(1, 1, "e-1", "e-1"), acked(1, 1, "e-2", "e-2")];
    let histories = [history("a", Role::Publisher, twice), log(read(0, "a1@1"))];
    let violations = check(&histories, &MayBeGone::new());
    assert_eq!(violations.iter().map(|found| found.kind).collect::<Vec<_>>(), [Kind::Doubled]);
}

#[test]
fn reordered_events_are_found() {
    assert_eq!(of_reader(read(0, "a1@1 b1@2 a2@3 b1@2 a2@3 a3@4")), [Kind::Reordered]);
    let a = vec![sent(1, 1), sent(2, 2)];
    let histories = [history("a", Role::Publisher, a), log(read(0, "a2@1 a1@2"))];
    let violations = check(&histories, &MayBeGone::new());
    assert_eq!(violations.iter().map(|found| found.kind).collect::<Vec<_>>(), [Kind::Reordered]);
}

#[test]
fn an_event_that_nobody_sent_is_found() {
    assert_eq!(of_log("a1@1 b1@2 a2@3 a3@4 b2@5"), [Kind::Phantom]);
    assert_eq!(of_log("a1@1 b1@2 a2@3 a3@4 z1@5"), [Kind::Phantom]);
}

#[test]
fn a_position_that_is_given_to_other_data_is_found() {
    assert_eq!(of_reader(read(0, "a1@1 a2@2 a2@3 a3@4")), [Kind::Reused]);
    // No longer kept, so only the readers have them.
    let others = vec![log(read(2, "a2@3 a3@4")), reader(read(0, "b1@1 b1@2 a2@3 a3@4"))];
    assert!(kinds(others, 2).contains(&Kind::Reused));
}

#[test]
fn a_batch_that_is_torn_is_found() {
    let a = vec![Record::Sent { first: 1, last: 2, keyed: false }, sent(3, 3)];
    for (events, expected) in [
        ("a1@1 a2@2", vec![]),
        ("", vec![]),
        ("a1@1", vec![Kind::Torn]),
        ("a1@1 b1@2 a2@3", vec![Kind::Torn]),
    ] {
        let b = history("b", Role::Publisher, vec![sent(1, 1)]);
        let histories = [history("a", Role::Publisher, a.clone()), b, log(read(0, events))];
        let violations = check(&histories, &MayBeGone::new());
        assert_eq!(
            violations.iter().map(|found| found.kind).collect::<Vec<_>>(),
            expected,
            "{events}"
        );
    }
}

#[test]
fn a_gap_is_right_only_where_retention_explains_it() {
    let with_gap = |gap: Record, may_be_gone: u64| {
        let mut records = vec![Record::Begins(place("e-0")), gap];
        records.extend(read(2, "a2@3 a3@4").split_off(1));
        kinds(vec![log(read(2, "a2@3 a3@4")), reader(records)], may_be_gone)
    };
    assert_eq!(with_gap(gap("e-0", 2, "e-2"), 2), []);
    assert_eq!(with_gap(gap("e-0", 2, "e-2"), 1), [Kind::Lost, Kind::WrongGap], "nothing is gone");
    assert_eq!(with_gap(gap("e-0", 3, "e-2"), 2), [Kind::WrongGap], "a wrong number");
    assert_eq!(with_gap(gap("e-1", 1, "e-2"), 2), [Kind::WrongGap], "from elsewhere");
    let Record::Gap { after, missed, resume, .. } = gap("e-0", 2, "e-2") else { unreachable!() };
    let epoch = Record::Gap { reason: "epoch".to_owned(), after, missed, resume };
    assert_eq!(with_gap(epoch, 2), [Kind::WrongGap], "another reason");
}

#[test]
fn a_position_that_moves_by_itself_is_found() {
    let mut records = read(0, "a1@1");
    records.push(Record::Begins(place("e-2")));
    records.extend(read(2, "a2@3 a3@4").split_off(1));
    assert_eq!(of_reader(records), [Kind::WrongGap]);
}

#[test]
fn another_epoch_is_found() {
    let mut records = read(0, "a1@1 b1@2");
    records.push(Record::Event { at: Some(place("f-3")), id: id("a2") });
    records.push(Record::Event { at: Some(place("e-4")), id: id("a3") });
    assert_eq!(of_reader(records), [Kind::Epoch]);
}

#[test]
fn one_who_stays_behind_or_without_an_answer_or_hears_nonsense_is_found() {
    assert_eq!(of_reader(read(0, "a1@1 b1@2 a2@3")), [Kind::Behind]);
    let keyed = vec![Record::Sent { first: 1, last: 1, keyed: true }];
    let others = vec![log(read(0, GOOD)), history("c", Role::Publisher, keyed)];
    assert_eq!(kinds(others, 0), [Kind::Unanswered]);
    let fault = [read(0, GOOD), vec![Record::Fault("418".to_owned())]].concat();
    assert_eq!(of_reader(fault), [Kind::Fault]);
    assert_eq!(kinds(vec![], 0), [Kind::Lost], "nobody read the log");
}
