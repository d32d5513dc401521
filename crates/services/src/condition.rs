//! The conditions of a request: `If-Match` and `If-None-Match` (RFC 9110 sections 13.1.1 and 13.1.2).

use http::{HeaderMap, HeaderName, header};

use crate::{ResourceError, Tag};

/// The condition of a request on the version of a record. By default there is none.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Condition {
    if_match: Option<Tags>,
    if_none_match: Option<Tags>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Tags {
    /// `*`: any version.
    Any,
    /// The texts with their quotes.
    Listed(Vec<String>),
}

impl Condition {
    /// Reads the fields of a request.
    ///
    /// # Errors
    /// [`ResourceError::BadParameter`] for a field with something that is not an entity tag.
    pub fn of(headers: &HeaderMap) -> Result<Self, ResourceError> {
        let if_match = tags(headers, header::IF_MATCH)?;
        let if_none_match = tags(headers, header::IF_NONE_MATCH)?;
        Ok(Self { if_match, if_none_match })
    }

    /// Checks that a change may happen to a record with this tag; `None` if there is no such record.
    ///
    /// # Errors
    /// [`ResourceError::PreconditionFailed`].
    pub fn check(&self, tag: Option<&Tag>) -> Result<(), ResourceError> {
        let is_met = self.if_match.as_ref().is_none_or(|tags| tags.has_strong(tag));
        if is_met && !self.is_known(tag) { Ok(()) } else { Err(ResourceError::PreconditionFailed) }
    }

    /// Returns true if the client already has the version with this tag, according to `If-None-Match`.
    #[must_use]
    pub fn is_known(&self, tag: Option<&Tag>) -> bool {
        self.if_none_match.as_ref().is_some_and(|tags| tags.has_weak(tag))
    }
}

impl Tags {
    /// Compares strongly: a weak tag matches nothing.
    fn has_strong(&self, tag: Option<&Tag>) -> bool {
        let Some(tag) = tag else { return false };
        match self {
            Self::Any => true,
            Self::Listed(tags) => tags.iter().any(|listed| *listed == tag.to_string()),
        }
    }

    fn has_weak(&self, tag: Option<&Tag>) -> bool {
        let Some(tag) = tag else { return false };
        let strong =
            |listed: &'_ String| listed.strip_prefix("W/").unwrap_or(listed) == tag.to_string();
        match self {
            Self::Any => true,
            Self::Listed(tags) => tags.iter().any(strong),
        }
    }
}

/// Returns the tags in the fields of this name; `None` if there is no such field.
fn tags(headers: &HeaderMap, name: HeaderName) -> Result<Option<Tags>, ResourceError> {
    let mut fields = headers.get_all(&name).into_iter().peekable();
    if fields.peek().is_none() {
        return Ok(None);
    }
    let mut listed = Vec::new();
    for field in fields {
        let text = field.to_str().unwrap_or_default();
        let tags = split(text).filter(|tag| !tag.is_empty()).map(str::to_owned);
        listed.extend(tags);
    }
    match &listed[..] {
        [only] if only == "*" => Ok(Some(Tags::Any)),
        [_, ..] if listed.iter().all(|tag| is_tag(tag)) => Ok(Some(Tags::Listed(listed))),
        _ => Err(ResourceError::BadParameter(format!(
            "{name} must be * or a list of entity tags, each in quotes"
        ))),
    }
}

/// Splits a list at the commas outside of quotes. A backslash in a tag is not an escape.
fn split(field: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let tags = field.split(move |character| {
        is_quoted ^= character == '"';
        character == ',' && !is_quoted
    });
    tags.map(str::trim)
}

/// Returns true if the text is an entity tag, weak or strong.
fn is_tag(text: &str) -> bool {
    let opaque = text.strip_prefix("W/").unwrap_or(text);
    let inner = opaque.strip_prefix('"').and_then(|inner| inner.strip_suffix('"'));
    inner.is_some_and(|inner| Tag::new(inner).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(name: HeaderName, value: &str) -> Result<Condition, ResourceError> {
        Condition::of(&HeaderMap::from_iter([(name, value.parse().unwrap())]))
    }

    #[test]
    fn a_change_needs_one_of_the_tags_and_strong_comparison() {
        // RFC 9110 section 13.1.1
        let tag = Tag::new("ya-3").unwrap();
        for (value, is_met) in [
            ("\"ya-3\"", true),
            ("\"a,b\", \"ya-3\"", true),
            ("*", true),
            ("\"ya-4\"", false),
            ("W/\"ya-3\"", false),
        ] {
            let condition = condition(header::IF_MATCH, value).unwrap();
            assert_eq!(condition.check(Some(&tag)).is_ok(), is_met, "{value}");
            assert_eq!(condition.check(None), Err(ResourceError::PreconditionFailed), "{value}");
        }
        assert_eq!(Condition::default().check(None), Ok(()));
    }

    #[test]
    fn what_is_not_a_tag_is_refused_and_not_ignored() {
        for value in ["", "ya-3", "\"ya-3", "*, \"a\"", "\"a b\"", ","] {
            let refused = condition(header::IF_MATCH, value);
            assert!(matches!(refused, Err(ResourceError::BadParameter(_))), "{value}");
        }
    }

    #[test]
    fn a_known_version_is_known_by_weak_comparison() {
        // RFC 9110 section 13.1.2
        let tag = Tag::new("ya-3").unwrap();
        for (value, is_known) in
            [("W/\"ya-3\"", true), ("*", true), ("\"a\",\"ya-3\"", true), ("\"a\"", false)]
        {
            let condition = condition(header::IF_NONE_MATCH, value).unwrap();
            assert_eq!(condition.is_known(Some(&tag)), is_known, "{value}");
            assert_eq!(condition.check(Some(&tag)).is_err(), is_known, "{value}");
            assert!(!condition.is_known(None), "{value}");
        }
    }
}
