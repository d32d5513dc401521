//! The start of a run.

use std::io;
use std::sync::Arc;

use super::attachment::Attachment;
use super::input::InputDigest;
use super::name::RunName;
use super::owner::OwnerKey;
use super::queue::QueueFull;
use super::run::Run;
use super::service::RunWork;
use super::shown_input::ShownInput;
use crate::IdempotencyKey;

/// A run to start.
#[derive(Debug)]
pub struct StartRun {
    /// The path of its service.
    pub service: String,
    /// The client, if it is known. Its runs in the queue have a limit of their own.
    pub owner: Option<OwnerKey>,
    /// True for a client without that limit. All such clients, and those that are unknown, are one owner.
    pub is_exempt: bool,
    /// True if it may take [`RunLimits::CLIENT_TIME_MAX`](crate::run::RunLimits::CLIENT_TIME_MAX) only, unless the limits say
    /// otherwise.
    pub is_timed: bool,
    /// Makes the start safe to repeat: the same key from the same owner for the same service, with the same input,
    /// gets the same run, as long as that is kept. Another owner's key is another key.
    pub key: Option<(IdempotencyKey, InputDigest)>,
    /// True if the run is to belong to the client: [`Started::attachment`]. A repeat takes over a run that belongs to a
    /// client, and only follows another one.
    pub is_attached: bool,
    /// The bytes that the work holds before it begins and while it runs, such as its input, besides the size of the function
    /// itself, which is added; a work that says them itself ([`RunWork::holding`]) counts as that. They count in
    /// [`RunLimits::total_bytes_max`](crate::run::RunLimits::total_bytes_max). All runs of an owner together hold at most a
    /// quarter of what the others leave of it; one run alone may hold more.
    pub held_bytes: u64,
    /// The name that its starter gives it.
    pub name: Option<RunName>,
    /// The input as its watchers see it.
    pub input: Option<ShownInput>,
    /// The work.
    pub work: RunWork,
}

impl StartRun {
    /// Returns the start of a run by the program itself: of no client, and without a key, a name and an input.
    pub fn new(service: impl Into<String>, work: RunWork) -> Self {
        let service = service.into();
        let (is_exempt, is_timed, is_attached) = (false, false, false);
        let (owner, key, name, input, held_bytes) = (None, None, None, None, 0);
        Self {
            service,
            owner,
            is_exempt,
            is_timed,
            key,
            is_attached,
            held_bytes,
            name,
            input,
            work,
        }
    }
}

/// A run that was started, now or earlier.
#[derive(Debug)]
pub struct Started {
    /// The run.
    pub run: Arc<Run>,
    /// True if its key was known: this is the run of the first time.
    pub is_replayed: bool,
    /// The belonging of the run to the client, if the start has asked for it. It replaces an earlier one.
    pub attachment: Option<Attachment>,
}

/// An error of starting a run. There is no run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The queue is full (HTTP 503).
    #[error("the queue of runs is full")]
    QueueFull,
    /// The client has too many runs in the queue (HTTP 503).
    #[error("this client has too many runs in the queue")]
    OwnerQueueFull,
    /// The runs that have not ended take all the memory for runs (HTTP 503).
    #[error("the runs take all the memory that they may")]
    MemoryFull,
    /// The inputs of this client's runs take all the memory that they may (HTTP 503).
    #[error("the inputs of this client's runs take all the memory that they may")]
    OwnerMemoryFull,
    /// The key was used with another input (HTTP 422).
    #[error("this idempotency key was used for another run a short while ago")]
    KeyReused,
    /// The runs were stopped (HTTP 503).
    #[error("no run starts any more")]
    Stopping,
    /// The system gave no random bytes, or no thread.
    #[error("the system cannot start a run")]
    System(#[from] io::Error),
}

impl From<QueueFull> for StartError {
    fn from(full: QueueFull) -> Self {
        match full {
            QueueFull::ForAll => Self::QueueFull,
            QueueFull::ForOwner => Self::OwnerQueueFull,
        }
    }
}
