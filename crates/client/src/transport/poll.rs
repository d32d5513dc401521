//! Poll: requests a page at an interval.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep_until};

use super::link::{Link, Reading};
use super::pages::Pages;
use crate::Error;
use crate::item::ServerItem;

struct Poll {
    pages: Pages,
    interval: Duration,
    due_at: Instant,
}

pub(super) fn open(reading: Reading) -> impl Link {
    let interval = reading.options.timeouts.poll_interval;
    Poll { pages: Pages::new(reading), interval, due_at: Instant::now() }
}

impl Link for Poll {
    fn read<'a>(&'a mut self, items: &'a mut Vec<ServerItem>) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            sleep_until(self.due_at).await;
            let asked_at = Instant::now();
            let turned = self.pages.turn(None, items).await?;
            if !(turned.is_full && turned.is_forward) {
                self.due_at = asked_at + self.interval;
            }
            Ok(())
        })
    }

    fn quiet_max(&self) -> Duration {
        self.interval
    }
}
