//! The input of a run.

use bytes::Bytes;

use crate::digest;

/// The input of a run: the request that starts it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RunInput {
    /// The whole path.
    pub path: String,
    /// The query, without the question mark.
    pub query: Option<String>,
    /// The content type of the body.
    pub content_type: Option<String>,
    /// The body.
    pub body: Bytes,
}

/// A digest of an input: equal inputs have the same, and others another. The content type does not count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct InputDigest(u64);

impl RunInput {
    /// The most bytes of a body that is prepared on a network thread, unless
    /// [`RunService::prepares_at_once`](crate::run::RunService::prepares_at_once) says otherwise.
    pub const AT_ONCE_BYTES_MAX: usize = 4 << 10;

    /// Returns its digest, which tells a repeated start from a reused key.
    #[must_use]
    pub fn digest(&self) -> InputDigest {
        let query = self.query.clone().unwrap_or_default();
        let parts = [Bytes::from(self.path.clone()), Bytes::from(query), self.body.clone()];
        InputDigest(digest::of_data(parts.iter()))
    }
}
