//! The plan of a change: the event to publish, or the reason why it cannot happen. Pure.

use bytes::Bytes;
use serde_json::{Value, json};

use super::event::{RecordChange, RecordChangeKind};
use super::options::CollectionOptions;
use super::state::{State, Stored, cost};
use crate::merge::merge;
use crate::{Condition, Fields, Misfit, ResourceError, Schema};

/// The largest event of a record, in bytes. A body has the same limit, so patches make no record larger than a body could.
const RECORD_BYTES_MAX: usize = 64 << 10;

/// A change that a client asks for.
#[derive(Clone, Debug)]
pub(super) enum Wish {
    Create(Fields),
    Update(String, Fields),
    Patch(String, Fields),
    Remove(String),
}

impl Wish {
    /// Returns what tells it from every other wish: equal wishes have the same bytes.
    pub(super) fn to_bytes(&self) -> Bytes {
        match self {
            Self::Create(record) => json!(["create", record]),
            Self::Update(id, record) => json!(["update", id, record]),
            Self::Patch(id, patch) => json!(["patch", id, patch]),
            Self::Remove(id) => json!(["remove", id]),
        }
        .to_string()
        .into()
    }
}

#[derive(Debug)]
pub(super) struct Rules {
    pub(super) schema: Schema,
    pub(super) options: CollectionOptions,
}

impl Rules {
    /// Returns the change that fulfils a wish, if its event will have the offset `next`.
    pub(super) fn plan(
        &self,
        state: &State,
        wish: Wish,
        condition: &Condition,
        next: u64,
    ) -> Result<RecordChange, ResourceError> {
        let (kind, record) = match wish {
            Wish::Create(record) => (RecordChangeKind::Created, with_new_id(record, next)?),
            Wish::Update(id, record) => {
                current(state, &id, condition)?;
                (RecordChangeKind::Updated, with_id(record, &id)?)
            }
            Wish::Patch(id, patch) => {
                let mut record = Fields::clone(&current(state, &id, condition)?.fields);
                merge(&mut record, &patch);
                let has_id = record.contains_key("id");
                let removed = || Misfit::of("id", "the id of a record cannot be removed");
                if has_id {
                    (RecordChangeKind::Patched, with_id(record, &id)?)
                } else {
                    return Err(removed().into());
                }
            }
            Wish::Remove(id) => {
                let record = Fields::clone(&current(state, &id, condition)?.fields);
                return Ok(RecordChange { kind: RecordChangeKind::Removed, record });
            }
        };
        self.schema.validate(&record)?;
        let change = RecordChange { kind, record };
        self.admit(state, &change)?;
        Ok(change)
    }

    /// Checks the limits on records and bytes.
    fn admit(&self, state: &State, change: &RecordChange) -> Result<(), ResourceError> {
        let CollectionOptions { records_max, bytes_max, .. } = self.options;
        let old = state.get(change.id());
        if old.is_some() && change.kind == RecordChangeKind::Created {
            return Err(ResourceError::Conflict(change.id().to_owned()));
        }
        if old.is_none() && state.len() >= records_max {
            let detail = format!("there are {} records, at most {records_max} may be", state.len());
            return Err(ResourceError::Full(detail));
        }
        let misfit = |detail| Misfit { pointer: String::new(), detail };
        let data = change.to_data().map_err(|error| misfit(format!("the record is {error}")))?;
        let bytes = cost(data.bytes().len());
        if bytes > cost(RECORD_BYTES_MAX) {
            let detail = format!("the record has more than {RECORD_BYTES_MAX} bytes");
            return Err(misfit(detail).into());
        }
        let others = state.live() - old.map_or(0, |old| old.cost());
        if others + bytes > bytes_max {
            let detail = format!(
                "the records would take {} bytes, at most {bytes_max} may be",
                others + bytes
            );
            return Err(ResourceError::Full(detail));
        }
        Ok(())
    }
}

/// Returns the record to change, if it is the version that the condition requires.
fn current<'a>(
    state: &'a State,
    id: &str,
    condition: &Condition,
) -> Result<&'a Stored, ResourceError> {
    let stored = state.get(id);
    condition.check(stored.map(|stored| &stored.tag))?;
    stored
        .map(|stored| &**stored)
        .ok_or_else(|| ResourceError::Unknown(id.chars().take(80).collect()))
}

/// Gives a record without an id the offset of its event. A client cannot choose such an id.
pub(super) fn with_new_id(mut record: Fields, next: u64) -> Result<Fields, ResourceError> {
    match record.get("id").and_then(Value::as_str) {
        Some(id) if id.bytes().all(|byte| byte.is_ascii_digit()) => {
            let detail = "an id of digits alone is given by the server: name another id, or none";
            Err(Misfit::of("id", detail).into())
        }
        Some(_) => Ok(record),
        None => {
            record.insert("id".to_owned(), next.to_string().into());
            Ok(record)
        }
    }
}

/// Gives a record its id, which it may name itself.
pub(super) fn with_id(mut record: Fields, id: &str) -> Result<Fields, ResourceError> {
    match record.insert("id".to_owned(), id.into()) {
        Some(named) if named != id => {
            Err(Misfit::of("id", format!("the id of this record is {id:?}, and cannot be changed"))
                .into())
        }
        _ => Ok(record),
    }
}
