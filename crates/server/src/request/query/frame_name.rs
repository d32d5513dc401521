//! `frame`: the function that a forever-frame calls.

use super::parameter::bad;
use crate::Problem;

/// The function of a page that a forever-frame in it calls: identifiers with dots between them, so it needs no
/// escaping in a script.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct FrameName(String);

impl FrameName {
    const BYTES_MAX: usize = 64;

    pub(super) fn new(name: &str) -> Option<Self> {
        let is_identifier = |part: &str| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_$".contains(&byte);
            part.bytes().all(allowed) && part.bytes().next().is_some_and(|b| !b.is_ascii_digit())
        };
        let fits = name.len() <= Self::BYTES_MAX && name.split('.').all(is_identifier);
        fits.then(|| Self(name.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

pub(super) fn parse(value: &str) -> Result<FrameName, Problem> {
    FrameName::new(value).ok_or_else(|| {
        let value: String = value.chars().take(80).collect();
        let detail = format!(
            "is {value:?}: must be identifiers of A-Z a-z 0-9 _ $ with dots between them, such as app.receive, \
             at most {} bytes",
            FrameName::BYTES_MAX
        );
        bad("frame", &detail)
    })
}
