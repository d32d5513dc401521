//! A configuration as written: tables, lists and values, each with its place.
//!
//! Owns the syntax of the file (TOML 1.1), and overriding by environment variables. The code that reads it defines
//! the keys.

use std::path::Path;
use std::sync::Arc;

use anemone_sources::{TextFault, without_mark};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::{ConfigError, Faults};
use super::place::{Place, SourceFile};

/// The largest file. A configuration has some kilobytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A value, a list or a table.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) content: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Table(Vec<Entry>),
    List(Vec<Node>),
    Text(String),
    /// The text, and its number if it is in the range of any key.
    Integer(String, Option<u64>),
    Boolean(bool),
    /// A value that no key accepts: a fraction or a date.
    Other(&'static str),
    /// The value of a variable, whose type depends on the key.
    Variable(String),
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) place: Place,
    pub(super) node: Node,
}

impl Value {
    /// Names the kind, for people.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Table(_) => "a table",
            Self::List(_) => "a list",
            Self::Text(_) => "a string",
            Self::Integer(..) => "a number",
            Self::Boolean(_) => "true or false",
            Self::Other(kind) => kind,
            Self::Variable(_) => "a variable",
        }
    }
}

impl Node {
    pub(super) fn empty() -> Self {
        Self { place: Place::Default, content: Value::Table(Vec::new()) }
    }

    /// Reads a file; `said` is the place of its name.
    ///
    /// # Errors
    /// When it cannot be read or is not TOML.
    pub(super) fn read(path: &Path, said: &Place) -> Result<Self, ConfigError> {
        use std::io::Read as _;
        let cannot = |why: &dyn std::fmt::Display| {
            ConfigError::never(said.clone(), format!("cannot read {}: {why}", path.display()))
        };
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(|error| cannot(&error))?;
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| cannot(&error))?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(cannot(&format_args!("the file is larger than {FILE_BYTES_MAX} bytes")));
        }
        if let Some(fault @ TextFault::Utf16) = TextFault::find(&bytes) {
            return Err(cannot(&fault));
        }
        let text = String::from_utf8(without_mark(&bytes).to_vec()).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let before = error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count();
            cannot(&format_args!("line {} is not UTF-8", before + 1))
        })?;
        Self::parse(SourceFile::new(path, text))
    }

    /// Parses a file's text.
    ///
    /// # Errors
    /// Every place where it is not TOML.
    pub(super) fn parse(source: SourceFile) -> Result<Self, ConfigError> {
        let source = Arc::new(source);
        let (root, errors) = DeTable::parse_recoverable(source.text());
        let faults = Faults::default();
        let mut line_before = None;
        for error in &errors {
            let span = error.span().unwrap_or_default();
            // Further errors in a line are mostly consequences of the first.
            let line = source.line(span.start);
            if line_before.replace(line) != Some(line) {
                let found = source.text().get(span.clone()).unwrap_or_default();
                let message = explained(error.message(), found);
                faults.add(&Place::File(Arc::clone(&source), span.start), message);
            }
        }
        faults.into_result()?;
        let entries = entries(&source, root.get_ref());
        Ok(Self { place: Place::File(source, 0), content: Value::Table(entries) })
    }

    /// Overrides a key with a variable; `path` has at least one key. If a value is in the place of a table, the
    /// variable replaces it, and the code that reads it reports the error.
    pub(super) fn set(&mut self, path: &[String], variable: &str, value: &str) {
        let place = || Place::Variable(variable.to_owned());
        let Value::Table(entries) = &mut self.content else {
            *self = Self { place: place(), content: Value::Variable(value.to_owned()) };
            return;
        };
        let Some((key, rest)) = path.split_first() else { return };
        let known = entries.iter().position(|entry| entry.key == *key);
        if rest.is_empty() {
            let node = Self { place: place(), content: Value::Variable(value.to_owned()) };
            let entry = Entry { key: key.clone(), place: place(), node };
            match known {
                Some(index) => entries[index] = entry,
                None => entries.push(entry),
            }
            return;
        }
        let index = known.unwrap_or_else(|| {
            let node = Self { place: place(), content: Value::Table(Vec::new()) };
            entries.push(Entry { key: key.clone(), place: place(), node });
            entries.len() - 1
        });
        entries[index].node.set(rest, variable, value);
    }
}

/// Rewords the parser's message for people who do not know TOML's terms.
fn explained(message: &str, found: &str) -> String {
    let is_bare = ["invalid float", "invalid integer", "invalid datetime", "string values must"]
        .iter()
        .any(|start| message.starts_with(start));
    match message {
        _ if is_bare => {
            "expected a value; strings need quotation marks, such as \"30s\"".to_owned()
        }
        "duplicate key" => format!("`{found}` is defined twice"),
        other => other.to_owned(),
    }
}

fn entries(source: &Arc<SourceFile>, table: &DeTable<'_>) -> Vec<Entry> {
    let entry = |(key, value): (&Spanned<_>, _)| {
        let name: &std::borrow::Cow<'_, str> = key.get_ref();
        let place = Place::File(Arc::clone(source), key.span().start);
        Entry { key: name.to_string(), place, node: node(source, value) }
    };
    table.iter().map(entry).collect()
}

fn node(source: &Arc<SourceFile>, value: &Spanned<DeValue<'_>>) -> Node {
    let content = match value.get_ref() {
        DeValue::Table(table) => Value::Table(entries(source, table)),
        DeValue::Array(items) => Value::List(items.iter().map(|item| node(source, item)).collect()),
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(integer) => {
            let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
            Value::Integer(integer.to_string(), number)
        }
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Float(_) => Value::Other("a number with a fraction"),
        DeValue::Datetime(_) => Value::Other("a date"),
    };
    Node { place: Place::File(Arc::clone(source), value.span().start), content }
}
