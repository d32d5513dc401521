//! The methods of HTTP that paths have.

use http::HeaderValue;

use crate::{Kind, Problem};

/// The methods of HTTP that a topic has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Methods {
    Read,
    /// And publish.
    Publish,
    /// And delete.
    Delete,
}

impl Methods {
    /// As `Allow` has them.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "GET, HEAD",
            Self::Publish => "GET, HEAD, POST",
            Self::Delete => "GET, HEAD, POST, DELETE",
        }
    }
}

pub(crate) fn is_reading(method: &str) -> bool {
    matches!(method, "GET" | "HEAD")
}

/// Sees that a method is `GET` or `HEAD`.
///
/// # Errors
/// A problem with status 405 and the field `Allow` when it is another.
pub fn reading_only(method: &str) -> Result<(), Problem> {
    if is_reading(method) { Ok(()) } else { Err(not_allowed(method, Methods::Read)) }
}

pub(crate) fn not_allowed(method: &str, methods: Methods) -> Problem {
    let method: String = method.chars().take(40).collect();
    let problem =
        Problem::new(Kind::MethodNotAllowed, format!("this path does not accept {method}"));
    problem.field("allow", HeaderValue::from_static(methods.as_str()))
}
