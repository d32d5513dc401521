//! Decides whether a call that failed is made again.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::header::HeaderName;
use tokio::time::sleep;

use super::retry_log::RetryLog;
use crate::backoff::Backoff;
use crate::http::Ask;
use crate::sent::{CallMark, Sent};
use crate::{Error, Retry};

/// The header field with the key of a call. A call with a key is safe to repeat.
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The effect of making the same call twice.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Repeat {
    /// The call changes nothing, however often it is made.
    Harmless,
    /// The server knows the key of the call, and carries the call out once.
    Keyed,
    /// Two calls have the same effect as one, but the second answer may be different.
    Same,
    /// The call may be carried out twice.
    Unsafe,
}

impl Repeat {
    /// Returns the effect of making a request twice (RFC 9110 section 9.2).
    pub(super) fn of(ask: &Ask) -> Self {
        match &ask.method {
            &Method::GET | &Method::HEAD | &Method::OPTIONS => Self::Harmless,
            _ if ask.fields.iter().any(|(name, _)| *name == IDEMPOTENCY_KEY) => Self::Keyed,
            &Method::PUT | &Method::DELETE => Self::Same,
            _ => Self::Unsafe,
        }
    }
}

/// The attempts to make one call. Pure.
#[derive(Debug)]
pub(super) struct Attempts {
    repeat: Repeat,
    backoff: Backoff,
    /// True if an attempt that got no answer may have been carried out.
    is_doubtful: bool,
    log: RetryLog,
}

impl Attempts {
    pub(super) fn new(repeat: Repeat, retry: Retry, log: RetryLog) -> Self {
        Self { repeat, backoff: Backoff::new(retry), is_doubtful: false, log }
    }

    /// Takes the error of an attempt. Returns the delay before the next one, or the error to return. `chance` is from
    /// 0 to 1.
    pub(super) fn on_error(
        &mut self,
        error: Error,
        is_sent: bool,
        chance: f64,
    ) -> Result<(Duration, Error), Error> {
        let is_answer = matches!(error, Error::Refused(_));
        // Who does not speak the protocol has carried nothing out.
        self.is_doubtful |= is_sent && !is_answer && !error.is_foreign();
        // With a key, an answer holds for all attempts.
        self.is_doubtful &= !(is_answer && self.repeat == Repeat::Keyed);
        let is_undone = !self.is_doubtful && (!is_answer || is_declined(&error));
        let is_safe = self.repeat != Repeat::Unsafe || is_undone;
        let delay = (is_safe && is_brief(&error))
            .then(|| self.backoff.next_call_delay(chance, error.retry_after()))
            .flatten();
        match delay {
            Some(delay) => Ok((delay, error)),
            None if self.is_doubtful && self.repeat != Repeat::Harmless => {
                Err(Error::Uncertain(Box::new(error)))
            }
            None => Err(error),
        }
    }
}

/// Returns true if the same call may succeed later.
fn is_brief(error: &Error) -> bool {
    match error {
        Error::Refused(refused) => refused.is_brief(),
        Error::Shared(error) => is_brief(error),
        Error::Malformed(_) => false,
        error => !error.is_permanent(),
    }
}

/// Returns true if the server says that it did not begin the call.
fn is_declined(error: &Error) -> bool {
    matches!(error, Error::Refused(refused) if refused.is_declined())
}

