//! Values of all kinds, and cuts of a stream, for property tests.

use proptest::prelude::*;

use crate::{EndReason, Epoch, Gap, GapReason, Item, Page, PageEvent, Position, UnixTime};

pub(crate) fn position() -> impl Strategy<Value = Position> {
    let position = |(bits, offset)| Position { epoch: Epoch::from_bits(bits), offset };
    any::<(u64, u64)>().prop_map(position)
}

pub(crate) fn gap() -> impl Strategy<Value = Gap> {
    let word = "(retention|damaged|epoch|unannounced|.{0,9})".prop_map(GapReason::from);
    (word, position(), any::<Option<u64>>(), position())
        .prop_map(|(reason, after, missed, resume)| Gap { reason, after, missed, resume })
}

fn time() -> impl Strategy<Value = Option<UnixTime>> {
    any::<Option<u64>>().prop_map(|micros| micros.map(UnixTime::from_micros))
}

fn data() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("null".to_owned()),
        Just(r#"{"speed": 2.740}"#.to_owned()),
        ".{0,20}".prop_map(|text| serde_json::Value::from(text).to_string()),
    ]
}

/// All but [`Item::Quiet`], which is read as [`Item::Begin`].
pub(crate) fn item() -> impl Strategy<Value = Item<'static>> {
    prop_oneof![
        position().prop_map(Item::Begin),
        (position(), time(), data()).prop_map(|(position, time, data)| Item::Event {
            position,
            time,
            data: data.into()
        }),
        gap().prop_map(Item::Gap),
        any::<u64>().prop_map(|count| Item::Skipped { count, last: None }),
        end().prop_map(Item::End),
    ]
}

fn end() -> impl Strategy<Value = EndReason> {
    prop_oneof![
        Just(EndReason::Deleted),
        Just(EndReason::Ended),
        prop::option::of(gap()).prop_map(|gap| EndReason::TooSlow { gap }),
        "[a-c]{1,9}".prop_map(EndReason::Other),
    ]
}

pub(crate) fn page() -> impl Strategy<Value = Page<Vec<PageEvent<'static>>>> {
    let events = prop::collection::vec((time(), data()), 0..4);
    let told = (prop::option::of(gap()), any::<u64>(), prop::option::of(end()));
    (position(), any::<u64>(), told, events).prop_map(
        |(next, first, (gap, skipped, end), events)| {
            let begin = next.offset.saturating_sub(events.len() as u64);
            let next = next.at(begin + events.len() as u64);
            let event = |(offset, (time, data)): (u64, (_, String))| PageEvent {
                offset,
                time,
                data: data.into(),
            };
            let events = (begin + 1..).zip(events).map(event).collect();
            Page { first, next, gap, skipped, end, events }
        },
    )
}

/// The places to cut at, as parts of the whole.
pub(crate) fn cuts() -> impl Strategy<Value = Vec<prop::sample::Index>> {
    prop::collection::vec(any::<prop::sample::Index>(), 0..12)
}

/// The pieces between the cuts.
pub(crate) fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect()
}
