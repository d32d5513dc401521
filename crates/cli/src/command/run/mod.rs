//! `anemone run`: starts a run, and watches it to its end.
//!
//! A run goes on when this command ends, unless `--cancel-on-exit` says otherwise.

mod bar;

use anemone_client::{
    Client, Error, Item, Retry, RunChange, RunEvent, RunHandle, Subscription, one_line,
};
use tokio::signal::unix::SignalKind;

use self::bar::Bar;
use super::call::{connected, with_key};
use super::{EndSignals, runtime, sub};
use crate::args::{self, RunOutput};
use crate::output::{self, report};

pub(crate) fn run(args: &args::Run) -> anyhow::Result<()> {
    let runtime = runtime()?;
    let mut signals = EndSignals::listen(&runtime)?;
    runtime.block_on(async {
        let run = tokio::select! {
            run = handle(args) => run?,
            signal = signals.next() => {
                if !args.watch {
                    report("the run may or may not have been started");
                }
                end(signal)
            }
        };
        if args.detach {
            output::print([run.url()])?;
            return Ok(());
        }
        let mut watcher = Watcher::start(args, run)?;
        match watcher.watch(signals).await? {
            End::Ended => watcher.tell().await,
            End::Unread => Ok(()),
        }
    })
}

/// Ends the process as this signal would.
fn end(signal: SignalKind) -> ! {
    crate::log::flush();
    std::process::exit(128 + signal.as_raw_value())
}

/// Starts the run, or finds the one to watch.
async fn handle(args: &args::Run) -> anyhow::Result<RunHandle> {
    let client = |client: Client| connected(client, &args.url, args.via, &args.reach, args.retries);
    if args.watch {
        let run = RunHandle::at(&args.url)?;
        // The client of a handle has the server of the URL.
        let (own, _) = Client::split(&args.url)?;
        let own = client(own)?;
        return Ok(run.with(|_| own));
    }
    let (own, target) = Client::split(&args.url)?;
    let call = args.body.apply(client(own)?.call("POST", target))?;
    let run = with_key(call, args.key.as_deref()).start_run().await?;
    if !args.detach && !args.reach.quiet {
        tracing::info!("started {}", run.url());
    }
    Ok(run)
}

/// The end of watching.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    /// The run has ended.
    Ended,
    /// Nobody reads the output.
    Unread,
}

struct Watcher<'a> {
    args: &'a args::Run,
    run: RunHandle,
    events: Subscription,
    bar: Bar,
    /// The last change of the state.
    change: Option<RunChange>,
}

impl<'a> Watcher<'a> {
    fn start(args: &'a args::Run, run: RunHandle) -> anyhow::Result<Self> {
        let retry = Retry { failures_max: args.retries.filter(|_| args.watch), ..Retry::default() };
        let events = run.watch().retry(retry).start()?;
        Ok(Self { bar: Bar::new(args.reach.quiet), args, run, events, change: None })
    }

    /// Prints events up to the end of the run.
    async fn watch(&mut self, mut signals: EndSignals) -> anyhow::Result<End> {
        let unread = output::unread();
        tokio::pin!(unread);
        let mut is_cancelled = false;
        loop {
            let item = tokio::select! {
                item = self.events.next() => item?,
                signal = signals.next() => {
                    self.on_signal(signal, &mut is_cancelled).await?;
                    continue;
                }
                () = &mut unread => return Ok(End::Unread),
            };
            let Some(item) = item else { return Ok(End::Ended) };
            if !self.show(&item)? {
                return Ok(End::Unread);
            }
        }
    }

    /// Cancels the run at the first signal, if that is wanted. Otherwise says how to find it again, and ends.
    async fn on_signal(
        &mut self,
        signal: SignalKind,
        is_cancelled: &mut bool,
    ) -> anyhow::Result<()> {
        self.bar.clear();
        if !self.args.cancel_on_exit || *is_cancelled {
            report(&self.way_back());
            end(signal);
        }
        *is_cancelled = true;
        report("cancelling the run; interrupt again to leave it");
        match self.run.cancel().await {
            Err(Error::Refused(refused)) if refused.problem() == Some("run-ended") => Ok(()),
            cancelled => Ok(cancelled.map(drop)?),
        }
    }

    fn way_back(&self) -> String {
        let (url, key) = (self.run.url(), self.run.key());
        let server = url.strip_suffix(&format!("/runs/{key}")).unwrap_or(&url);
        format!(
            "the run goes on\nto watch it:  anemone run --watch {url}\nto cancel it: anemone runs {server} --cancel {key}"
        )
    }

    /// Shows an item. Returns false once nobody reads the output.
    fn show(&mut self, item: &Item) -> anyhow::Result<bool> {
        let is_quiet = self.args.reach.quiet;
        self.bar.suspend(|| sub::report_connection(item, is_quiet));
        let event = match item {
            Item::Event { data, .. } => RunEvent::parse(data),
            _ => None,
        };
        if self.args.output == RunOutput::Json {
            let line = item.to_json().filter(|_| !matches!(item, Item::Position(_)));
            if !self.bar.suspend(|| output::print(line))? {
                return Ok(false);
            }
        }
        match (event, item) {
            (Some(RunEvent::Partial(json)), _) if self.args.output == RunOutput::Data => {
                return Ok(self.bar.suspend(|| output::print([one_line(&json)]))?);
            }
            (Some(RunEvent::Progress(progress)), _) => self.bar.progress(&progress),
            (Some(RunEvent::State(change)), _) => {
                self.bar.state(&change);
                self.change = Some(change);
            }
            (_, Item::Gap(gap)) if self.args.output == RunOutput::Data => {
                self.bar.suspend(|| tracing::warn!("{gap}"));
            }
            _ => {}
        }
        Ok(true)
    }

    /// Prints the result, or returns the failure.
    async fn tell(&mut self) -> anyhow::Result<()> {
        self.bar.clear();
        let outcome = match self.change.take().and_then(RunChange::outcome) {
            Some(outcome) => outcome,
            // The last event was not retained.
            None => self.run.result().await,
        };
        match outcome {
            Ok(Some(json)) if self.args.output == RunOutput::Data => {
                output::print([one_line(&json)])?;
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(error @ Error::RunFailed { .. }) => {
                self.print_stderr().await;
                Err(error.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Prints what a program has written to its standard error, which may say more about its failure.
    async fn print_stderr(&self) {
        if self.args.reach.quiet {
            return;
        }
        if let Ok(status) = self.run.state().await
            && let Some(stderr) = status.stderr
        {
            report(&stderr);
        }
    }
}
