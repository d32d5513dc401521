//! The events of a collection's topic, and their data: `{"created":RECORD}`. Pure.

use anemone_hub::{Data, DataError};
use serde_json::Value;

use crate::{Fields, Tag};

/// A change of a record, or its repetition.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RecordChange {
    pub(super) kind: RecordChangeKind,
    pub(super) record: Fields,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum RecordChangeKind {
    Created,
    Updated,
    Patched,
    Removed,
    /// The record is published again before its newest event is evicted; it stays the version that it was.
    Kept(Tag),
}

impl RecordChangeKind {
    fn name(&self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Patched => "patched",
            Self::Removed => "removed",
            Self::Kept(_) => "kept",
        }
    }
}

impl RecordChange {
    pub(super) fn id(&self) -> &str {
        self.record.get("id").and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn to_data(&self) -> Result<Data, DataError> {
        let (name, record) = (self.kind.name(), Data::json(&self.record)?);
        Ok(match &self.kind {
            RecordChangeKind::Kept(tag) => {
                Data::object(&[(name, &record), ("of", &Data::json(tag.as_str())?)])
            }
            _ => Data::object(&[(name, &record)]),
        })
    }

    pub(super) fn parse(data: &Data) -> Option<Self> {
        let mut members: Fields = serde_json::from_str(data.as_str()).ok()?;
        let of = members.remove("of");
        let (name, record) = members.into_iter().next()?;
        let Value::Object(record) = record else { return None };
        record.get("id")?.as_str()?;
        let kind = match &*name {
            "created" => RecordChangeKind::Created,
            "updated" => RecordChangeKind::Updated,
            "patched" => RecordChangeKind::Patched,
            "removed" => RecordChangeKind::Removed,
            "kept" => RecordChangeKind::Kept(Tag::new(of?.as_str()?)?),
            _ => return None,
        };
        Some(Self { kind, record })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_is_read_as_it_was_written_and_nothing_else_is_a_change() {
        let record = json!({"id": "7", "text": "a"}).as_object().unwrap().clone();
        let kept = RecordChangeKind::Kept(Tag::new("ya-3").unwrap());
        for (kind, text) in [
            (RecordChangeKind::Created, r#"{"created":{"id":"7","text":"a"}}"#),
            (RecordChangeKind::Updated, r#"{"updated":{"id":"7","text":"a"}}"#),
            (RecordChangeKind::Patched, r#"{"patched":{"id":"7","text":"a"}}"#),
            (RecordChangeKind::Removed, r#"{"removed":{"id":"7","text":"a"}}"#),
            (kept, r#"{"kept":{"id":"7","text":"a"},"of":"ya-3"}"#),
        ] {
            let change = RecordChange { kind, record: record.clone() };
            let data = change.to_data().unwrap();
            assert_eq!(data.as_str(), text);
            assert_eq!(RecordChange::parse(&data), Some(change));
        }
    }

    #[test]
    fn a_record_of_a_hundred_levels_is_read_again_and_a_deeper_one_is_never_written() {
        let nested =
            |depth| (1..depth).fold(json!({}), |value, _| json!({ "id": "7", "a": value }));
        for (depth, is_written) in [(100, true), (101, false)] {
            let record = nested(depth).as_object().unwrap().clone();
            let change = RecordChange { kind: RecordChangeKind::Created, record };
            let data = change.to_data().ok();
            assert_eq!(data.is_some(), is_written);
            assert_eq!(
                data.and_then(|data| RecordChange::parse(&data)),
                is_written.then_some(change)
            );
        }
        for text in [
            "1",
            "{}",
            r#"{"created":1}"#,
            r#"{"created":{}}"#,
            r#"{"other":{"id":"7"}}"#,
            r#"{"kept":{"id":"7"}}"#,
        ] {
            assert_eq!(RecordChange::parse(&Data::parse(text).unwrap()), None, "{text}");
        }
    }
}
