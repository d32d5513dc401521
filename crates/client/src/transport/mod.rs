//! One file for each transport; none knows another.

mod long_poll;
mod multiplexed;
mod ndjson;
mod poll;
mod sse;
mod tcp;
mod websocket;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::address::Address;
use crate::http::{Ask, Http};
use crate::options::Options;
use crate::wire::{Malformed, Wire, page};
use crate::{After, Error, Mode, Via};

/// The topic that is to be read, and from where on.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) address: Arc<Address>,
    pub(crate) options: Arc<Options>,
    pub(crate) after: After,
    pub(crate) mode: Mode,
}

/// A connection that is read from.
pub(crate) trait Link: Send {
    /// Waits for what comes next, and appends what it says to `wires`: nothing, when it was a sign of life
    /// alone. What was appended before an error counts.
    fn read<'a>(&'a mut self, wires: &'a mut Vec<Wire>) -> BoxFuture<'a, Result<(), Error>>;

    /// The time that it may be quiet, where it is that on purpose.
    fn is_quiet_for(&self) -> Duration {
        Duration::ZERO
    }
}

/// Opens a connection.
pub(crate) async fn open(via: Via, reading: Reading) -> Result<Box<dyn Link>, Error> {
    Ok(match via {
        Via::WebSocket => Box::new(websocket::open(&reading).await?),
        Via::Mux => Box::new(multiplexed::open(&reading).await?),
        Via::Sse => Box::new(sse::open(&reading).await?),
        Via::Ndjson => Box::new(ndjson::open(&reading).await?),
        Via::LongPoll => Box::new(long_poll::open(reading)),
        Via::Poll => Box::new(poll::open(reading)),
        Via::Tcp => Box::new(tcp::open(&reading).await?),
    })
}

impl Reading {
    /// The parameters that every transport takes.
    fn parameters(&self, after: &After) -> Vec<(&'static str, String)> {
        let mut parameters = vec![after.parameter()];
        if self.mode == Mode::Latest {
            parameters.push(("mode", "latest".to_owned()));
        }
        parameters
    }

    /// Path and query of a stream.
    fn target(&self) -> String {
        self.address.target(&self.parameters(&self.after))
    }

    /// The multiplexed socket, and the target on it.
    fn multiplexed(&self) -> Result<(String, String), Error> {
        Ok(self.address.multiplexed(&self.parameters(&self.after))?)
    }
}

/// The pages of both polls, one after the other.
struct Pages {
    reading: Reading,
    http: Http,
    /// Whether a page has come; the first one asks for a position as a stream does, to begin there.
    has_begun: bool,
}

/// The result of asking for a page.
struct Turned {
    /// Whether reading has got any further.
    is_forward: bool,
    /// Whether there is probably more where it came from.
    is_full: bool,
}

impl Pages {
    fn new(reading: Reading) -> Self {
        let http = Http::new(Arc::clone(&reading.address), Arc::clone(&reading.options));
        Self { reading, http, has_begun: false }
    }

    /// Asks for the next page, which the server may wait for.
    async fn turn(
        &mut self,
        wait: Option<Duration>,
        wires: &mut Vec<Wire>,
    ) -> Result<Turned, Error> {
        /// As many events as a server has in a page unless it is told otherwise, and as many bytes.
        const FULL: (usize, usize) = (1000, 1 << 20);
        /// After a position: reading begins there, however much has gone since. Without it a topic that ends slow
        /// readers would end whoever comes back, again and again.
        const ANEW: &str = "~";
        let asked = self.reading.after.clone();
        let mut parameters = self.reading.parameters(&asked);
        if !self.has_begun && matches!(asked, After::Position(_)) {
            parameters[0].1.push_str(ANEW);
        }
        if let Some(wait) = wait {
            parameters.push(("wait", wait.as_secs_f64().to_string()));
        }
        let target = self.reading.address.target(&parameters);
        let answer = self.http.send(&Ask::get(target, "application/json")).await?;
        let mut body = self.http.expect(answer, "application/json").await?;
        let limit = self.reading.options.limits.page_bytes_max;
        let text = self.http.whole(&mut body, limit).await?;
        let page = page::parse(&text)?;
        if let After::Position(asked) = &asked
            && asked.epoch() == page.next.epoch()
            && asked.offset() > page.next.offset()
        {
            // To follow it would be to go round in circles.
            return Err(Malformed::Page.into());
        }
        wires.extend(page.wires);
        self.reading.after = After::Position(page.next);
        self.has_begun = true;
        Ok(Turned {
            is_forward: self.reading.after != asked,
            is_full: page.events >= FULL.0 || text.len() >= FULL.1,
        })
    }
}
