//! Poll: answers at once with the page after a position, maybe an empty one.

use anemone_hub::After;
use http::Response;

use super::page_response;
use crate::Problem;
use crate::body::Body;
use crate::routes::Read;

/// Without `after`, the newest event: what a bare `curl` is after.
pub(crate) fn answer(read: Read) -> Result<Response<Body>, Problem> {
    let mut reader = read.open(After::Newest)?;
    Ok(page_response(&read.path, &reader.read()?))
}
