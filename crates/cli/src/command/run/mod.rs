//! `anemone run`: starts a run, and watches it to its end.
//!
//! A run goes on when this command ends, unless `--cancel-on-exit` says otherwise.

mod bar;
mod lost;
mod screen;

use std::io;

use anemone_client::{
    Call, Client, Error, Item, Retry, RunChange, RunEvent, RunHandle, Subscription,
};
use anemone_sources::printable;
use form_urlencoded::byte_serialize;
use tokio::signal::unix::SignalKind;

pub(crate) use self::lost::ResultsLost;
use self::screen::Screen;
use super::call::{connected, told, with_key};
use super::misuse::check_service;
use super::{EndSignals, form, runtime, sub};
use crate::args::{self, RunOutput};
use crate::output::{self, report};

pub(crate) fn run(args: &args::Run) -> anyhow::Result<()> {
    let runtime = runtime()?;
    // A signal ends this process while it reads the body.
    let beginning = Beginning::of(args)?;
    let mut signals = EndSignals::listen(&runtime)?;
    runtime.block_on(async {
        let run = match beginning {
            Beginning::Watch(run) => run,
            Beginning::Start(call) => {
                let mark = call.mark();
                let started = tokio::select! {
                    started = call.start_run() => Ok(match started {
                        Ok(run) => run,
                        Err(error) => {
                            suggest_services(args, &error).await;
                            return Err(told(error));
                        }
                    }),
                    signal = signals.next() => Err(signal),
                };
                started.unwrap_or_else(|signal| {
                    report(match mark.is_doubtful() {
                        true => "the run may or may not have been started",
                        false => "the run was not started",
                    });
                    end(signal)
                })
            }
        };
        if !args.watch && !args.detach && !args.reach.quiet {
            tracing::info!("started {}", run.url());
        }
        if !args.watch && !args.reach.quiet {
            args.body.warn_of_unsent();
        }
        if args.detach {
            output::print([run.url()])?;
            return Ok(());
        }
        let mut watcher = Watcher::start(args, run)?;
        let end = match watcher.watch(signals).await {
            Ok(End::Ended) => watcher.tell().await,
            Ok(End::Unread) => {
                watcher.leave();
                Ok(())
            }
            Err(error) => {
                watcher.screen.clear()?;
                Err(error)
            }
        };
        end.map_err(|error| if watcher.is_forgotten(&error) { Forgotten.into() } else { error })
    })
}

/// After a refusal for a missing path, lists the services that start runs.
async fn suggest_services(args: &args::Run, error: &Error) {
    let Error::Refused(refused) = error else { return };
    if refused.problem() != Some("unknown-path") {
        return;
    }
    let described = async {
        let (client, _) = Client::split(&args.url).ok()?;
        let client = connected(client, &args.url, args.via, &args.reach, args.retries).ok()?;
        let reply = client.call("GET", "/openapi.json").send().await.ok()?;
        Some((client.url(), reply.json::<serde_json::Value>().ok()?))
    };
    let Some((url, described)) = described.await else { return };
    let starts = |item: &serde_json::Value| {
        item["post"]["operationId"].as_str().is_some_and(|id| id.starts_with("start_"))
    };
    let services = described["paths"].as_object().into_iter().flatten();
    let lines: String = services
        .filter(|(_, item)| starts(item))
        .take(SERVICES_TOLD_MAX)
        .map(|(path, _)| format!("\n  {url}{}", printable(path)))
        .collect();
    report(&match lines.is_empty() {
        true => "this server has no services that start runs".to_owned(),
        false => format!("these services start runs:{lines}"),
    });
}

/// The most services that are listed.
const SERVICES_TOLD_MAX: usize = 20;

/// A run that was there is unknown to its server now.
#[derive(Debug, thiserror::Error)]
#[error("the server has forgotten the run (has it restarted?)")]
pub(crate) struct Forgotten;

/// Ends the process as this signal would.
fn end(signal: SignalKind) -> ! {
    crate::log::flush();
    std::process::exit(128 + signal.as_raw_value())
}

/// A run before anything is sent.
enum Beginning {
    Watch(RunHandle),
    Start(Call),
}

impl Beginning {
    /// Returns the run to watch, or the call with its body, which it reads.
    fn of(args: &args::Run) -> anyhow::Result<Self> {
        let (client, target) = Client::split(&args.url)?;
        if !args.watch {
            check_service(&args.url)?;
        }
        let client = connected(client, &args.url, args.via, &args.reach, args.retries)?;
        if args.watch {
            // The client of a handle has the server of the URL.
            return Ok(Self::Watch(RunHandle::at(&args.url)?.with(|_| client)));
        }
        let target = match &args.name {
            Some(name) => named(&target, name),
            None => target,
        };
        let call = args.body.apply(client.call("POST", target))?;
        Ok(Self::Start(with_key(call, args.key.as_deref())))
    }
}

/// Returns the path and query of a start with a name for its run.
fn named(target: &str, name: &str) -> String {
    let name = byte_serialize(name.as_bytes()).collect::<String>();
    format!("{target}{}name={name}", if target.contains('?') { '&' } else { '?' })
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    Ended,
    /// Nobody reads the output.
    Unread,
}

