//! The fields of records: declared once, for validation, queries and documents.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

use crate::Fields;
use crate::json::escaped;

/// The fields of a record, besides its `id`. Other fields are refused.
///
/// ```
/// use anemone_services::{Field, Schema};
/// use serde_json::json;
///
/// let schema = Schema::new("Station")
///     .field(Field::text("place", 1..=80).required())
///     .field(Field::number("height", -500.0..=9_000.0));
/// let checked = |record: serde_json::Value| schema.validate(record.as_object().unwrap());
/// assert!(checked(json!({ "place": "Zugspitze", "height": 2962 })).is_ok());
/// let misfit = checked(json!({ "place": "Zugspitze", "height": "high" })).unwrap_err();
/// assert_eq!(misfit.pointer, "/height");
/// ```
#[derive(Clone, Debug)]
pub struct Schema {
    title: &'static str,
    fields: Vec<Field>,
}

/// A field of a record.
#[derive(Clone, Debug)]
pub struct Field {
    name: &'static str,
    kind: FieldKind,
    is_required: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum FieldKind {
    Text { chars: RangeInclusive<usize> },
    Integer { range: RangeInclusive<i64> },
    Number { range: RangeInclusive<f64> },
    Boolean,
    Any,
}

/// The place at which a record does not fit its schema.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{detail}")]
pub struct Misfit {
    /// The JSON Pointer (RFC 6901) to the value.
    pub pointer: String,
    /// A sentence about it.
    pub detail: String,
}

impl Misfit {
    /// Creates a misfit of this member of a record.
    #[must_use]
    pub fn of(member: &str, detail: impl Into<String>) -> Self {
        Self { pointer: format!("/{}", escaped(member)), detail: detail.into() }
    }
}

/// The most characters of the name of an unknown field that a misfit tells.
const NAME_CHARS_MAX: usize = 200;

const ID_BYTES_MAX: usize = 64;

impl Field {
    /// Creates a field of text with this many characters.
    #[must_use]
    pub fn text(name: &'static str, chars: RangeInclusive<usize>) -> Self {
        Self::of(name, FieldKind::Text { chars })
    }

    /// Creates a field of an integer in this range.
    #[must_use]
    pub fn integer(name: &'static str, range: RangeInclusive<i64>) -> Self {
        Self::of(name, FieldKind::Integer { range })
    }

    /// Creates a field of a number in this range.
    #[must_use]
    pub fn number(name: &'static str, range: RangeInclusive<f64>) -> Self {
        Self::of(name, FieldKind::Number { range })
    }

    /// Creates a field that is true or false.
    #[must_use]
    pub fn boolean(name: &'static str) -> Self {
        Self::of(name, FieldKind::Boolean)
    }

    /// Creates a field of any JSON value, which queries can neither filter nor sort by.
    #[must_use]
    pub fn any(name: &'static str) -> Self {
        Self::of(name, FieldKind::Any)
    }

    fn of(name: &'static str, kind: FieldKind) -> Self {
        Self { name, kind, is_required: false }
    }

    /// Requires the field. By default it may be missing.
    #[must_use]
    pub fn required(self) -> Self {
        Self { is_required: true, ..self }
    }
}

impl Schema {
    /// Creates the schema of records that have only an `id`. The title names a record, such as `Message`.
    #[must_use]
    pub fn new(title: &'static str) -> Self {
        Self { title, fields: Vec::new() }
    }

    /// Adds a field.
    #[must_use]
    pub fn field(mut self, field: Field) -> Self {
        self.fields.push(field);
        self
    }

    /// Returns its title.
    #[must_use]
    pub fn title(&self) -> &'static str {
        self.title
    }

    pub(crate) fn kind(&self, name: &str) -> Option<&FieldKind> {
        if name == "id" {
            return Some(const { &FieldKind::Text { chars: 1..=ID_BYTES_MAX } });
        }
        self.fields.iter().find(|field| field.name == name).map(|field| &field.kind)
    }