/// Makes a call until it succeeds or must not be made again.
pub(super) async fn repeat<T, F: Future<Output = Result<T, Error>>>(
    mut attempts: Attempts,
    mark: &CallMark,
    attempt: impl Fn(Arc<Sent>) -> F,
) -> Result<T, Error> {
    let mut sent = mark.next(false);
    loop {
        let error = match attempt(Arc::clone(&sent)).await {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let (delay, error) = attempts.on_error(error, sent.is_set(), rand::random())?;
        sent = mark.next(attempts.is_doubtful);
        attempts.log.tell(&error, delay, attempts.backoff.longest_total());
        sleep(delay).await;
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderMap;

    use super::*;
    use crate::error::Foreign;
    use crate::refused::Refused;

    #[test]
    fn a_reply_that_is_too_long_is_not_asked_for_again() {
        let too_long = || Error::from(crate::Malformed::TooLong { limit: 8 });
        for error in [too_long(), Error::Shared(Arc::new(too_long()))] {
            assert!(!is_brief(&error), "{error:?}");
        }
    }

    fn ask(method: Method, has_key: bool) -> Ask {
        let fields = has_key.then(|| (IDEMPOTENCY_KEY, "k".to_owned())).into_iter().collect();
        Ask { method, target: "/".to_owned(), fields, body: Bytes::new() }
    }

    fn refused(status: u16) -> Error {
        let now = std::time::SystemTime::UNIX_EPOCH;
        Error::Refused(Box::new(Refused::new(status, &HeaderMap::new(), Bytes::new(), now)))
    }

    fn attempts(method: Method, has_key: bool) -> Attempts {
        let retry = Retry { failures_max: Some(2), ..Retry::default() };
        let log = RetryLog::new(String::new(), "");
        Attempts::new(Repeat::of(&ask(method, has_key)), retry, log)
    }

    #[test]
    fn a_call_without_an_answer_is_repeated_only_if_that_is_safe() {
        for (method, has_key, is_safe) in [
            (Method::GET, false, true),
            (Method::PUT, false, true),
            (Method::DELETE, false, true),
            (Method::POST, false, false),
            (Method::PATCH, false, false),
            (Method::POST, true, true),
            (Method::PATCH, true, true),
        ] {
            let done = attempts(method.clone(), has_key).on_error(Error::Ended, true, 1.0);
            assert_eq!(done.is_ok(), is_safe, "{method}");
            // Nothing has left.
            assert!(attempts(method, has_key).on_error(Error::Ended, false, 1.0).is_ok());
        }
    }

    #[test]
    fn an_answer_is_repeated_if_it_is_brief() {
        for (status, is_brief) in
            [(503, true), (429, true), (500, false), (404, false), (507, false)]
        {
            let done = attempts(Method::GET, false).on_error(refused(status), true, 1.0);
            assert_eq!(done.is_ok(), is_brief, "{status}");
            assert!(attempts(Method::POST, false).on_error(refused(status), true, 1.0).is_err());
        }
    }

    #[test]
    fn who_gives_up_says_whether_it_may_have_been_carried_out() {
        let is_uncertain = |method: Method, has_key: bool, errors: Vec<(Error, bool)>| {
            let mut attempts = attempts(method, has_key);
            let done = errors
                .into_iter()
                .find_map(|(error, is_sent)| attempts.on_error(error, is_sent, 0.0).err());
            matches!(done, Some(Error::Uncertain(_)))
        };
        let ended = |is_sent| (Error::Ended, is_sent);
        assert!(is_uncertain(Method::POST, false, vec![ended(true)]));
        assert!(is_uncertain(Method::POST, true, vec![ended(true), ended(false), ended(false)]));
        assert!(is_uncertain(Method::DELETE, false, vec![ended(true), (refused(404), true)]));
        assert!(!is_uncertain(Method::POST, true, vec![ended(true), (refused(422), true)]));
        assert!(!is_uncertain(Method::POST, false, vec![ended(false), ended(false), ended(false)]));
        assert!(!is_uncertain(Method::POST, false, vec![(refused(500), true)]));
        let foreign = || (Error::from(Foreign::Http), true);
        assert!(!is_uncertain(Method::POST, true, vec![foreign()]));
        assert!(is_uncertain(Method::POST, true, vec![ended(true), foreign()]));
        assert!(!is_uncertain(Method::GET, false, vec![ended(true), ended(true), ended(true)]));
    }
}
