//! Runs: long computations of a server. A run continues when its client has gone.

mod event;

pub use event::{RunChange, RunEvent, RunProgress, RunStatus};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::address::is_run_key;
use crate::call::{Call, Client};
use crate::error::Foreign;
use crate::subscription::Subscribe;
use crate::text::encoded;
use crate::{
    CallVia, Error, Item, Malformed, Mode, Reply, Retry, RunState, Timeouts, UrlError, Via,
};

/// A run on a server. Dropping it does nothing to the run.
///
/// ```no_run
/// # async fn example() -> Result<(), anemone_client::Error> {
/// use anemone_client::{Client, Item, RunEvent};
///
/// let client = Client::new("http://127.0.0.1:8080/")?;
/// let run = client.call("POST", "/primes").json("1000000").start_run().await?;
/// let mut events = run.watch().start()?;
/// while let Some(item) = events.next().await? {
///     if let Item::Event { data, .. } = item {
///         if let Some(RunEvent::Partial(json)) = RunEvent::parse(&data) {
///             println!("{json}");
///         }
///     }
/// }
/// println!("{:?}", run.result().await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RunHandle {
    client: Client,
    key: String,
}

impl Call {
    /// Starts a run instead of waiting for a reply (`Prefer: respond-async`). Any service can be run. The call has a
    /// key, so the run is started once, with as many attempts as necessary.
    ///
    /// # Errors
    /// As [`send`](Self::send); [`Error::NotPost`] for another method, and [`Error::Foreign`] if the server replied, but started no run.
    ///
    /// # Cancel safety
    /// After dropping the future, the run may have started or not.
    pub async fn start_run(self) -> Result<RunHandle, Error> {
        if self.method() != "POST" {
            return Err(Error::NotPost);
        }
        let call = self.clone();
        let reply = self.header("Prefer", "respond-async").retrying().send().await?;
        if reply.status() != 202 {
            return Err(Foreign::NoRun { status: reply.status() }.into());
        }
        let status = status(&reply)?;
        match is_run_key(&status.key) {
            true => {
                let client = call.client_of_run(reply.field("location"), &status.key);
                Ok(RunHandle { client, key: status.key })
            }
            false => Err(Foreign::Content(Malformed::Page).into()),
        }
    }
}

impl RunHandle {
    /// Returns the handle of the run at this URL, such as `http://127.0.0.1:8080/runs/KEY`.
    ///
    /// # Errors
    /// [`Error::Url`] when the URL is not that of a run.
    pub fn at(url: &str) -> Result<Self, Error> {
        let (client, target) = Client::split(url)?;
        let path = target.split('?').next().unwrap_or_default();
        let key = path.strip_prefix("/runs/").filter(|key| is_run_key(key));
        let key = key.ok_or(UrlError::NoRun)?.to_owned();
        Ok(Self { client, key })
    }

    /// Changes the client, for example its transport.
    #[must_use]
    pub fn with(self, change: impl FnOnce(Client) -> Client) -> Self {
        Self { client: change(self.client), ..self }
    }

