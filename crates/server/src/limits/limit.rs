//! A limit: its key, its unit, its bounds, and its field.

use std::fmt;
use std::time::Duration;

/// A limit in `L`: [`Limits`](crate::Limits), or the limits of one kind of WebSocket.
pub struct Limit<L> {
    /// Its name in a configuration and in errors.
    pub key: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// The least value.
    pub least: u64,
    /// The greatest value.
    pub most: u64,
    field: fn(&mut L) -> &mut dyn Field,
}

/// The unit of a limit's values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Unit {
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// A time.
    Nanoseconds,
}

/// An error of a limit out of its bounds.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("limit {key} is {}, must be from {} to {}", Shown(*.unit, *.value), Shown(*.unit, *.least), Shown(*.unit, *.most))]
pub struct LimitError {
    key: String,
    unit: Unit,
    value: u64,
    least: u64,
    most: u64,
}

impl LimitError {
    pub(super) fn within(self, table: &str) -> Self {
        Self { key: format!("{table}.{}", self.key), ..self }
    }
}

struct Shown(Unit, u64);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unit::Nanoseconds => write!(f, "{:?}", Duration::from_nanos(self.1)),
            Unit::Count | Unit::Bytes => self.1.fmt(f),
        }
    }
}

impl<L: Clone> Limit<L> {
    /// Returns its value; `None` if it depends on something else.
    #[must_use]
    pub fn get(&self, limits: &L) -> Option<u64> {
        (self.field)(&mut limits.clone()).get()
    }

    /// Sets its value. A server with a value out of the bounds does not start.
    pub fn set(&self, limits: &mut L, amount: u64) {
        (self.field)(limits).set(amount);
    }

    pub(super) fn check(&self, limits: &L) -> Result<(), LimitError> {
        let Self { key, unit, least, most, .. } = *self;
        match self.get(limits).filter(|value| !(least..=most).contains(value)) {
            Some(value) => Err(LimitError { key: key.to_owned(), unit, value, least, most }),
            None => Ok(()),
        }
    }
}

pub(super) trait Field {
    fn get(&self) -> Option<u64>;
    fn set(&mut self, amount: u64);
}

impl Field for u32 {
    fn get(&self) -> Option<u64> {
        Some((*self).into())
    }

    fn set(&mut self, amount: u64) {
        *self = Self::try_from(amount).unwrap_or(Self::MAX);
    }
}

impl Field for u64 {
    fn get(&self) -> Option<u64> {
        Some(*self)
    }

    fn set(&mut self, amount: u64) {
        *self = amount;
    }
}

impl Field for usize {
    fn get(&self) -> Option<u64> {
        Some(*self as u64)
    }

    fn set(&mut self, amount: u64) {
        *self = Self::try_from(amount).unwrap_or(Self::MAX);
    }
}

impl Field for Option<usize> {
    fn get(&self) -> Option<u64> {
        self.as_ref().and_then(Field::get)
    }

    fn set(&mut self, amount: u64) {
        self.get_or_insert_default().set(amount);
    }
}

impl Field for Option<Duration> {
    fn get(&self) -> Option<u64> {
        self.as_ref().and_then(Field::get)
    }

    fn set(&mut self, amount: u64) {
        self.get_or_insert_default().set(amount);
    }
}

impl Field for Duration {
    fn get(&self) -> Option<u64> {
        Some(u64::try_from(self.as_nanos()).unwrap_or(u64::MAX))
    }

    fn set(&mut self, amount: u64) {
        *self = Self::from_nanos(amount);
    }
}

type Access<L> = fn(&mut L) -> &mut dyn Field;

const fn limit<L>(
    key: &'static str,
    unit: Unit,
    (least, most): (u64, u64),
    field: Access<L>,
) -> Limit<L> {
    Limit { key, unit, least, most, field }
}

pub(super) const fn count<L>(key: &'static str, bounds: (u64, u64), field: Access<L>) -> Limit<L> {
    limit(key, Unit::Count, bounds, field)
}

pub(super) const fn bytes<L>(key: &'static str, bounds: (u64, u64), field: Access<L>) -> Limit<L> {
    limit(key, Unit::Bytes, bounds, field)
}

pub(super) const fn time<L>(key: &'static str, bounds: (u64, u64), field: Access<L>) -> Limit<L> {
    limit(key, Unit::Nanoseconds, bounds, field)
}
