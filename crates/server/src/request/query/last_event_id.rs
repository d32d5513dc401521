//! The id of the last event that a reconnecting client has seen.
//!
//! An `EventSource` sends it in the field `Last-Event-ID`. Its replacements for old browsers send it in the query, since
//! those browsers do not let a page of another origin set the field: as `lastEventId`, in spellings of their own, or as
//! `evs_last_event_id`. They append it to a URL that may already have one, so the last one counts.

use std::borrow::Cow;

use super::bad;
use crate::Problem;
use crate::request::fields::Fields;

/// The begin of the names of parameters that one such replacement adds to each request. The others set the size of
/// buffers in its browser, and mean nothing here.
const OWN_PREFIX: &str = "evs_";

/// Returns true if a parameter of this name is sent by such a replacement, and not by the page that uses it.
pub(super) fn is_added(name: &str) -> bool {
    name.starts_with(OWN_PREFIX) || is_id(name)
}

/// Returns true for all spellings: the words of the field, with any case, dashes or underscores.
fn is_id(name: &str) -> bool {
    let name = name.strip_prefix(OWN_PREFIX).unwrap_or(name).bytes();
    let letters = name.filter(|byte| !b"-_".contains(byte)).map(|byte| byte.to_ascii_lowercase());
    letters.eq(*b"lasteventid")
}

/// Returns the id: that of the field, or else of the query. An empty one is none: no event had an id yet.
pub(super) fn find<'a>(
    query: Option<&'a str>,
    fields: Fields<'a>,
) -> Result<Option<Cow<'a, str>>, Problem> {
    if let Some(id) = fields.first("last-event-id").filter(|id| !id.is_empty()) {
        let id = str::from_utf8(id).map_err(|_| bad("Last-Event-ID", "is not a position"))?;
        return Ok(Some(id.into()));
    }
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let ids = pairs.filter(|(name, id)| is_id(name) && !id.is_empty());
    Ok(ids.last().map(|(_, id)| id))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    #[test]
    fn every_spelling_is_the_id() {
        for name in [
            "lastEventId",
            "lastEventID",
            "Last-Event-ID",
            "last-event-id",
            "last_event_id",
            "evs_last_event_id",
        ] {
            assert!(is_id(name) && is_added(name), "{name}");
        }
        assert!(is_added("evs_preamble") && !is_id("evs_preamble"));
        for name in ["", "after", "lastEvent", "lastEventIds", "eventId", "-", "EVS_preamble"] {
            assert!(!is_added(name), "{name}");
        }
    }

    #[test]
    fn the_field_counts_before_the_query_and_the_last_one_in_the_query() {
        let find = |query, field: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(id) = field {
                headers.insert("last-event-id", id.parse().unwrap());
            }
            super::find(Some(query), (&headers).into()).unwrap().map(Cow::into_owned)
        };
        for (query, field, id) in [
            ("lastEventId=a-1", None, Some("a-1")),
            ("lastEventId=a-1", Some(""), Some("a-1")),
            ("lastEventId=a-1", Some("a-2"), Some("a-2")),
            ("lastEventId=a-1&lastEventId=a-3", None, Some("a-3")),
            ("lastEventId=a-1&after=latest&evs_last_event_id=a-3", None, Some("a-3")),
            ("lastEventId=a-1&lastEventId=", None, Some("a-1")),
            ("lastEventId=wind%3Aa-1%2Ccpu%3A2", None, Some("wind:a-1,cpu:2")),
            ("lastEventId=", None, None),
            ("lastEventId", Some(""), None),
            ("after=a-1", None, None),
        ] {
            assert_eq!(find(query, field).as_deref(), id, "{query} {field:?}");
        }
    }
}
