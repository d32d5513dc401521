//! Runs: long computations that end, each with a topic of its own.
//!
//! [`Runs`] has all of them. [`Runs::start`] takes a [`RunWork`], a function that gets a [`RunContext`], and returns a
//! [`Run`]: its [`topic`](Run::topic) has the events, its [`status`](Run::status) the state. The work runs on a thread
//! of its own with a low priority; if as many run as may, it waits in a queue. A [`RunService`] makes the work from
//! the input of a client.
//!
//! A run goes on until its work returns, panics, is cancelled ([`Run::cancel`]) or takes too long. Its last event is
//! then the last event of its topic, and its readers get [`ReadError::Ended`](crate::ReadError::Ended) after it. It is
//! kept for a while ([`RunLimits`]).
//!
//! ```
//! use anemone_hub::run::{RunLimits, RunState, RunWork, Runs, StartRun};
//! use anemone_hub::{After, Data, UnixTime};
//!
//! let runs = Runs::new(RunLimits::default());
//! let work = RunWork::new(|run| {
//!     for number in 1..=3_u32 {
//!         run.partial(&Data::json(&(number * number)).unwrap())?;
//!         run.progress(f64::from(number) / 3.0, Some("squares"))?;
//!     }
//!     Ok(Some(Data::json(&14).unwrap()))
//! });
//! let run = runs.start(StartRun::new("/squares", work))?.run;
//! # while !run.has_ended() { std::thread::yield_now() }
//! let status = run.status(std::time::Instant::now());
//! assert_eq!((status.state, status.result()), (RunState::Done, Some("14")));
//! let first = run.topic().start(UnixTime::now(), After::Earliest)?;
//! let page = run.topic().read(UnixTime::now(), first, Default::default())?;
//! assert_eq!(page.events[0].data.as_str(), r#"{"state":"running"}"#);
//! assert_eq!(page.events.last().unwrap().data.as_str(), r#"{"state":"done","result":14}"#);
//! assert!(page.is_last);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod alarm;
mod attachment;
mod context;
mod estimate;
mod events;
mod failure;
mod forecast;
mod held;
mod input;
mod key;
mod lane;
mod lane_queue;
mod limits;
mod list;
mod moment;
mod name;
mod owner;
mod place;
mod progress;
mod queue;
mod registry;
#[expect(clippy::module_inception, reason = "the run itself")]
mod run;
mod runs;
mod service;
mod shares;
mod shown_input;
mod start;
mod state;
mod status;
#[cfg(test)]
mod tests;
mod thread;

pub use anemone_wire::RunState;
pub use attachment::Attachment;
pub use context::RunContext;
pub use failure::{RunFailure, RunOutcome, Stopped};
pub use input::{InputDigest, RunInput};
pub use key::{RunKey, RunKeyError};
pub use limits::RunLimits;
pub use list::RunList;
pub use name::{RunName, RunNameError};
pub use owner::OwnerKey;
pub(crate) use queue::{QueueLimits, SlotQueue};
pub use run::{Run, RunEnded};
pub use runs::Runs;
pub use service::{RunRefusal, RunService, RunWork};
pub use shown_input::ShownInput;
pub use start::{StartError, StartRun, Started};
pub use status::RunStatus;
pub use thread::lower_priority;
