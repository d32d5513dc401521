//! A watcher: what a page knows after some events.

use std::collections::BTreeMap;

use serde_json::Value;

/// The lists as the events tell them. A watcher that joins late ignores all events before the next plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Picture {
    plan: Option<Value>,
    pub(super) lists: BTreeMap<u64, List>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct List {
    pub(super) values: Vec<u64>,
    pub(super) counts: [u64; 3],
    pub(super) is_done: bool,
}

impl Picture {
    pub(super) fn has_plan(&self) -> bool {
        self.plan.is_some()
    }

    /// Draws an event. Returns each state that it tells.
    pub(super) fn apply(&mut self, event: &Value) -> Vec<Vec<u64>> {
        if let Some(plan) = event.get("plan") {
            *self = Self { plan: Some(plan.clone()), lists: BTreeMap::new() };
            return Vec::new();
        }
        if self.plan.is_none() {
            return Vec::new();
        }
        let list = self.lists.entry(event["action"].as_u64().unwrap()).or_default();
        list.counts = ["state", "comparisons", "writes"].map(|name| event[name].as_u64().unwrap());
        list.is_done = event.get("done").is_some();
        if let Some(values) = event.get("list") {
            list.values = numbers(values);
            return vec![list.values.clone()];
        }
        let changes = event["changes"].as_array().unwrap();
        changes.iter().map(|change| list.change(change)).collect()
    }
}

impl List {
    fn change(&mut self, change: &Value) -> Vec<u64> {
        let change = change.as_array().unwrap();
        let at = |index: usize| change[index].as_u64().unwrap() as usize;
        match change[0].as_str().unwrap() {
            "s" => self.values.swap(at(1), at(2)),
            "w" => {
                for index in (1..change.len()).step_by(2) {
                    self.values[at(index)] = at(index + 1) as u64;
                }
            }
            other => panic!("{other}"),
        }
        self.values.clone()
    }
}

pub(super) fn numbers(values: &Value) -> Vec<u64> {
    values.as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).collect()
}