    /// Returns the key. Whoever has it may read and cancel the run.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}{}", self.client.url(), self.target())
    }

    fn target(&self) -> String {
        format!("/runs/{}", self.key)
    }

    /// Returns a subscription to the run's events, from the first one on. As for any topic, it resumes from its
    /// position when a connection breaks, and ends with [`Item::End`]. [`RunEvent::parse`] parses an event's data.
    pub fn watch(&self) -> Subscribe {
        let mut options = self.client.options().clone();
        options.retry = Retry::default();
        // Events come at once, unlike a reply for which a service works.
        let answer = options.timeouts.answer.min(Timeouts::default().answer);
        options.timeouts = Timeouts { answer, ..options.timeouts };
        let watch = Subscribe::with_options(self.url(), options);
        match self.client.transport() {
            CallVia::Http => watch,
            CallVia::Mux => watch.via(Via::Mux),
            CallVia::Tcp => watch.via(Via::Tcp),
        }
    }

    /// Returns the state of the run.
    ///
    /// # Errors
    /// As [`Call::send`].
    pub async fn state(&self) -> Result<RunStatus, Error> {
        let target = format!("{}?state", self.target());
        status(&self.client.call("GET", target).send().await?)
    }

    /// Cancels the run, and returns its state after that.
    ///
    /// # Errors
    /// As [`Call::send`]; [`Error::Refused`] with `run-ended` if the run has already ended.
    pub async fn cancel(&self) -> Result<RunStatus, Error> {
        match self.client.call("DELETE", self.target()).send().await {
            // It had no answer before, and so may have ended by this.
            Err(Error::Uncertain(error)) if is_refusal(&error, "run-ended") => self.state().await,
            reply => status(&reply?),
        }
    }

    /// Waits for the end of the run, and returns its result as JSON, if it has one.
    ///
    /// # Errors
    /// [`Error::RunFailed`] and [`Error::RunCancelled`] if the run failed or was cancelled; other errors as
    /// [`Subscription::next`](crate::Subscription::next).
    ///
    /// # Cancel safety
    /// Dropping the future does nothing to the run.
    pub async fn result(&self) -> Result<Option<String>, Error> {
        let mut events = self.watch().mode(Mode::Latest).start()?;
        let mut outcome = None;
        while let Some(item) = events.next().await? {
            if let Item::Event { data, .. } = item
                && let Some(RunEvent::State(change)) = RunEvent::parse(&data)
            {
                outcome = change.outcome();
            }
        }
        match outcome {
            Some(outcome) => outcome,
            // The last event is no longer retained, but its state is.
            None => self.state().await?.change.outcome().unwrap_or(Err(Error::Ended)),
        }
    }
}

/// A part of the list of a server's runs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RunList {
    /// The number of all runs that match, listed or not; `None` if the server does not say.
    pub total: Option<u64>,
    /// The listed runs: the first of those that match.
    pub runs: Vec<RunStatus>,
}

impl Client {
    /// Lists the runs of the server in these states, or in all states if none is given: at most `limit` runs, 1 to 1,000.
    /// Runs that have not ended come first, then the others, both from the newest to the oldest. Only clients on the
    /// server's machine may list runs.
    ///
    /// # Errors
    /// As [`Call::send`].
    pub async fn runs(&self, states: &[RunState], limit: u32) -> Result<RunList, Error> {
        self.listed("", states, limit).await
    }

    /// Lists the runs of the service at this path, such as `/primes`. Apart from that, it is like [`Self::runs`].
    ///
    /// # Errors
    /// As [`Call::send`].
    pub async fn runs_of(
        &self,
        service: &str,
        states: &[RunState],
        limit: u32,
    ) -> Result<RunList, Error> {
        self.listed(&format!("&service={}", encoded(service)), states, limit).await
    }

    async fn listed(
        &self,
        service: &str,
        states: &[RunState],
        limit: u32,
    ) -> Result<RunList, Error> {
        #[derive(Deserialize)]
        struct List<'a> {
            total: Option<u64>,
            #[serde(borrow)]
            runs: Vec<&'a RawValue>,
        }
        let states: Vec<_> = states.iter().map(|state| state.as_str()).collect();
        let parameter =
            if states.is_empty() { String::new() } else { format!("&state={}", states.join(",")) };
        let reply =
            self.call("GET", format!("/runs?limit={limit}{service}{parameter}")).send().await?;
        let list: List<'_> =
            serde_json::from_slice(reply.body()).map_err(|error| foreign(error.into()))?;
        let runs = list.runs.into_iter().map(|run| RunStatus::parse(run.get().as_bytes()));
        let runs = runs.collect::<Result<_, _>>().map_err(foreign)?;
        Ok(RunList { total: list.total, runs })
    }
}

fn status(reply: &Reply) -> Result<RunStatus, Error> {
    RunStatus::parse(reply.body()).map_err(foreign)
}

fn foreign(error: Malformed) -> Error {
    Foreign::Content(error).into()
}

fn is_refusal(error: &Error, problem: &str) -> bool {
    matches!(error, Error::Refused(refused) if refused.problem() == Some(problem))
}