struct Watcher<'a> {
    args: &'a args::Run,
    run: RunHandle,
    events: Subscription,
    screen: Screen,
    lost: ResultsLost,
    change: Option<RunChange>,
    /// True while the run is known to exist: it was started, or is being read.
    is_known: bool,
    /// True once the run was known to exist.
    was_known: bool,
}

impl<'a> Watcher<'a> {
    fn start(args: &'a args::Run, run: RunHandle) -> anyhow::Result<Self> {
        let retry = Retry { failures_max: args.retries.filter(|_| args.watch), ..Retry::default() };
        let events = run.watch().retry(retry).start()?;
        let (screen, lost) = (Screen::new(args.reach.quiet), ResultsLost::default());
        let is_known = !args.watch;
        Ok(Self { screen, lost, args, run, events, change: None, is_known, was_known: is_known })
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
                () = self.screen.due() => match self.screen.flush()? {
                    true => continue,
                    false => return Ok(End::Unread),
                },
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
        if !self.args.cancel_on_exit || *is_cancelled {
            self.leave();
            end(signal);
        }
        self.screen.clear()?;
        *is_cancelled = true;
        report("cancelling the run; interrupt again to leave it");
        match self.run.cancel().await {
            Err(Error::Refused(refused)) if refused.problem() == Some("run-ended") => Ok(()),
            cancelled => Ok(cancelled.map(drop)?),
        }
    }

    /// Says what is known of the run, and how to find it again.
    fn leave(&mut self) {
        // Nobody may read the output.
        let _ = self.screen.clear();
        if self.change.as_ref().is_some_and(|change| change.state.is_end()) {
            return report("the run has ended");
        }
        let (url, key, flags) = (self.run.url(), self.run.key(), self.args.reach.flags());
        let server = args::shell_word(url.strip_suffix(&format!("/runs/{key}")).unwrap_or(&url));
        let url = args::shell_word(&url);
        let known = match self.is_known {
            true => "the run goes on",
            false => "there is no connection: it is not known whether the run exists",
        };
        report(&format!(
            "{known}\nto watch it:  anemone run --watch {url}{flags}\nto cancel it: anemone runs {server} --cancel {key}{flags}"
        ));
    }

    /// Shows an item. Returns false once nobody reads the output.
    fn show(&mut self, item: &Item) -> anyhow::Result<bool> {
        let is_json = self.args.output == RunOutput::Json;
        self.is_known = !matches!(item, Item::Disconnected { .. });
        self.was_known |= self.is_known;
        if let Item::Gap(gap) = item {
            self.lost.add(gap);
        }
        let told = match item {
            Item::Connected { .. } | Item::Disconnected { .. } => {
                let is_quiet = self.args.reach.quiet;
                self.screen.after_all(|| sub::report_connection(item, is_quiet))?
            }
            Item::Gap(gap) if !is_json => self.screen.after_all(|| tracing::warn!("{gap}"))?,
            _ => true,
        };
        let printed = match item.to_json() {
            Some(line) if is_json && !matches!(item, Item::Position(_)) => {
                self.screen.print(format!("{line}\n").as_bytes())?
            }
            _ => true,
        };
        let Item::Event { data, .. } = item else { return Ok(told && printed) };
        match RunEvent::parse(data) {
            Some(RunEvent::Partial(json)) => return Ok(self.print(&json)? && printed),
            Some(RunEvent::Progress(progress)) => self.screen.bar.progress(&progress),
            Some(RunEvent::State(change)) => {
                self.screen.bar.state(&change);
                self.change = Some(change);
            }
            _ => {}
        }
        Ok(printed)
    }

    /// Prints a result, maybe later. Returns false once nobody reads the output.
    fn print(&mut self, json: &str) -> io::Result<bool> {
        match self.args.output {
            RunOutput::Data => self.screen.print(&form::data(json)),
            RunOutput::Line => self.screen.print(&form::line(json)),
            // Its event is printed.
            RunOutput::Json => Ok(true),
        }
    }

    async fn tell(&mut self) -> anyhow::Result<()> {
        self.screen.clear()?;
        let outcome = match self.change.take().and_then(RunChange::outcome) {
            Some(outcome) => outcome,
            // The last event was not retained.
            None => self.run.result().await,
        };
        match outcome {
            Ok(result) => {
                if let Some(json) = result {
                    self.print(&json)?;
                    self.screen.flush()?;
                }
                if self.lost.is_none() { Ok(()) } else { Err(self.lost.into()) }
            }
            Err(error @ Error::RunFailed { .. }) => {
                self.print_stderr().await;
                Err(error.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns true if the error means that the server no longer knows the run, which was there before.
    fn is_forgotten(&self, error: &anyhow::Error) -> bool {
        let is_unknown = match error.downcast_ref() {
            Some(Error::Refused(refused)) => refused.problem() == Some("unknown-run"),
            _ => false,
        };
        self.was_known && is_unknown
    }

    /// Prints what a program has written to its standard error, which may say more about its failure.
    async fn print_stderr(&self) {
        if let Ok(status) = self.run.state().await
            && let Some(stderr) = status.stderr
        {
            report(&stderr);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_parameter_of_the_start() {
        assert_eq!(named("/primes", "up to 10 %"), "/primes?name=up+to+10+%25");
        assert_eq!(named("/primes?to=9", "a&b=é"), "/primes?to=9&name=a%26b%3D%C3%A9");
    }
}
