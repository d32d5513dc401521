//! The documents about this server for programs: `/openapi.json` (OpenAPI 3.1) and `/asyncapi.json` (AsyncAPI 3.0).

mod asyncapi;
mod openapi;

pub(super) use self::asyncapi::asyncapi;
pub(super) use self::openapi::openapi;
