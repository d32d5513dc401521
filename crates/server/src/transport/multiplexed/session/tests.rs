use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn session(requests_max: usize) -> Session<u32> {
    let limits = Limits {
        multiplexed_requests_max: requests_max,
        multiplexed_line_bytes_max: 40,
        ..Limits::default()
    };
    Session::new(&limits, &Memory::default())
}

fn id(text: &str) -> Id {
    text.parse().unwrap()
}

/// The id of the refusal, and its status.
fn refused(step: &Step<'_>) -> Option<(String, u16)> {
    let Step::Refuse(id, _, problem) = step else { return None };
    let body: serde_json::Value = serde_json::from_str(&problem.to_json()).unwrap();
    let id = id.as_ref().map_or("-", Id::as_str).to_owned();
    Some((id, body["status"].as_u64().unwrap() as u16))
}

fn refusal(session: &Session<u32>, text: &str) -> (String, u16) {
    refused(&session.receive(text.as_bytes())).unwrap_or_else(|| panic!("{text} was taken"))
}

fn opens(session: &mut Session<u32>, text: &str) -> bool {
    let Step::Begin(id, _) = session.receive(text.as_bytes()) else { return false };
    session.open(id, 0);
    true
}

#[test]
fn an_id_is_free_again_once_its_request_is_over() {
    let mut session = session(10);
    assert!(opens(&mut session, "GET a /x"));
    assert_eq!(refusal(&session, "GET a /y"), ("-".into(), 400), "told of a it would end it");
    assert_eq!(session.receive(b"CANCEL a"), Step::Cancel(id("a")));
    assert_eq!(session.end(id("a")), Some(0));
    assert_eq!(session.receive(b"CANCEL a"), Step::Pass, "it has had its final status");
    assert!(opens(&mut session, "GET a /y"));
}

#[test]
fn what_cannot_be_understood_is_told_of_its_id_unless_that_is_in_use() {
    let mut session = session(10);
    assert_eq!(refusal(&session, "get a /x"), ("a".into(), 400));
    assert_eq!(refusal(&session, "nonsense"), ("-".into(), 400));
    assert!(opens(&mut session, "GET a /x"));
    assert_eq!(refusal(&session, "get a /x"), ("-".into(), 400));
    assert_eq!(session.receive(b"CANCEL a"), Step::Cancel(id("a")), "it goes on");
}

#[test]
fn one_more_request_than_allowed_is_refused_until_one_is_over() {
    let mut session = session(2);
    assert!(opens(&mut session, "GET a /x") && opens(&mut session, "GET b /x"));
    assert_eq!(refusal(&session, "GET c /x"), ("c".into(), 429));
    assert_eq!(session.receive(b"CANCEL a"), Step::Cancel(id("a")), "cancelling is always allowed");
    session.end(id("a"));
    assert!(opens(&mut session, "GET c /x"));
}

#[test]
fn turns_are_taken_in_order_and_who_has_more_goes_to_the_end() {
    let mut session = session(10);
    for text in ["GET c /", "GET a /", "GET b /"] {
        opens(&mut session, text);
    }
    let turn = |session: &mut Session<u32>| session.take_turn().map(|id| id.as_str().to_owned());
    assert_eq!(turn(&mut session).as_deref(), Some("c"));
    session.give_turn(id("c"));
    session.give_turn(id("c"));
    session.end(id("a"));
    assert_eq!(turn(&mut session).as_deref(), Some("b"));
    assert_eq!(turn(&mut session).as_deref(), Some("c"));
    assert_eq!(turn(&mut session), None);
}

#[test]
fn a_turn_of_one_that_is_over_is_not_inherited_twice() {
    let mut session = session(10);
    opens(&mut session, "GET a /");
    session.end(id("a"));
    opens(&mut session, "GET a /");
    assert_eq!(session.take_turn(), Some(id("a")));
    assert_eq!(session.take_turn(), None);
}

#[derive(Clone, Debug)]
enum Act {
    Receive(String),
    End(u8),
    Turn,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => "(GET|POST|CANCEL|get) [a-f] ?(/x)?".prop_map(Act::Receive),
        1 => "[ -~\n]{0,50}".prop_map(Act::Receive),
        2 => (b'a'..=b'f').prop_map(Act::End),
        2 => Just(Act::Turn),
    ];
    prop::collection::vec(act, 0..80)
}

proptest! {
    /// For any sequence, a request begins only with a free id and within the limit, no id gets an end without a
    /// request, and every open request has had a turn in the end.
    #[test]
    fn ids_limits_and_turns_hold_for_any_sequence(acts in acts()) {
        const REQUESTS_MAX: usize = 3;
        let mut session = session(REQUESTS_MAX);
        let (mut open, mut waiting) = (BTreeSet::new(), BTreeSet::new());
        for act in acts {
            match act {
                Act::Receive(text) => match session.receive(text.as_bytes()) {
                    Step::Begin(id, _) => {
                        prop_assert!(open.len() < REQUESTS_MAX && open.insert(id));
                        waiting.insert(id);
                        session.open(id, 0);
                    }
                    Step::Cancel(id) => {
                        prop_assert!(open.remove(&id));
                        waiting.remove(&id);
                        session.end(id);
                    }
                    Step::Refuse(Some(id), ..) => {
                        prop_assert!(!open.contains(&id) && !text.starts_with("CANCEL "));
                    }
                    Step::Refuse(None, ..) | Step::Pass => {}
                },
                Act::End(letter) => {
                    let id = id(&char::from(letter).to_string());
                    prop_assert_eq!(session.end(id).is_some(), open.remove(&id));
                    waiting.remove(&id);
                }
                Act::Turn => match session.take_turn() {
                    Some(id) => prop_assert!(waiting.remove(&id)),
                    None => prop_assert!(waiting.is_empty()),
                },
            }
            prop_assert_eq!(session.works().map(|(id, _)| id).collect::<BTreeSet<_>>(), open.clone());
        }
        while let Some(id) = session.take_turn() {
            prop_assert!(waiting.remove(&id));
        }
        prop_assert!(waiting.is_empty());
    }
}