    /// Returns the fields that queries can compare, with the JSON Schema of their values.
    pub(crate) fn comparable(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let fields = self.fields.iter().filter(|field| field.kind.expected().is_some());
        let id = ("id", json!({"type": "string"}));
        std::iter::once(id).chain(fields.map(|field| (field.name, field.kind.to_json_schema())))
    }

    /// Checks the members of a record. The `id` may be missing.
    ///
    /// # Errors
    /// The first misfit.
    pub fn validate(&self, record: &Fields) -> Result<(), Misfit> {
        for (name, value) in record {
            match self.kind(name) {
                Some(_) if name == "id" => validate_id(value)?,
                Some(kind) => kind.validate(value).map_err(|detail| Misfit::of(name, detail))?,
                None => {
                    // The name is the client's, and may be long.
                    let name: String = name.chars().take(NAME_CHARS_MAX).collect();
                    return Err(Misfit::of(&name, format!("{} has no such field", self.title)));
                }
            }
        }
        let missing = |field: &&Field| field.is_required && !record.contains_key(field.name);
        match self.fields.iter().find(missing) {
            Some(field) => Err(Misfit::of(field.name, format!("{} is missing", field.name))),
            None => Ok(()),
        }
    }

    /// Returns the JSON Schema (2020-12) of a stored record.
    #[must_use]
    pub fn to_json_schema(&self) -> Value {
        let required = self.fields.iter().filter(|field| field.is_required);
        let required: Vec<_> =
            std::iter::once("id").chain(required.map(|field| field.name)).collect();
        let fields =
            self.fields.iter().map(|field| (field.name.to_owned(), field.kind.to_json_schema()));
        let mut properties: Fields = fields.collect();
        let id = json!({"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$", "maxLength": ID_BYTES_MAX});
        properties.insert("id".to_owned(), id);
        json!({
            "title": self.title,
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }
}

fn validate_id(id: &Value) -> Result<(), Misfit> {
    let misfit = || {
        Misfit::of(
            "id",
            "an id is 1 to 64 of A-Z a-z 0-9 . _ - and begins with a letter or a digit",
        )
    };
    let id = id.as_str().ok_or_else(misfit)?;
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let begins = id.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if begins && id.len() <= ID_BYTES_MAX && id.bytes().all(is_valid) {
        Ok(())
    } else {
        Err(misfit())
    }
}

impl FieldKind {
    fn validate(&self, value: &Value) -> Result<(), String> {
        match self {
            Self::Text { chars } => {
                let text = value.as_str().ok_or("must be text")?;
                let count = text.chars().count();
                let (least, most) = (chars.start(), chars.end());
                if chars.contains(&count) {
                    return Ok(());
                }
                Err(format!("must have {least} to {most} characters, not {count}"))
            }
            Self::Integer { range } => {
                let fits = value.as_i64().is_some_and(|number| range.contains(&number));
                let (least, most) = (range.start(), range.end());
                if fits { Ok(()) } else { Err(format!("must be an integer of {least} to {most}")) }
            }
            Self::Number { range } => {
                let fits = value.as_f64().is_some_and(|number| range.contains(&number));
                let (least, most) = (range.start(), range.end());
                if fits { Ok(()) } else { Err(format!("must be a number of {least} to {most}")) }
            }
            Self::Boolean if !value.is_boolean() => Err("must be true or false".to_owned()),
            Self::Boolean | Self::Any => Ok(()),
        }
    }

    fn to_json_schema(&self) -> Value {
        match self {
            Self::Text { chars } => {
                json!({"type": "string", "minLength": chars.start(), "maxLength": chars.end()})
            }
            Self::Integer { range } => {
                json!({"type": "integer", "minimum": range.start(), "maximum": range.end()})
            }
            Self::Number { range } => {
                json!({"type": "number", "minimum": range.start(), "maximum": range.end()})
            }
            Self::Boolean => json!({"type": "boolean"}),
            Self::Any => json!({}),
        }
    }

    /// Reads a value of a query; `None` if the text is none of this kind.
    pub(crate) fn parse(&self, text: &str) -> Option<Value> {
        match self {
            Self::Text { .. } => Some(text.into()),
            Self::Boolean => text.parse::<bool>().ok().map(Value::Bool),
            // JSON allows white space around a number; a query does not.
            Self::Integer { .. } | Self::Number { .. } if text.trim() == text => {
                serde_json::from_str(text).ok().map(Value::Number)
            }
            _ => None,
        }
    }

    /// Returns the words for what [`FieldKind::parse`] takes; `None` if it takes nothing.
    pub(crate) fn expected(&self) -> Option<&'static str> {
        match self {
            Self::Text { .. } => Some("text"),
            Self::Integer { .. } | Self::Number { .. } => Some("a number"),
            Self::Boolean => Some("true or false"),
            Self::Any => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        Schema::new("Station")
            .field(Field::text("place", 1..=3).required())
            .field(Field::integer("floor", -2..=9))
            .field(Field::number("height", 0.0..=1.5))
            .field(Field::boolean("indoors"))
            .field(Field::any("notes"))
    }

    #[test]
    fn a_record_that_fits_is_accepted() {
        for record in [
            json!({"place": "abc"}),
            json!({"id": "a.B_9-", "place": "äöü", "floor": -2, "height": 1.5, "indoors": true, "notes": [{}]}),
        ] {
            assert_eq!(schema().validate(record.as_object().unwrap()), Ok(()), "{record}");
        }
    }

    #[test]
    fn a_misfit_names_its_place_and_its_reason() {
        for (record, pointer, words) in [
            (json!({}), "/place", "missing"),
            (json!({"place": ""}), "/place", "1 to 3 characters, not 0"),
            (json!({"place": "abcd"}), "/place", "not 4"),
            (json!({"place": 7}), "/place", "text"),
            (json!({"place": "a", "floor": 1.5}), "/floor", "integer of -2 to 9"),
            (json!({"place": "a", "floor": 10}), "/floor", "integer"),
            (json!({"place": "a", "height": 1.6}), "/height", "number of 0 to 1.5"),
            (json!({"place": "a", "indoors": null}), "/indoors", "true or false"),
            (json!({"place": "a", "a/b~c": 1}), "/a~1b~0c", "no such field"),
            (json!({"place": "a", "id": "-a"}), "/id", "begins with"),
            (json!({"place": "a", "id": "a/b"}), "/id", "A-Z"),
            (json!({"place": "a", "id": "x".repeat(65)}), "/id", "1 to 64"),
            (json!({"place": "a", "id": 7}), "/id", "1 to 64"),
        ] {
            let misfit = schema().validate(record.as_object().unwrap()).unwrap_err();
            assert_eq!(misfit.pointer, pointer, "{record}");
            assert!(misfit.detail.contains(words), "{record}: {misfit}");
        }
    }

    #[test]
    fn the_name_of_an_unknown_field_is_told_in_part_if_it_is_long() {
        for (count, told) in [(200, 200), (201, 200), (50_000, 200)] {
            let record = json!({"place": "a", "/".repeat(count): 1});
            let misfit = schema().validate(record.as_object().unwrap()).unwrap_err();
            assert_eq!(misfit.pointer, format!("/{}", "~1".repeat(told)), "{count}");
        }
    }

    #[test]
    fn the_json_schema_says_what_is_validated() {
        let written = schema().to_json_schema();
        assert_eq!(written["required"], json!(["id", "place"]));
        assert_eq!(written["additionalProperties"], json!(false));
        assert_eq!(
            written["properties"]["place"],
            json!({"type":"string","minLength":1,"maxLength":3})
        );
        assert_eq!(
            written["properties"]["floor"],
            json!({"type":"integer","minimum":-2,"maximum":9})
        );
    }
}
