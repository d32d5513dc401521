//! The log lines about calls that are made again.

use std::time::Duration;

use crate::Error;
use crate::error::chain;

/// Logs that a call is made again, and why. The same cause may come many times in a row; it is logged only the first
/// time.
#[derive(Debug)]
pub(super) struct RetryLog {
    url: String,
    advice: &'static str,
    cause: String,
}

impl RetryLog {
    /// Creates the log of a call to the server at `url`.
    pub(super) fn new(url: String, advice: &'static str) -> Self {
        Self { url, advice, cause: String::new() }
    }

    /// Logs that a call is made again after `delay`, and for how long attempts may go on.
    pub(super) fn tell(&mut self, error: &Error, delay: Duration, longest: Option<Duration>) {
        match self.words(error, delay, longest) {
            Some(words) => tracing::warn!("{words}"),
            None => tracing::debug!("no reply again, trying again in {delay:.1?}"),
        }
    }

    /// Returns the text of the log line, if the cause is another one than the last.
    fn words(
        &mut self,
        error: &Error,
        delay: Duration,
        longest: Option<Duration>,
    ) -> Option<String> {
        let cause = chain(error);
        if cause == self.cause {
            return None;
        }
        let limit = match longest {
            Some(longest) => format!("for up to {:.0} s", longest.as_secs_f64().ceil()),
            None => "until it succeeds".to_owned(),
        };
        let advice = if self.advice.is_empty() { "" } else { "; " };
        let advice = format!("{advice}{}", self.advice);
        let words = match error.is_connection_refused() {
            true => format!(
                "connection refused (is the server running at {}?), trying again {limit}{advice}",
                self.url
            ),
            false => format!("no reply, trying again in {delay:.1?}, {limit}{advice}: {cause}"),
        };
        self.cause = cause;
        Some(words)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use anemone_ws::{ConnectError, Step};

    use super::*;

    #[test]
    fn a_server_that_does_not_run_is_told_once_and_first() {
        let mut log = RetryLog::new("http://a:1".to_owned(), "--few gives up sooner");
        let source = || io::ErrorKind::ConnectionRefused.into();
        let refused = || Error::from(ConnectError::Stream { step: Step::Tcp, source: source() });
        let mut words = |error| {
            log.words(&error, Duration::from_millis(90), Some(Duration::from_millis(63_750)))
        };
        assert_eq!(
            words(refused()).unwrap(),
            "connection refused (is the server running at http://a:1?), trying again for up to 64 s; --few gives up sooner"
        );
        assert_eq!(words(refused()), None);
        assert_eq!(
            words(Error::Ended).unwrap(),
            "no reply, trying again in 90.0ms, for up to 64 s; --few gives up sooner: server ended the stream"
        );
        assert!(words(refused()).is_some());
    }
}
