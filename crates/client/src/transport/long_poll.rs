//! Long poll: the server answers a request once there is an event.
//!
//! The server answers the first request at once, and its page contains the position. Thus no event is lost if the
//! connection breaks before the first event.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep_until};

use super::link::{Link, Reading};
use super::pages::Pages;
use crate::Error;
use crate::item::ServerItem;

/// The longest wait that is asked of the server.
const WAIT_MAX: Duration = Duration::from_secs(25);
/// The least time from one request to the next, if the first one brought nothing new. It avoids a busy loop.
const HASTE: Duration = Duration::from_secs(1);

struct LongPoll {
    pages: Pages,
    /// The wait that is asked of the server; `None` before the first page.
    wait: Option<Duration>,
    due_at: Instant,
}

pub(super) fn open(reading: Reading) -> impl Link {
    LongPoll { pages: Pages::new(reading), wait: None, due_at: Instant::now() }
}

impl Link for LongPoll {
    fn read<'a>(&'a mut self, items: &'a mut Vec<ServerItem>) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            sleep_until(self.due_at).await;
            let asked_at = Instant::now();
            let is_first = self.wait.is_none();
            let turned = self.pages.turn(self.wait, items).await?;
            // The answer must come before the silence counts as a failure.
            let stall = self.pages.reading.options.timeouts.stall;
            self.wait = Some(WAIT_MAX.min(stall / 2));
            if !turned.is_forward && !is_first {
                self.due_at = asked_at + HASTE.min(stall / 2);
            }
            Ok(())
        })
    }
}
