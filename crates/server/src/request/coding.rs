//! Content codings: the choice between a representation as it is and a compressed one (RFC 9110 section 12.5.3).

use http::{HeaderMap, header};

use super::fields::{pair, split};

/// A coding of the bytes of a representation (RFC 9110 section 8.4.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ContentCoding {
    /// The bytes as they are.
    Identity,
    /// The gzip format (RFC 1952); its name is `gzip` or `x-gzip`.
    Gzip,
}

/// The most that a coding can weigh, in thousandths.
const WEIGHT_MAX: u16 = 1000;

/// The weight of the identity if `Accept-Encoding` does not name it: it is acceptable, and every named coding is better.
const UNNAMED_IDENTITY: u16 = 1;

impl ContentCoding {
    /// Returns the coding of `offered` that a client accepts most gladly; among equals, the one that is offered first.
    /// `None` if it accepts none of them.
    ///
    /// A client that sends no `Accept-Encoding` gets the identity, if that is offered: it may not decode anything else.
    /// Members with an invalid weight count as absent. Spec: RFC 9110 section 12.5.3.
    pub fn negotiate(headers: &HeaderMap, offered: &[Self]) -> Option<Self> {
        let weighed = offered.iter().map(|coding| (*coding, coding.weight(headers)));
        // The first of those that weigh most.
        weighed
            .rev()
            .filter(|(_, weight)| *weight > 0)
            .max_by_key(|(_, weight)| *weight)
            .map(|(coding, _)| coding)
    }

    /// Returns the weight that `Accept-Encoding` gives to this coding, in thousandths; 0 if it is not acceptable.
    fn weight(self, headers: &HeaderMap) -> u16 {
        let lists = headers.get_all(header::ACCEPT_ENCODING).into_iter();
        let members = lists.filter_map(|list| list.to_str().ok()).flat_map(|list| split(list, ','));
        let (mut own, mut others) = (None, None);
        for (name, weight) in members.filter_map(weighed) {
            if self.is_named(name) {
                own = own.max(Some(weight));
            } else if name == "*" {
                others = others.max(Some(weight));
            }
        }
        let unnamed = if self == Self::Identity { UNNAMED_IDENTITY } else { 0 };
        own.or(others).unwrap_or(unnamed)
    }

    fn is_named(self, name: &str) -> bool {
        let names: &[&str] = match self {
            Self::Identity => &["identity"],
            Self::Gzip => &["gzip", "x-gzip"],
        };
        names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }
}

/// Returns the name and the weight of a member of the list. `None` if the weight is invalid.
fn weighed(member: &str) -> Option<(&str, u16)> {
    let mut parts = split(member, ';');
    let name = parts.next()?;
    let mut weight = WEIGHT_MAX;
    for (parameter, value) in parts.map(pair) {
        if parameter.eq_ignore_ascii_case("q") {
            weight = thousandths(&value)?;
        }
    }
    Some((name, weight))
}

/// Parses a weight: 0 to 1, with at most three decimals (RFC 9110 section 12.4.2).
fn thousandths(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let decimals: u16 = format!("{decimals:0<3}").parse().ok()?;
    match whole {
        "0" => Some(decimals),
        "1" if decimals == 0 => Some(WEIGHT_MAX),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::ContentCoding::{Gzip, Identity};
    use super::*;

    fn accepted(fields: &[&'static str], offered: &[ContentCoding]) -> Option<ContentCoding> {
        let field =
            |value: &&'static str| (header::ACCEPT_ENCODING, HeaderValue::from_static(value));
        ContentCoding::negotiate(&fields.iter().map(field).collect(), offered)
    }

    #[test]
    fn the_coding_is_what_the_client_prefers() {
        // RFC 9110 section 12.5.3
        for (fields, expected) in [
            (&[][..], Some(Identity)),
            (&[""], Some(Identity)),
            (&["gzip"], Some(Gzip)),
            (&["GZip"], Some(Gzip)),
            (&["x-gzip"], Some(Gzip)),
            (&["gzip, deflate, br, zstd"], Some(Gzip)),
            (&["br", "gzip"], Some(Gzip)),
            (&["compress, br"], Some(Identity)),
            (&["gzipped"], Some(Identity)),
            (&["*"], Some(Gzip)),
            (&["*;q=0.001"], Some(Gzip)),
            (&["br, *;q=0.5"], Some(Gzip)),
            (&["gzip;q=0"], Some(Identity)),
            (&["gzip;q=0.000, *"], Some(Identity)),
            (&["*;q=0"], None),
            (&["gzip;q=0, *;q=0"], None),
            (&["identity;q=0"], None),
            (&["identity;q=0, br"], None),
            (&["identity;q=0, gzip;q=0.001"], Some(Gzip)),
            (&["identity;q=0, *"], Some(Gzip)),
            (&["identity, *;q=0"], Some(Identity)),
            (&["gzip, *;q=0"], Some(Gzip)),
            (&["gzip;q=0.001"], Some(Gzip)),
            (&["identity"], Some(Identity)),
            (&["identity, gzip"], Some(Gzip)),
            (&["identity;q=0.5, gzip;q=0.5"], Some(Gzip)),
            (&["identity;q=0.5, gzip;q=0.499"], Some(Identity)),
            (&["identity, gzip;q=0.9"], Some(Identity)),
            (&["identity;q=0.9, gzip ; Q=1.000"], Some(Gzip)),
            (&["gzip;q=0, x-gzip;q=0.5"], Some(Gzip)),
        ] {
            assert_eq!(accepted(fields, &[Gzip, Identity]), expected, "{fields:?}");
        }
    }

    #[test]
    fn a_member_with_an_invalid_weight_counts_as_absent() {
        // RFC 9110 section 12.4.2
        for weight in ["", "1.001", "2", "0.0001", "-1", "1.", "0.x", "abc", ".5", "00"] {
            // The decimals may be absent, even after the point.
            let expected = if weight == "1." { Gzip } else { Identity };
            let field = HeaderValue::try_from(format!("gzip;q={weight}")).unwrap();
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, field)]);
            assert_eq!(
                ContentCoding::negotiate(&headers, &[Gzip, Identity]),
                Some(expected),
                "{weight}"
            );
        }
    }

    #[test]
    fn only_what_is_offered_is_chosen() {
        assert_eq!(accepted(&["gzip"], &[Identity]), Some(Identity));
        assert_eq!(accepted(&["gzip, identity;q=0"], &[Identity]), None);
        assert_eq!(accepted(&["gzip"], &[Identity, Gzip]), Some(Gzip));
        assert_eq!(accepted(&["*"], &[Identity, Gzip]), Some(Identity), "offered first");
        assert_eq!(accepted(&["gzip"], &[]), None);
    }
}
