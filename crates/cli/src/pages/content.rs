//! The bytes of an embedded file, in the coding that its client prefers, and their tag.
//!
//! A file is compressed when it is first asked for so, and kept, once for each embedded file and version: a few hundred kilobytes
//! in all. A build step would save some milliseconds of each start, and need tools of its own.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Mutex, PoisonError};

use anemone_server::ContentCoding;
use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzEncoder;
use http::{HeaderMap, HeaderValue};
use rust_embed::EmbeddedFile;

/// Smaller files fit into a packet as they are.
const COMPRESSED_BYTES_MIN: usize = 1 << 10;

type Hash = [u8; 32];

/// The compressed files by name, each with the hash of the file; a debug build reads its files anew from the disk.
static COMPRESSED: Mutex<BTreeMap<String, (Hash, Bytes)>> = Mutex::new(BTreeMap::new());

/// A file as one client gets it.
pub(super) struct Content {
    pub(super) coding: ContentCoding,
    /// The strong tag of these bytes: each coding has its own (RFC 9110 section 8.8.3.3).
    pub(super) etag: HeaderValue,
    file: EmbeddedFile,
}

impl Content {
    /// Chooses the coding of a file. `None` if the client accepts none that there is.
    pub(super) fn choose(file: EmbeddedFile, kind: &str, headers: &HeaderMap) -> Option<Self> {
        let offered: &[ContentCoding] = if is_compressible(&file, kind) {
            &[ContentCoding::Gzip, ContentCoding::Identity]
        } else {
            &[ContentCoding::Identity]
        };
        let coding = ContentCoding::negotiate(headers, offered)?;
        let etag = etag(&file, coding);
        Some(Self { coding, etag, file })
    }

    /// Returns the bytes; `name` is that of the file.
    pub(super) fn into_bytes(self, name: &str) -> Bytes {
        if self.coding == ContentCoding::Gzip {
            return compressed(name, &self.file);
        }
        match self.file.data {
            Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            Cow::Owned(bytes) => Bytes::from(bytes),
        }
    }
}

/// Returns true if a file becomes smaller by compression, and is not small already.
pub(super) fn is_compressible(file: &EmbeddedFile, kind: &str) -> bool {
    let is_text = kind.starts_with("text/") || matches!(kind, "image/svg+xml" | "application/json");
    is_text && file.data.len() >= COMPRESSED_BYTES_MIN
}

/// Returns the compressed bytes of a file. Other threads wait meanwhile: a file takes a millisecond, once.
fn compressed(name: &str, file: &EmbeddedFile) -> Bytes {
    let hash = file.metadata.sha256_hash();
    let mut all = COMPRESSED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, bytes)) = all.get(name).filter(|(known, _)| *known == hash) {
        return bytes.clone();
    }
    let mut bytes = Vec::new();
    // Reading from memory does not fail.
    let _ = GzEncoder::new(&*file.data, Compression::best()).read_to_end(&mut bytes);
    let bytes = Bytes::from(bytes);
    all.insert(name.to_owned(), (hash, bytes.clone()));
    bytes
}

fn etag(file: &EmbeddedFile, coding: ContentCoding) -> HeaderValue {
    let digits: String =
        file.metadata.sha256_hash()[..12].iter().map(|byte| format!("{byte:02x}")).collect();
    let suffix = if coding == ContentCoding::Gzip { "-gzip" } else { "" };
    // Such characters in quotes are always valid in a field.
    HeaderValue::try_from(format!("\"{digits}{suffix}\""))
        .unwrap_or(HeaderValue::from_static("\"\""))
}
