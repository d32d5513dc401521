//! The work of the open requests of a connection.

use anemone_hub::Published;

use super::call::Call;
use crate::clients::access::AccessLine;
use crate::exchange::resource::{OwnResource, ResourceValue};
use crate::request::methods::Wanted;
use crate::stream::EndlessReply;

#[derive(Debug)]
pub(super) enum Work {
    Read(EndlessReply),
    /// To be answered after earlier output was written.
    Answer(WantedResource, AccessLine),
    /// To be answered when its outcome is known.
    Submit(Submitted),
    /// A service answers.
    Call(Box<Call>),
}

#[derive(Clone, Debug)]
pub(super) struct WantedResource {
    pub(super) resource: OwnResource,
    pub(super) wanted: Wanted,
}

#[derive(Debug)]
pub(super) struct Submitted {
    /// The length of its payload.
    pub(super) bytes: usize,
    pub(super) path: String,
    pub(super) is_deletion: bool,
    pub(super) access: AccessLine,
}

/// The outcome of what takes its time.
#[derive(Debug)]
pub(super) enum Done {
    Published(Published),
    Deleted,
    /// No change: the value of what all threads were asked for.
    Told(ResourceValue),
}

impl Work {
    /// Returns true for a change, which cannot be withdrawn.
    pub(super) fn is_change(&self) -> bool {
        matches!(self, Self::Submit(_)) || matches!(self, Self::Call(call) if call.is_change())
    }

    pub(super) fn watches_run(&self) -> bool {
        matches!(self, Self::Read(reply) if reply.reader().readable().is_run())
    }

    pub(super) fn access(&self) -> &AccessLine {
        match self {
            Self::Read(reply) => reply.reader().access(),
            Self::Answer(_, access) => access,
            Self::Submit(submitted) => &submitted.access,
            Self::Call(call) => call.access(),
        }
    }
}
