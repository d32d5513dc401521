//! Percent-escapes (RFC 3986 section 2.1).

/// Decodes the percent-escapes of a text once. `None` unless two hexadecimal digits follow each `%`, and the result is
/// UTF-8.
pub(crate) fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (escaped, after) = rest.split_first_chunk::<2>()?;
        let digit = |byte: u8| char::from(byte).to_digit(16);
        bytes.push(u8::try_from(digit(escaped[0])? * 16 + digit(escaped[1])?).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}
