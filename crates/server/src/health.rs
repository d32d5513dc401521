//! `/health`: reports problems with keeping events, for monitoring.
//!
//! It does not reveal paths of this machine, since everybody may ask.

use std::io;
use std::time::Duration;

use anemone_hub::{DataDir, Health, Hub, StorageError};
use anemone_ws::Memory;
use http::StatusCode;
use serde::Serialize;
use serde_json::json;

/// The most problems that are listed; the rest are counted.
const LISTED_MAX: usize = 20;

/// The time for which exceeded memory is reported, since monitors do not ask all the time.
const MEMORY_TOLD: Duration = Duration::from_secs(10);

#[derive(Debug, PartialEq, Serialize)]
struct Fault {
    problem: &'static str,
    /// The topic concerned; `None` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
    detail: String,
}

impl Fault {
    fn stopping() -> Self {
        let detail = "the server is stopping".to_owned();
        Self { problem: "stopping", topic: None, detail }
    }

    fn behind(waited: Duration) -> Self {
        let detail = format!("something has waited for the disk for {} s", waited.as_secs());
        Self { problem: "storage-behind", topic: None, detail }
    }

    fn memory(memory: &Memory) -> Self {
        let (held, max) = (memory.held_bytes(), memory.bytes_max());
        let detail = format!(
            "{held} bytes are held for clients, the limit is {max}: new requests were refused in the last {} s",
            MEMORY_TOLD.as_secs()
        );
        Self { problem: "memory", topic: None, detail }
    }

    fn storage(topic: Option<String>, error: &StorageError) -> Self {
        let (problem, detail) = match error.kind() {
            _ if error.is_full() => ("storage-full", "there is no space".to_owned()),
            io::ErrorKind::ReadOnlyFilesystem => {
                ("storage-read-only", "the file system is read-only".to_owned())
            }
            kind => ("storage-failed", kind.to_string()),
        };
        Self {
            problem,
            topic,
            detail: format!("the last attempt to store something failed: {detail}"),
        }
    }
}

/// Returns the server's health, with the status of the reply.
pub(crate) fn report(
    hub: &Hub,
    memory: &Memory,
    is_stopping: bool,
) -> (StatusCode, serde_json::Value) {
    let topics = hub.topics();
    let all = hub.data().map(DataDir::health).unwrap_or_default();
    let mut faults = Vec::new();
    if is_stopping || hub.data().is_some_and(DataDir::is_closed) {
        faults.push(Fault::stopping());
    }
    if memory.was_exceeded_within(MEMORY_TOLD) {
        faults.push(Fault::memory(memory));
    }
    faults.extend(all.behind.map(Fault::behind));
    let of_topics = faults.len();
    for topic in &topics {
        if let Health { writing: Some(error), .. } = topic.health() {
            faults.push(Fault::storage(Some(topic.name().to_string()), &error));
        }
    }
    if faults.len() == of_topics {
        // A problem of the directory itself.
        faults.extend(all.writing.map(|error| Fault::storage(None, &error)));
    }
    if faults.is_empty() {
        let (topics, damaged_events) = (topics.len(), all.damaged_events);
        let value = json!({ "status": "ok", "topics": topics, "damaged_events": damaged_events });
        return (StatusCode::OK, value);
    }
    let count = faults.len();
    faults.truncate(LISTED_MAX);
    let value = json!({ "status": "failing", "count": count, "problems": faults });
    (StatusCode::SERVICE_UNAVAILABLE, value)
}
