//! Filters: which records a query matches.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use crate::Fields;

/// The conditions on a record. The default matches every record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// All of these must hold.
    pub(super) conditions: Vec<FieldCondition>,
    /// Lists of filters: at least one of each list must match.
    pub(super) alternatives: Vec<Vec<Self>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct FieldCondition {
    pub(super) field: String,
    pub(super) test: Test,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    /// The field compares to the value in one of these ways.
    Compares(&'static [Ordering], Value),
    /// The field is one of these.
    In(Vec<Value>),
    /// The field is none of these, or missing.
    NotIn(Vec<Value>),
}

impl Filter {
    /// Returns true if a record with these members matches.
    #[must_use]
    pub fn matches(&self, record: &Fields) -> bool {
        self.conditions.iter().all(|condition| condition.holds(record))
            && self.alternatives.iter().all(|any| any.iter().any(|filter| filter.matches(record)))
    }
}

impl FieldCondition {
    fn holds(&self, record: &Fields) -> bool {
        let value = record.get(&self.field);
        let is = |other: &Value| {
            value.is_some_and(|value| compare(value, other) == Some(Ordering::Equal))
        };
        match &self.test {
            Test::Compares(ways, other) => {
                let way = value.and_then(|value| compare(value, other));
                way.is_some_and(|way| ways.contains(&way))
            }
            Test::In(others) => others.iter().any(is),
            Test::NotIn(others) => !others.iter().any(is),
        }
    }
}

/// Compares numbers as numbers and text by code points; `None` if the values have no order.
pub(super) fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        // UTF-8 has the order of code points.
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        (Value::Number(one), Value::Number(other)) => compare_numbers(one, other),
        (Value::Bool(one), Value::Bool(other)) => Some(one.cmp(other)),
        _ => None,
    }
}

/// Compares exactly, so that the order is total.
fn compare_numbers(one: &Number, other: &Number) -> Option<Ordering> {
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        (Some(one), None) => Some(compare_mixed(one, other.as_f64()?)),
        (None, Some(other)) => Some(compare_mixed(other, one.as_f64()?).reverse()),
        (None, None) => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

fn compare_mixed(integer: i128, float: f64) -> Ordering {
    // The cast cuts the fraction off, and saturates far beyond 64 bits.
    let fraction = || 0.0.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal);
    integer.cmp(&(float as i128)).then_with(fraction)
}

/// Orders the kinds of values that have no order among them.
pub(super) fn rank(value: &Value) -> u8 {
    match value {
        Value::Bool(_) => 0,
        Value::Number(_) => 1,
        Value::String(_) => 2,
        Value::Null | Value::Array(_) | Value::Object(_) => 3,
    }
}
