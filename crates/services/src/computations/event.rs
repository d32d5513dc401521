//! The events of a computation as JSON ("Events" in `docs/COMPUTATIONS.md`).

use std::fmt::Write as _;

use super::action::Word;
use super::board::ListChangeKind;
use super::options::SentStates;
use super::tree::{Action, ActionKind, ActionTree};
use super::work::SortWork;
use anemone_hub::run::RunFailure;
use anemone_hub::{Data, DataError};

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct EventText(String);

/// The counts of a list's steps.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Counts {
    /// Swaps and writes.
    pub(super) changes: u64,
    pub(super) comparisons: u64,
    /// Two for a swap.
    pub(super) writes: u64,
}

impl Counts {
    /// Writes its members at the end of an object.
    fn append(&self, text: &mut String, is_done: bool) {
        let Self { changes, comparisons, writes } = self;
        // Writing to a string never fails.
        let _ =
            write!(text, ",\"state\":{changes},\"comparisons\":{comparisons},\"writes\":{writes}");
        text.push_str(if is_done { ",\"done\":true}" } else { "}" });
    }
}

impl ListChangeKind {
    pub(super) fn to_json(self) -> String {
        match self {
            Self::Swap(first, second) => format!("[\"s\",{first},{second}]"),
            Self::Write(at, value) => format!("[\"w\",{at},{value}]"),
        }
    }
}

impl EventText {
    /// Tells states as what has changed; `changes` are JSON arrays with commas between them.
    pub(super) fn changes(action: usize, changes: &str, counts: Counts, is_done: bool) -> Self {
        let mut text = format!("{{\"action\":{action},\"changes\":[{changes}]");
        counts.append(&mut text, is_done);
        Self(text)
    }

    pub(super) fn list(action: usize, list: &[u32], counts: Counts, is_done: bool) -> Self {
        let mut text = format!("{{\"action\":{action},\"list\":[");
        for (at, value) in list.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let _ = write!(text, "{comma}{value}");
        }
        text.push(']');
        counts.append(&mut text, is_done);
        Self(text)
    }

    /// Tells the actions. All that a watcher needs follows: the whole list of each action that has begun.
    pub(super) fn plan(tree: &ActionTree, states: SentStates) -> Self {
        let actions: Vec<String> = tree.actions.iter().map(described).collect();
        Self(format!("{{\"plan\":[{}],\"states\":\"{}\"}}", actions.join(","), states.name()))
    }

    pub(super) fn result<'a>(states: u64, sorts: impl Iterator<Item = (&'a str, Counts)>) -> Self {
        let sort = |(id, counts): (&str, Counts)| {
            let Counts { changes, comparisons, writes } = counts;
            format!(
                "{{\"id\":\"{id}\",\"changes\":{changes},\"comparisons\":{comparisons},\"writes\":{writes}}}"
            )
        };
        let sorts: Vec<String> = sorts.map(sort).collect();
        Self(format!("{{\"states\":{states},\"sorts\":[{}]}}", sorts.join(",")))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns it as the data of an event.
    ///
    /// # Errors
    /// Never: it is JSON.
    pub(super) fn into_data(self) -> Result<Data, RunFailure> {
        Data::parse(&self.0).map_err(|error: DataError| RunFailure::new(error.to_string()))
    }

    #[cfg(test)]
    pub(super) fn to_value(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).unwrap()
    }
}

/// Describes an action. Ids and words have no character that JSON escapes.
fn described(action: &Action) -> String {
    let Action { id, after, kind, size } = action;
    let after = after.map(|after| format!(",\"after\":{after}")).unwrap_or_default();
    let kind = match *kind {
        ActionKind::List { distribution, seed } => {
            let distribution = name(distribution);
            format!("\"do\":\"list\"{after},\"distribution\":\"{distribution}\",\"seed\":{seed}")
        }
        ActionKind::Sort { algorithm, criterion } => {
            let (algorithm, criterion) = (name(algorithm), name(criterion));
            format!(
                "\"do\":\"sort\"{after},\"algorithm\":\"{algorithm}\",\"criterion\":\"{criterion}\""
            )
        }
    };
    let work = action.work().map(|SortWork { unit, total, rule, is_exact }| {
        let unit = unit.name();
        format!(
            ",\"work\":{{\"unit\":\"{unit}\",\"total\":{total},\"rule\":\"{rule}\",\"exact\":{is_exact}}}"
        )
    });
    format!("{{\"id\":\"{id}\",{kind},\"size\":{size}{}}}", work.unwrap_or_default())
}

fn name<W: Word + PartialEq>(word: W) -> &'static str {
    W::ALL.iter().find(|(_, other)| *other == word).map_or("", |(name, _)| *name)
}
