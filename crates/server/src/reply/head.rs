//! The head of a reply, as the bytes of HTTP/1.1.

use http::Response;

/// The usual length of a head, at most.
pub(crate) const HEAD_BYTES: usize = 512;

/// Writes the status line and the fields, without the empty line at the end.
pub(crate) fn write_head<B>(response: &Response<B>, bytes: &mut Vec<u8>) {
    let status = response.status();
    bytes.extend_from_slice(b"HTTP/1.1 ");
    bytes.extend_from_slice(status.as_str().as_bytes());
    bytes.push(b' ');
    bytes.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    bytes.extend_from_slice(b"\r\n");
    for (name, value) in response.headers() {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
}
