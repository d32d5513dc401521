//! The normal form of a request's path, so that each resource has one path.

use std::borrow::Cow;

use http::Uri;
use http::uri::PathAndQuery;

use crate::{Kind, Problem};

/// Returns the path without unnecessary escapes (RFC 3986 section 6.2.2.2), decoded once.
///
/// No name here has a slash or a control character, and an escaped one could mean something else to a proxy; so could
/// an escaped `.` or `..`.
pub(crate) fn normal(path: &str) -> Result<Cow<'_, str>, Problem> {
    // Searches bytes, since that is faster than to search text this short.
    if path.bytes().all(|byte| byte != b'%') {
        return Ok(path.into());
    }
    let mut parts = path.split('%');
    let mut normal = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (byte, digits) {
            (Some(byte), _) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                normal.push(char::from(byte));
            }
            (Some(byte), Some(digits)) if byte != b'/' && !byte.is_ascii_control() => {
                normal.push('%');
                normal.push_str(&digits.to_ascii_uppercase());
            }
            (Some(_), Some(digits)) => {
                let detail = format!("%{digits} is not allowed in a path");
                return Err(Problem::new(Kind::BadName, detail));
            }
            _ => {
                let detail = "two hexadecimal digits must follow a % in a path";
                return Err(Problem::new(Kind::BadName, detail));
            }
        }
        normal.push_str(part.get(2..).unwrap_or_default());
    }
    if dot_segments(&normal) > dot_segments(path) {
        // Some clients resolve relative URLs as if these were plain, and others do not.
        let detail = "the segments . and .. must not be escaped in a path";
        return Err(Problem::new(Kind::BadName, detail));
    }
    Ok(normal.into())
}

fn dot_segments(path: &str) -> usize {
    path.split('/').filter(|segment| matches!(*segment, "." | "..")).count()
}

pub(crate) fn is_normal(path: &str) -> bool {
    normal(path).is_ok_and(|normal| normal == path)
}

pub(crate) fn normalize(uri: &mut Uri) -> Result<(), Problem> {
    let Cow::Owned(mut target) = normal(uri.path())? else { return Ok(()) };
    if let Some(query) = uri.query() {
        target.push('?');
        target.push_str(query);
    }
    let bad = |error: &dyn std::fmt::Display| Problem::new(Kind::BadName, error.to_string());
    let target = PathAndQuery::try_from(target).map_err(|error| bad(&error))?;
    let mut parts = std::mem::take(uri).into_parts();
    parts.path_and_query = Some(target);
    *uri = Uri::from_parts(parts).map_err(|error| bad(&error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_path_has_one_spelling() {
        for (path, expected) in [
            ("/topics/t", "/topics/t"),
            ("/topics/%74", "/topics/t"),
            ("/%74opics/%54%2d%5F%2E%7e1", "/topics/T-_.~1"),
            ("/topics/%2574", "/topics/%2574"), // once
            ("/topics/a%20b%3f%c3%a9", "/topics/a%20b%3F%C3%A9"),
            ("/a/../%2ea/%2e%2e%2e", "/a/../.a/..."),
            ("/", "/"),
        ] {
            assert_eq!(normal(path).unwrap(), expected);
        }
        for path in [
            "/%",
            "/%7",
            "/%zz",
            "/%+1",
            "/a%2Fb",
            "/a%2fb",
            "/%00",
            "/%7F",
            "/%0a",
            "/%7é",
            "/%2e",
            "/a/%2E%2e/b",
            "/../.%2e",
            "/a/%2e/",
        ] {
            assert!(normal(path).unwrap_err().to_json().contains("bad-name"), "{path}");
        }
    }

    #[test]
    fn the_rest_of_a_uri_stays() {
        for (text, expected) in [
            ("/topics/%74?after=%65arliest", "/topics/t?after=%65arliest"),
            ("https://a.example/topics/%74?x", "https://a.example/topics/t?x"),
            ("/topics/t?x=%zz", "/topics/t?x=%zz"),
        ] {
            let mut uri: Uri = text.parse().unwrap();
            normalize(&mut uri).unwrap();
            assert_eq!(uri.to_string(), expected);
        }
    }

    proptest! {
        #[test]
        fn a_normal_path_is_normal(path in "/([a-z%0-9A-F/~é]|%[0-9a-fA-F]{2}){0,20}") {
            if let Ok(once) = normal(&path) {
                prop_assert_eq!(normal(&once).unwrap(), &*once);
            }
        }
    }
}
