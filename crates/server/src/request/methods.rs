//! The HTTP methods of paths.

use http::{HeaderValue, Method};

use crate::reply::problem::excerpt;
use crate::{Kind, Problem};

/// The HTTP methods of a topic, a run or a run service.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Methods {
    Read,
    /// Reading and publishing.
    Publish,
    /// Reading, publishing and deleting.
    Delete,
    /// Reading, and cancelling a run.
    Cancel,
    Start,
}

impl Methods {
    /// Returns the value of `Allow`.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "GET, HEAD",
            Self::Publish => "GET, HEAD, POST",
            Self::Delete => "GET, HEAD, POST, DELETE",
            Self::Cancel => "GET, HEAD, DELETE",
            Self::Start => "POST",
        }
    }
}

/// The part of a reply that a request wants.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wanted {
    All,
    /// The status and the fields, for a `HEAD`. Content is not made for it.
    Head,
}

impl Wanted {
    /// Returns the part that a request with this method wants.
    pub(crate) fn by(method: &str) -> Self {
        if method == "HEAD" { Self::Head } else { Self::All }
    }
}

pub(crate) fn is_reading(method: &str) -> bool {
    matches!(method, "GET" | "HEAD")
}

/// Checks that a method is `GET` or `HEAD`.
///
/// # Errors
/// Returns a problem with status 405 and the field `Allow` for another method.
pub fn reading_only(method: &str) -> Result<(), Problem> {
    if is_reading(method) { Ok(()) } else { Err(not_allowed(method, Methods::Read)) }
}

pub(crate) fn not_allowed(method: &str, methods: Methods) -> Problem {
    let detail = format!("this path does not accept {}", excerpt(method, 40));
    Problem::new(Kind::MethodNotAllowed, detail)
        .field("allow", HeaderValue::from_static(methods.as_str()))
}

/// The problem of a run service that is asked with another method.
pub(crate) fn only_starts(method: &Method) -> Problem {
    not_allowed(method.as_str(), Methods::Start).and("; POST starts a run")
}
