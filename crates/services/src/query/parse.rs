//! From the query of a URL to a [`Query`].

use std::cmp::Ordering::{Equal, Greater, Less};
use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::filter::{FieldCondition, Test};
use super::key::{is_place, path};
use super::page::Direction;
use super::{Filter, Query, QueryError};
use crate::Schema;
use crate::escape::unescaped;

impl Query {
    /// Parses the query of a URL, about records of this schema.
    ///
    /// # Errors
    /// When it has a parameter, an operator or a value that is not valid, or a field that is not in the schema.
    pub fn parse(query: Option<&str>, schema: &Schema) -> Result<Self, QueryError> {
        parse(query.unwrap_or_default(), schema)
    }
}

fn parse(text: &str, schema: &Schema) -> Result<Query, QueryError> {
    if let Some(bad) = text.split('&').find(|parameter| unescaped(parameter).is_none()) {
        return Err(QueryError::BadEscape(excerpt(bad)));
    }
    let mut parser = Parser { schema, query: Query::default(), conditions: 0, values: 0 };
    let (mut seen, mut draft) = (HashSet::new(), Draft::default());
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        if !name.ends_with("[]") && !seen.insert(name.clone()) {
            return Err(QueryError::Twice(excerpt(&name)));
        }
        let unknown = || QueryError::UnknownParameter(excerpt(&name));
        let path = path(&name).ok_or_else(unknown)?;
        parser.parameter(&mut draft, &Parameter { name: &name, value: &value }, &path)?;
    }
    Ok(Query { filter: draft.finish(), ..parser.query })
}

/// A parameter by its whole name.
struct Parameter<'a> {
    name: &'a str,
    value: &'a str,
}

/// A filter whose parts arrive in any order.
#[derive(Default)]
struct Draft {
    conditions: Vec<FieldCondition>,
    alternatives: BTreeMap<u16, Self>,
}

struct Parser<'a> {
    schema: &'a Schema,
    query: Query,
    conditions: usize,
    values: usize,
}

