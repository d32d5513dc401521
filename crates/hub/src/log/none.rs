//! The log of a topic that is not created: it is empty and takes no events.

use std::io;
use std::path::Path;

use super::{Extent, Log, Slice, WhenFull};
use crate::error::Action;
use crate::{
    Batch, IdempotencyKey, Keeps, Note, PageLimit, PublishError, Receipt, StorageError,
    TopicOptions, UnixTime,
};

#[derive(Debug)]
pub(crate) struct NoLog;

impl Log for NoLog {
    fn append(&self, _: UnixTime, _: &Batch, _: WhenFull) -> Result<Receipt, PublishError> {
        Err(PublishError::Awaited)
    }

    fn read(&self, _: UnixTime, after: u64, _: PageLimit) -> Result<Slice, StorageError> {
        Ok(Slice { first: 1, head: 0, from: after, is_last: false, events: Vec::new() })
    }

    fn data_bytes_after(&self, _: u64) -> u64 {
        0
    }

    fn first(&self, _: UnixTime) -> u64 {
        1
    }

    fn since(&self, _: UnixTime, _: UnixTime) -> Result<u64, StorageError> {
        Ok(0)
    }

    fn extent(&self, _: UnixTime) -> Extent {
        Extent { first: 1, head: 0, bytes: 0, oldest: None, newest: None }
    }

    fn note(&self) -> Option<Note> {
        None
    }

    fn set_note(&self, _: Note) -> Result<(), StorageError> {
        let error = io::Error::new(io::ErrorKind::NotFound, PublishError::Awaited);
        Err(StorageError::new(Action::Write, Path::new(""), error))
    }

    fn knows(&self, _: UnixTime, _: IdempotencyKey) -> bool {
        false
    }

    fn keeps(&self) -> Option<Keeps> {
        None
    }

    /// The topic gets its options when it is created.
    fn configure(&self, _: TopicOptions) {}

    fn delete(&self) -> Result<(), StorageError> {
        Ok(())
    }
}
