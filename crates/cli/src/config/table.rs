//! A table of a configuration, read key by key.
//!
//! Owns the record of requested keys: every other key is unknown. After an error, reading continues with the default,
//! so that all errors are reported at once.

use super::document::{Entry, Node, Value};
use super::fault::{Faults, closest};
use super::place::{Located, Place};

pub(super) struct Table<'a> {
    /// The prefix of its keys, such as `limits.`; empty for the root.
    prefix: String,
    place: Place,
    entries: Vec<Entry>,
    asked: Vec<&'static str>,
    faults: &'a Faults,
}

impl<'a> Table<'a> {
    pub(super) fn root(node: Node, faults: &'a Faults) -> Self {
        Self::of(String::new(), "", node, faults)
    }

    /// Creates a table; `header` is its spelling in the file.
    fn of(prefix: String, header: &str, Node { place, content }: Node, faults: &'a Faults) -> Self {
        let entries = match content {
            Value::Table(entries) => entries,
            other => {
                let name = prefix.trim_end_matches('.');
                let kind = other.kind();
                let fault = match &place {
                    Place::Variable(variable) => format!(
                        "{name} is a table: the variables for its keys begin with {variable}__"
                    ),
                    _ => format!("{name} must be a table, {header}, but is {kind}"),
                };
                faults.add(&place, fault);
                Vec::new()
            }
        };
        Self { prefix, place, entries, asked: Vec::new(), faults }
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Returns the value of this key, if there is one.
    pub(super) fn optional<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&Node) -> Result<T, String>,
    ) -> Option<Located<T>> {
        let Entry { node, .. } = self.take(key)?;
        match parse(&node) {
            Ok(value) => Some(Located::new(value, node.place)),
            Err(fault) => {
                self.faults.add(&node.place, format!("{}{key}: {fault}", self.prefix));
                None
            }
        }
    }

    /// Returns the value of this key, or its default.
    pub(super) fn value<T>(
        &mut self,
        key: &'static str,
        default: T,
        parse: impl FnOnce(&Node) -> Result<T, String>,
    ) -> T {
        self.optional(key, parse).map_or(default, |found| found.value)
    }

    /// Returns the value of this key, which is required; the error describes it with `what` and an example.
    pub(super) fn required<T>(
        &mut self,
        key: &'static str,
        what: &str,
        parse: impl FnOnce(&Node) -> Result<T, String>,
    ) -> Option<Located<T>> {
        if self.entries.iter().any(|entry| entry.key == key) {
            return self.optional(key, parse);
        }
        self.asked.push(key);
        self.faults.know(format!("{}{key}", self.prefix));
        let is_near = |entry: &Entry| closest(&entry.key, [key].into_iter()).is_some();
        match self.entries.iter().position(is_near) {
            Some(index) => {
                let Entry { key: near, place, .. } = self.entries.swap_remove(index);
                self.faults.add_unknown(&place, &self.prefix, &near, &[key]);
            }
            None => {
                let fault = format!("`{}{key}` is missing: {what}", self.prefix);
                self.faults.add(&self.place, fault);
            }
        }
        None
    }

    /// Returns the table of this key; an empty one if it is missing.
    pub(super) fn table(&mut self, key: &'static str) -> Self {
        let entry = self.take(key);
        let prefix = format!("{}{key}.", self.prefix);
        let node = entry.map_or_else(Node::empty, |entry| entry.node);
        let header = format!("[{}{key}]", self.prefix);
        Self::of(prefix, &header, node, self.faults)
    }

    /// Returns the tables of this key, as in `[[key]]`.
    pub(super) fn tables(&mut self, key: &'static str) -> Vec<Self> {
        let Some(Entry { node, .. }) = self.take(key) else { return Vec::new() };
        let fault = match (node.content, &node.place) {
            (Value::List(items), _) => {
                let header = format!("[[{key}]]");
                let table = |node: Node| {
                    let is_table = matches!(node.content, Value::Table(_));
                    let table = Self::of(format!("{key}."), &header, node, self.faults);
                    is_table.then_some(table)
                };
                return items.into_iter().filter_map(table).collect();
            }
            (_, Place::Variable(_)) => {
                format!("a variable cannot set this: only a file can have [[{key}]]")
            }
            (Value::Table(_), _) => {
                format!("this is a list of tables: write [[{key}]] instead of [{key}]")
            }
            (other, _) => {
                format!("{key} must be a list of tables, [[{key}]], but is {}", other.kind())
            }
        };
        self.faults.add(&node.place, fault);
        Vec::new()
    }

    pub(super) fn fault(&self, place: &Place, message: impl Into<String>) {
        self.faults.add(place, message);
    }

    /// Reports all keys that were not requested as unknown.
    pub(super) fn finish(self) {
        for Entry { key, place, .. } in &self.entries {
            self.faults.add_unknown(place, &self.prefix, key, &self.asked);
        }
    }

    fn take(&mut self, key: &'static str) -> Option<Entry> {
        self.asked.push(key);
        self.faults.know(format!("{}{key}", self.prefix));
        let index = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.swap_remove(index))
    }
}
