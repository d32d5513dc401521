//! `[[topic]]`: rules for topics.

use std::collections::BTreeMap;

use anemone_hub::{KeyWindow, Retention, Storage};
use anemone_server::{PublishRight, SlowReader, TopicPattern, TopicRule, TopicRules};

use super::document::{Entry, Node, Value};
use super::place::Located;
use super::table::Table;
use super::values::{
    AGE_MAX, DAY, MILLISECOND, SECOND, TIB, duration, number, parsed, size, text, word,
};

pub(super) const RIGHTS: [(&str, PublishRight); 3] = [
    ("nobody", PublishRight::Nobody),
    ("loopback", PublishRight::Loopback),
    ("anyone", PublishRight::Anyone),
];

/// Reads a rule; `None` after an error, or without a name.
pub(super) fn read(mut table: Table<'_>) -> Option<Located<TopicRule>> {
    let what = "the topic, such as \"wind\", or a pattern for all names that begin alike, such as \"scratch-*\"";
    let name = table.required::<TopicPattern>("name", what, parsed);
    let pattern = name.as_ref().map(|name| name.value.clone());
    // Without a name, the other keys are still checked, as for a pattern.
    let default = TopicRule::new(pattern.or_else(|| "unnamed*".parse().ok())?);
    let ends = [("gap", SlowReader::Gap), ("close", SlowReader::Close)];
    let storages = [("data", Storage::Data), ("memory", Storage::Memory)];
    let t = &mut table;
    let (retention, keys) = (default.retention, default.keys);
    let topics_max = t.optional("topics_max", number(1..=1_000_000));
    let bytes_total_max = t.optional("bytes_total_max", size(1..=1024 * TIB));
    let rule = TopicRule {
        publish: t.value("publish", default.publish, word(RIGHTS)),
        storage: t.value("storage", default.storage, word(storages)),
        retention: Retention {
            events_max: t.value("events_max", retention.events_max, number(1..=1_000_000_000_000)),
            bytes_max: t.value("bytes_max", retention.bytes_max, size(1..=1024 * TIB)),
            age_max: t.value("age_max", retention.age_max, duration(SECOND..=AGE_MAX)),
        },
        event_bytes_max: t.value(
            "event_bytes_max",
            default.event_bytes_max,
            size(1..=TopicRule::EVENT_BYTES_MAX as u64),
        ),
        keys: KeyWindow {
            keys_max: t.value("keys_max", keys.keys_max, number(0..=10_000_000)),
            age_max: t.value("keys_age_max", keys.age_max, duration(MILLISECOND..=DAY)),
        },
        slow_reader: t.value("slow_reader", default.slow_reader, word(ends)),
        units: t.value("units", default.units, units),
        topics_max: topics_max.as_deref().copied().unwrap_or(default.topics_max),
        bytes_total_max: bytes_total_max.as_deref().copied(),
        ..default
    };
    let of_many = [
        ("topics_max", topics_max.map(|value| value.place)),
        ("bytes_total_max", bytes_total_max.map(|value| value.place)),
    ];
    for (key, place) in of_many {
        if let (Some(place), Some(one)) = (place, rule.topics.name()) {
            let fault = format!(
                "topic.{key}: \"{one}\" is a single topic; this key needs a pattern, such as \"{one}-*\""
            );
            table.fault(&place, fault);
        }
    }
    let place = name.as_ref().map_or(table.place(), |name| &name.place);
    // The library checks each rule by itself.
    if let Err(error) = TopicRules::new([rule.clone()]) {
        table.fault(place, format!("topic: {error}"));
    }
    table.finish();
    name.map(|name| Located::new(rule, name.place))
}

/// Reads the units of fields: `{ speed = "m/s" }`.
fn units(node: &Node) -> Result<BTreeMap<String, String>, String> {
    let Value::Table(entries) = &node.content else {
        return Err("expected a table, such as { speed = \"m/s\" }".to_owned());
    };
    let unit = |entry: &Entry| {
        let unit = text(&entry.node).map_err(|fault| format!("{}: {fault}", entry.key))?;
        Ok((entry.key.clone(), unit))
    };
    entries.iter().map(unit).collect()
}
