//! The limits of runs.

use std::thread::available_parallelism;
use std::time::Duration;

/// The limits of [`Runs`](crate::run::Runs).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RunLimits {
    /// The most works at once, each on a thread of its own; the others wait in a queue. The owners who wait take turns,
    /// and none of them gets more than half of this, rounded up, while others wait. A cancelled work counts until it
    /// returns. Default: one for each processor, at least 2, so that one long run does not keep all
    /// others waiting. [Light](crate::run::RunWork::light) works do not count: they have 16 times as many slots of their own,
    /// at most 256, and a queue that is as fair.
    pub running_max: usize,
    /// The most runs in both queues together. Default 1,000.
    pub queued_max: usize,
    /// The most of these from one owner. Default 100: a tenth, so that one client cannot take the whole queue.
    pub queued_per_owner_max: usize,
    /// The longest time of a run after its start. It fails then. Default `None`: [`CLIENT_TIME_MAX`](Self::CLIENT_TIME_MAX) for
    /// those that are [timed](crate::run::StartRun::is_timed), and no limit for others.
    pub time_max: Option<Duration>,
    /// The time for which a run is kept after its end. Default 10 min, enough to come back after a network cut.
    pub retention: Duration,
    /// The most events of a run that are kept, with its last one; the oldest ones go. Default 100,000.
    pub events_max: u64,
    /// The most bytes of these, counted as in [`Retention::bytes_max`](crate::Retention::bytes_max), and the most
    /// bytes of a result. Default 16 MiB. The bytes of the last event, which has the result, come on top and push out no
    /// other event.
    pub bytes_max: u64,
    /// The most bytes of all runs: events, results, standard error, and works with their inputs. Default 256 MiB. The owner
    /// whose runs take the most makes room: with those that have ended, oldest first, then with the oldest events of
    /// those that work. Then comes the next smaller one. When it is the turn of the owner of a run that grows and that has
    /// no ended ones, this run loses its oldest events; a run that is to start does not.
    /// Up to 16 KiB of each that is running are counted a moment later.
    pub total_bytes_max: u64,
}

impl RunLimits {
    /// The longest time of a run that is timed, unless there is a limit for all: 1 h.
    pub const CLIENT_TIME_MAX: Duration = Duration::from_secs(3600);

    pub(crate) fn time_max_of(&self, is_timed: bool) -> Option<Duration> {
        self.time_max.or(is_timed.then_some(Self::CLIENT_TIME_MAX))
    }
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            running_max: available_parallelism().map_or(2, |count| count.get().max(2)),
            queued_max: 1_000,
            queued_per_owner_max: 100,
            time_max: None,
            retention: Duration::from_secs(600),
            events_max: 100_000,
            bytes_max: 16 << 20,
            total_bytes_max: 256 << 20,
        }
    }
}
