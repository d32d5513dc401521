//! The field `Host`: every request of HTTP/1.1 has one, and what it says can be a host (RFC 9112 section 3.2).

use http::Version;

use crate::fields::Fields;
use crate::{Kind, Problem};

/// Sees that it is there, once, and can be a host. Older requests need none; newer ones have `:authority`.
pub(crate) fn check(fields: &(impl Fields + ?Sized), version: Version) -> Result<(), Problem> {
    let mut hosts = fields.all("host");
    let wrong = match (hosts.next(), hosts.next()) {
        (None, _) if version != Version::HTTP_11 => return Ok(()),
        (None, _) => "the field Host is missing",
        (Some(_), Some(_)) => "the field Host is there twice",
        (Some(host), None) if host.iter().all(is_of_a_host) => return Ok(()),
        (Some(_), None) => "the field Host is not HOST or HOST:PORT",
    };
    Err(Problem::new(Kind::BadHost, wrong))
}

/// Whether a byte may stand in a host and port (RFC 3986 section 3.2): what ends them, a user in front of them, and
/// what is in no URI at all may not.
fn is_of_a_host(byte: &u8) -> bool {
    byte.is_ascii_graphic() && !b"/?#@\\\"<>^`{|}".contains(byte)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::*;

    #[test]
    fn a_host_is_there_once_and_can_be_one() {
        let is_fine = |version, hosts: &[&str]| {
            let mut fields = HeaderMap::new();
            for host in hosts {
                fields.append("host", HeaderValue::try_from(*host).unwrap());
            }
            check(&fields, version).is_ok()
        };
        for host in ["", "a", "a.example:8080", "127.0.0.1:1", "[::1]:8080", "a_b", "xn--4ca%20~"] {
            assert!(is_fine(Version::HTTP_11, &[host]), "{host:?}");
        }
        for hosts in [
            &[][..],
            &["a", "a"],
            &["a b"],
            &["a/b"],
            &["user@a"],
            &["a?b"],
            &["a#b"],
            &["é"],
            &["http://a"],
        ] {
            assert!(!is_fine(Version::HTTP_11, hosts), "{hosts:?}");
        }
        assert!(is_fine(Version::HTTP_10, &[]) && is_fine(Version::HTTP_2, &[]));
        assert!(!is_fine(Version::HTTP_10, &["a", "b"]));
    }
}
