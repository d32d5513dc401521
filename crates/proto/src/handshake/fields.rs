//! The header fields of a handshake.

/// Access to the header fields of a request or response, independent of its parser.
pub trait Fields {
    /// Returns the values of all fields of this name, in order. Names are compared without case; `name` is in lower
    /// case.
    fn values<'a>(&'a self, name: &'static str) -> impl Iterator<Item = &'a [u8]>;
}

impl Fields for [httparse::Header<'_>] {
    fn values<'a>(&'a self, name: &'static str) -> impl Iterator<Item = &'a [u8]> {
        self.iter()
            .filter(move |field| field.name.eq_ignore_ascii_case(name))
            .map(|field| field.value)
    }
}

#[cfg(feature = "http")]
impl Fields for http::HeaderMap {
    fn values<'a>(&'a self, name: &'static str) -> impl Iterator<Item = &'a [u8]> {
        // Requests have few fields: comparing them all costs less than the hash of a name.
        let fields = self.iter().filter(move |(field, _)| field.as_str() == name);
        fields.map(|(_, value)| value.as_bytes())
    }
}

/// Returns the members of a comma-separated list over all fields of this name, trimmed, without empty members (RFC
/// 9110 section 5.6.1).
pub(super) fn members<'a>(
    fields: &'a (impl Fields + ?Sized),
    name: &'static str,
) -> impl Iterator<Item = &'a [u8]> {
    fields
        .values(name)
        .flat_map(|value| value.split(|&byte| byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|member| !member.is_empty())
}

/// Returns the only value of this name; `Err` if there are several.
pub(super) fn single<'a>(
    fields: &'a (impl Fields + ?Sized),
    name: &'static str,
) -> Result<Option<&'a [u8]>, Repeated> {
    let mut values = fields.values(name);
    let first = values.next();
    if values.next().is_some() { Err(Repeated) } else { Ok(first.map(<[u8]>::trim_ascii)) }
}

/// An error of a field that may appear only once.
pub(super) struct Repeated;

/// Returns true if this is a token (RFC 9110 section 5.6.2). A subprotocol must be one.
#[must_use]
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(is_tchar)
}

pub(crate) fn is_tchar(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte)
}
