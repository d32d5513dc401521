//! Queries: a filter, an order, and which part of which records the page has.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Filter;
use super::filter::{compare, rank};
use crate::{Fields, Found, FoundRecord};

/// The records that a find looks at, or sorts, before it asks if it is still wanted.
pub(crate) const STEP_RECORDS: usize = 1024;

/// An upper bound of the bytes of a page besides its records.
const ENVELOPE_BYTES: usize = 128;

/// A query of find.
///
/// ```
/// use anemone_services::{Field, Query, Schema};
/// use serde_json::json;
///
/// let schema = Schema::new("Station").field(Field::number("height", -500.0..=9_000.0));
/// let query = Query::parse(Some("height[$gt]=1000&$limit=5"), &schema)?;
/// assert_eq!(query.limit, 5);
/// assert!(query.filter.matches(json!({ "height": 2962 }).as_object().unwrap()));
/// assert!(!query.filter.matches(json!({ "height": 12 }).as_object().unwrap()));
/// assert!(Query::parse(Some("depth=3"), &schema).is_err(), "there is no such field");
/// # Ok::<(), anemone_services::QueryError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The records to find.
    pub filter: Filter,
    /// The most records on the page.
    pub limit: usize,
    /// The number of matching records before the page.
    pub skip: usize,
    /// The fields to sort by, the most important first.
    pub(super) sort: Vec<(String, Direction)>,
    /// The fields to return besides `id`; all of them by default.
    pub(super) select: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Direction {
    Ascending,
    Descending,
}

impl Default for Query {
    /// Finds all records, in pages of 100.
    fn default() -> Self {
        Self { filter: Filter::default(), limit: 100, skip: 0, sort: Vec::new(), select: None }
    }
}

impl Query {
    /// The largest limit of a page.
    pub const LIMIT_MAX: usize = 1_000;
    /// The most bytes of a page, as JSON: a page that would be longer has fewer records than its limit, but at least one.
    pub const BYTES_MAX: usize = 1 << 20;
    /// The most conditions on fields, those in `$or` included.
    pub const CONDITIONS_MAX: usize = 32;
    /// The most values in all `$in` and `$nin` together.
    pub const VALUES_MAX: usize = 100;
    /// The most levels of `$or` in one another.
    pub const OR_DEPTH_MAX: usize = 2;
    /// The most fields to sort by.
    pub const SORT_MAX: usize = 4;
    /// The most fields to select.
    pub const SELECT_MAX: usize = 32;

    /// Sorts the matching records and returns the page. Records that compare equal stay in their order.
    #[must_use]
    pub fn page(&self, matching: Vec<&Arc<Fields>>) -> Found {
        self.page_while(matching, &|| true).unwrap_or_default()
    }

    /// Returns the page like [`page`](Self::page), or `None` as soon as `goes_on` returns false between two steps.
    pub(crate) fn page_while(
        &self,
        mut matching: Vec<&Arc<Fields>>,
        goes_on: &impl Fn() -> bool,
    ) -> Option<Found> {
        let mut sorted = if self.sort.is_empty() { matching.len() } else { 1 };
        // Each round merges the sorted parts of the one before, two at a time, so a step takes little time.
        while sorted < matching.len() {
            sorted = sorted.saturating_mul(2).max(STEP_RECORDS);
            for part in matching.chunks_mut(sorted) {
                if !goes_on() {
                    return None;
                }
                part.sort_by(|one, other| self.order(one, other));
            }
        }
        let (total, mut bytes) = (matching.len() as u64, ENVELOPE_BYTES);
        let fits = |record: &FoundRecord| {
            let is_first = bytes == ENVELOPE_BYTES;
            bytes += record.json_bytes() + 1;
            is_first || bytes <= Self::BYTES_MAX
        };
        let page = matching.into_iter().skip(self.skip).take(self.limit);
        let data = page.map(|record| self.selected(record)).take_while(fits).collect();
        goes_on().then_some(Found { total, data })
    }

    fn order(&self, one: &Fields, other: &Fields) -> Ordering {
        let by = |(field, direction): &(String, Direction)| {
            let order = match (one.get(field), other.get(field)) {
                (Some(one), Some(other)) => {
                    compare(one, other).unwrap_or_else(|| rank(one).cmp(&rank(other)))
                }
                // A record without the field comes first, as in Feathers.
                (one, other) => one.is_some().cmp(&other.is_some()),
            };
            match direction {
                Direction::Ascending => order,
                Direction::Descending => order.reverse(),
            }
        };
        self.sort.iter().map(by).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    fn selected(&self, record: &Arc<Fields>) -> FoundRecord {
        let Some(select) = &self.select else { return Arc::clone(record).into() };
        let is_selected = |name: &str| name == "id" || select.iter().any(|field| field == name);
        let members = record.iter().filter(|(name, _)| is_selected(name));
        members.map(|(name, value)| (name.clone(), value.clone())).collect::<Fields>().into()
    }
}
