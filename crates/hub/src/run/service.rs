//! Run services: from an input to the work of a run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{fmt, mem};

use super::context::RunContext;
use super::failure::{RunFailure, RunOutcome};
use super::input::RunInput;
use super::lane::{self, RunLane};
use super::thread::Priority;

/// Makes the work of a run from the input of a client.
///
/// A function `Fn(RunInput) -> Result<RunWork, RunRefusal>` is a run service.
///
/// ```
/// use anemone_hub::Data;
/// use anemone_hub::run::{RunInput, RunRefusal, RunService, RunWork};
///
/// /// Adds the numbers up to the one in the body.
/// fn sum(input: RunInput) -> Result<RunWork, RunRefusal> {
///     let refused = || RunRefusal::BadBody("expected a number".into());
///     let last: u64 = serde_json::from_slice(&input.body).map_err(|_| refused())?;
///     Ok(RunWork::new(move |run| {
///         run.check()?; // returns early once the run is cancelled
///         Ok(Some(Data::json(&(1..=last).sum::<u64>()).expect("a number is JSON")))
///     }))
/// }
///
/// let body = |text: &'static str| RunInput { body: text.into(), ..RunInput::default() };
/// assert!(sum.prepare(body("100")).is_ok());
/// assert!(sum.prepare(body("many")).is_err());
/// ```
pub trait RunService: Send + Sync + 'static {
    /// Checks the input, quickly, and returns the work. The work is done later, on a thread of its own. A server calls this
    /// on a network thread only if [`prepares_at_once`](Self::prepares_at_once) allows that.
    ///
    /// # Errors
    /// [`RunRefusal`] when no run can begin with this input. The client is told so, and there is no run.
    fn prepare(&self, input: RunInput) -> Result<RunWork, RunRefusal>;

    /// Returns true if a server may prepare an input with this body on a network thread, where other clients wait meanwhile.
    /// All other inputs are prepared one after the other, beside the network threads. This is always called on a network
    /// thread, so it must not read the whole body.
    ///
    /// By default, a body of at most [`RunInput::AT_ONCE_BYTES_MAX`] bytes is prepared at once. Return false for every body
    /// of which a few bytes can take long, such as one with compressed data.
    fn prepares_at_once(&self, body: &[u8]) -> bool {
        body.len() <= RunInput::AT_ONCE_BYTES_MAX
    }
}

impl<F> RunService for F
where
    F: Fn(RunInput) -> Result<RunWork, RunRefusal> + Send + Sync + 'static,
{
    fn prepare(&self, input: RunInput) -> Result<RunWork, RunRefusal> {
        self(input)
    }
}

/// The work of a run: a function that computes, and tells how far it is.
///
/// It runs on a thread of its own with a low priority, and may block it. Asynchronous work drives itself there, with
/// [`RunContext::stopped`] beside it. A panic makes the run fail, with its message.
///
/// Work that publishes a result holds the lock of the run's events for a moment, and a thread of low priority may be
/// interrupted in that moment. Work that publishes thousands of results a second, and so delays the run's readers, should publish
/// many at once with [`RunContext::partials`].
pub struct RunWork {
    /// `None` once it begins.
    work: Option<Box<Work>>,
    /// The size of the function with what it has captured.
    bytes: usize,
    /// The bytes that its values own elsewhere, if it says so.
    holding: Option<u64>,
    priority: Priority,
    lane: RunLane,
}

type Work = dyn FnOnce(&RunContext) -> RunOutcome + Send;

impl RunWork {
    /// The part of the time for which a [light](Self::light) work computes at most: one in so many. There are as many slots
    /// for light works in place of each one for those that compute.
    pub const LIGHT_ONE_IN: u32 = lane::LIGHT_ONE_IN;

    /// Makes work of a function.
    pub fn new<W>(work: W) -> Self
    where
        W: FnOnce(&RunContext) -> RunOutcome + Send + 'static,
    {
        let (bytes, priority, lane) = (size_of::<W>(), Priority::Low, RunLane::Computing);
        Self { work: Some(Box::new(work)), bytes, holding: None, priority, lane }
    }

    /// Gives its thread the normal priority. Use it for work that computes nothing itself, but publishes what others do:
    /// a lock that it holds is then soon free. It should give those others a low priority, with
    /// [`lower_priority`](super::lower_priority).
    #[must_use]
    pub fn at_normal_priority(mut self) -> Self {
        self.priority = Priority::Normal;
        self
    }

    /// Says that it is light: it sleeps nearly all the time, such as one that keeps a pace at which people can watch, and
    /// computes for at most one part of the time in [`LIGHT_ONE_IN`](Self::LIGHT_ONE_IN). Light works have slots of their own, so
    /// that runs that compute do not wait for those that sleep. The work has to keep to this itself: nothing measures it.
    #[must_use]
    pub fn light(mut self) -> Self {
        self.lane = RunLane::Light;
        self
    }

    /// Says how many bytes of memory its values own until it begins. They count in place of
    /// [`StartRun::held_bytes`](super::StartRun::held_bytes), which servers set to the size of the input. What it holds while it
    /// works says [`RunContext::hold`].
    #[must_use]
    pub fn holding(mut self, bytes: u64) -> Self {
        self.holding = Some(bytes);
        self
    }

    /// Returns the bytes of memory that it takes itself, with those that it holds. Unless it says, the latter are `held`.
    pub(crate) fn bytes(&self, held: u64) -> u64 {
        self.bytes as u64 + self.holding.unwrap_or(held)
    }

    pub(crate) fn priority(&self) -> Priority {
        self.priority
    }

    pub(crate) fn lane(&self) -> RunLane {
        self.lane
    }

    /// Does the work. A panic is a failure.
    pub(crate) fn run(mut self, context: &RunContext) -> RunOutcome {
        self.work.take().map_or(Ok(None), |work| catch(|| work(context)).unwrap_or_else(Err))
    }
}

impl Drop for RunWork {
    fn drop(&mut self) {
        // Work that never begins may panic when it is dropped; the panic hook has reported that.
        let _ = catch(|| drop(self.work.take()));
    }
}

fn catch<T>(call: impl FnOnce() -> T) -> Result<T, RunFailure> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| {
        let failure = RunFailure::panicked(&*payload);
        // The payload is a value of that code, too. What a second panic leaves is never dropped.
        catch_unwind(AssertUnwindSafe(|| drop(payload))).unwrap_or_else(mem::forget);
        failure
    })
}

impl fmt::Debug for RunWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunWork")
    }
}

/// The reason why an input starts no run.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunRefusal {
    /// The body cannot be parsed (HTTP 400); for JSON, with line and column.
    #[error("{0}")]
    BadBody(String),
    /// The service does not take bodies of this type (HTTP 415).
    #[error("{0}")]
    UnsupportedType(String),
    /// A parameter of the query is not valid (HTTP 400).
    #[error("{0}")]
    BadParameter(String),
    /// The input is well formed, but does not fit (HTTP 422).
    #[error("{detail}")]
    Unprocessable {
        /// The place in the body, as a JSON Pointer (RFC 6901).
        pointer: Option<String>,
        /// A sentence for people.
        detail: String,
    },
}