impl Parser<'_> {
    fn parameter(
        &mut self,
        draft: &mut Draft,
        parameter: &Parameter<'_>,
        path: &[&str],
    ) -> Result<(), QueryError> {
        match path {
            ["$limit"] => self.query.limit = parameter.number(Query::LIMIT_MAX)?,
            ["$skip"] => self.query.skip = parameter.number(usize::MAX)?,
            ["$select", place] if is_place(place) => self.select(parameter)?,
            ["$sort", field] => self.sort(field, parameter)?,
            _ => self.filter(draft, parameter, path, 0)?,
        }
        Ok(())
    }

    fn select(&mut self, parameter: &Parameter<'_>) -> Result<(), QueryError> {
        if self.schema.kind(parameter.value).is_none() {
            return Err(QueryError::UnknownField(excerpt(parameter.value)));
        }
        let fields = self.query.select.get_or_insert_default();
        fields.push(parameter.value.to_owned());
        at_most(fields.len(), Query::SELECT_MAX, "fields to select")
    }

    fn sort(&mut self, field: &str, parameter: &Parameter<'_>) -> Result<(), QueryError> {
        self.comparable(field)?;
        let direction = match parameter.value {
            "1" => Direction::Ascending,
            "-1" => Direction::Descending,
            _ => return Err(parameter.bad_value("1 or -1")),
        };
        self.query.sort.push((field.to_owned(), direction));
        at_most(self.query.sort.len(), Query::SORT_MAX, "fields to sort by")
    }

    fn filter(
        &mut self,
        draft: &mut Draft,
        parameter: &Parameter<'_>,
        path: &[&str],
        depth: usize,
    ) -> Result<(), QueryError> {
        match path {
            ["$or", place, rest @ ..] if is_place(place) && !rest.is_empty() => {
                let unknown = |_| QueryError::UnknownParameter(excerpt(parameter.name));
                let place: u16 = place.parse().map_err(unknown)?;
                at_most(depth + 1, Query::OR_DEPTH_MAX, "levels of $or")?;
                self.filter(
                    draft.alternatives.entry(place).or_default(),
                    parameter,
                    rest,
                    depth + 1,
                )
            }
            [field, operator @ ..] if !field.starts_with('$') => {
                self.condition(draft, parameter, field, operator)
            }
            _ => Err(QueryError::UnknownParameter(excerpt(parameter.name))),
        }
    }

    fn condition(
        &mut self,
        draft: &mut Draft,
        parameter: &Parameter<'_>,
        field: &str,
        operator: &[&str],
    ) -> Result<(), QueryError> {
        if let [inner, ..] = operator
            && !inner.starts_with('$')
        {
            return Err(QueryError::UnknownField(excerpt(parameter.name)));
        }
        let (kind, expected) = self.comparable(field)?;
        let value = kind.parse(parameter.value).ok_or_else(|| parameter.bad_value(expected))?;
        let test = match operator {
            [] => Test::Compares(&[Equal], value),
            ["$ne"] => Test::NotIn(vec![value]),
            ["$lt"] => Test::Compares(&[Less], value),
            ["$lte"] => Test::Compares(&[Less, Equal], value),
            ["$gt"] => Test::Compares(&[Greater], value),
            ["$gte"] => Test::Compares(&[Greater, Equal], value),
            ["$in", place] if is_place(place) => {
                return self.listed(draft, field, Test::In, value);
            }
            ["$nin", place] if is_place(place) => {
                return self.listed(draft, field, Test::NotIn, value);
            }
            _ => return Err(QueryError::UnknownParameter(excerpt(parameter.name))),
        };
        self.add(draft, field, test)
    }

    /// Adds a value to the list of a field, which the first value begins.
    fn listed(
        &mut self,
        draft: &mut Draft,
        field: &str,
        test: fn(Vec<Value>) -> Test,
        value: Value,
    ) -> Result<(), QueryError> {
        self.values += 1;
        at_most(self.values, Query::VALUES_MAX, "values in $in and $nin")?;
        let empty = std::mem::discriminant(&test(Vec::new()));
        let begun = draft.conditions.iter_mut().find(|condition| {
            condition.field == field && std::mem::discriminant(&condition.test) == empty
        });
        match begun.map(|condition| &mut condition.test) {
            Some(Test::In(values) | Test::NotIn(values)) => values.push(value),
            _ => self.add(draft, field, test(vec![value]))?,
        }
        Ok(())
    }

    fn add(&mut self, draft: &mut Draft, field: &str, test: Test) -> Result<(), QueryError> {
        self.conditions += 1;
        at_most(self.conditions, Query::CONDITIONS_MAX, "conditions")?;
        draft.conditions.push(FieldCondition { field: field.to_owned(), test });
        Ok(())
    }

    /// Returns the values of a field, and the words for them, if they can be compared.
    fn comparable(
        &self,
        field: &str,
    ) -> Result<(&'_ crate::schema::FieldKind, &'static str), QueryError> {
        let unknown = || QueryError::UnknownField(excerpt(field));
        let kind = self.schema.kind(field).ok_or_else(unknown)?;
        Ok((kind, kind.expected().ok_or_else(unknown)?))
    }
}

impl Parameter<'_> {
    fn number(&self, most: usize) -> Result<usize, QueryError> {
        let digits = self.value.bytes().all(|byte| byte.is_ascii_digit());
        let number = self.value.parse().ok().filter(|number| digits && *number <= most);
        let expected = match most {
            usize::MAX => "a whole number".to_owned(),
            most => format!("a whole number of 0 to {most}"),
        };
        number.ok_or_else(|| self.bad_value(&expected))
    }

    fn bad_value(&self, expected: &str) -> QueryError {
        let (parameter, value) = (excerpt(self.name), excerpt(self.value));
        QueryError::BadValue { parameter, expected: expected.to_owned(), value }
    }
}

impl Draft {
    fn finish(self) -> Filter {
        let any: Vec<_> = self.alternatives.into_values().map(Self::finish).collect();
        let alternatives = if any.is_empty() { Vec::new() } else { vec![any] };
        Filter { conditions: self.conditions, alternatives }
    }
}

fn at_most(count: usize, most: usize, what: &'static str) -> Result<(), QueryError> {
    if count <= most { Ok(()) } else { Err(QueryError::TooMany { what, most }) }
}

/// Returns the first characters of a client's own words.
fn excerpt(text: &str) -> String {
    text.chars().take(80).collect()
}
