//! The trait of resources, and what a call of a method brings.

use std::future::{Future, Ready, ready};

use anemone_hub::IdempotencyKey;
use http::Extensions;

use crate::{Changed, Condition, Fields, Found, Query, Record, ResourceError, Schema};

/// A method of a resource, in the sense of Feathers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Method {
    /// `GET /NAME`.
    Find,
    /// `GET /NAME/ID`.
    Get,
    /// `POST /NAME`.
    Create,
    /// `PUT /NAME/ID`.
    Update,
    /// `PATCH /NAME/ID`.
    Patch,
    /// `DELETE /NAME/ID`.
    Remove,
}

/// A set of methods.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Methods(u8);

impl Methods {
    /// All methods.
    pub const ALL: Self = Self(0b11_1111);
    /// Those that change nothing: find and get.
    pub const READ: Self = Self::of(&[Method::Find, Method::Get]);

    /// Returns the set of these methods.
    #[must_use]
    pub const fn of(methods: &[Method]) -> Self {
        let (mut set, mut index) = (0, 0);
        while index < methods.len() {
            set |= 1 << methods[index] as u8;
            index += 1;
        }
        Self(set)
    }

    /// Returns true if the method is in the set.
    #[must_use]
    pub const fn has(self, method: Method) -> bool {
        self.0 & (1 << method as u8) != 0
    }
}

/// The facts of a request besides the record: its client, and its condition.
#[derive(Debug, Default)]
pub struct Call {
    /// The condition on the record's version. A method that changes a record checks it against the tag that the record
    /// has in the moment of the change.
    pub condition: Condition,
    /// The key that makes a change safe to repeat.
    pub key: Option<IdempotencyKey>,
    /// The extensions of the request, with what the server and the layers around the resource know about the client.
    pub extensions: Extensions,
}

/// Records with some of the methods find, get, create, update, patch and remove.
///
/// [`ResourceService`](crate::ResourceService) makes a `tower::Service` of it. It calls only the methods in
/// [`methods`](Self::methods), and gives them only records that fit the [`schema`](Self::schema); a resource itself
/// validates the result of a patch. A method that is not overridden fails.
///
/// # Cancel safety
/// A method is dropped when its client has gone. A change must then happen as a whole or not at all.
#[expect(unused_variables, reason = "the methods that are not overridden fail")]
pub trait Resource: Send + Sync + 'static {
    /// Returns the methods that it offers. Others are answered with 405.
    fn methods(&self) -> Methods;

    /// Returns the fields of its records.
    fn schema(&self) -> &Schema;

    /// Finds the page of records that the query describes.
    fn find(
        &self,
        query: &Query,
        call: &Call,
    ) -> impl Future<Output = Result<Found, ResourceError>> + Send {
        not_overridden()
    }

    /// Returns the record with this id.
    fn get(
        &self,
        id: &str,
        call: &Call,
    ) -> impl Future<Output = Result<Record, ResourceError>> + Send {
        not_overridden()
    }

    /// Creates a record. If it has no `id`, the resource chooses one.
    fn create(
        &self,
        record: Fields,
        call: &Call,
    ) -> impl Future<Output = Result<Changed, ResourceError>> + Send {
        not_overridden()
    }

    /// Replaces a record, and returns the new one.
    fn update(
        &self,
        id: &str,
        record: Fields,
        call: &Call,
    ) -> impl Future<Output = Result<Changed, ResourceError>> + Send {
        not_overridden()
    }

    /// Merges a patch into a record (RFC 7396), and returns the new one.
    fn patch(
        &self,
        id: &str,
        patch: Fields,
        call: &Call,
    ) -> impl Future<Output = Result<Changed, ResourceError>> + Send {
        not_overridden()
    }

    /// Removes a record, and returns it.
    fn remove(
        &self,
        id: &str,
        call: &Call,
    ) -> impl Future<Output = Result<Changed, ResourceError>> + Send {
        not_overridden()
    }
}

/// Returns the result of a method that a resource offers and does not have.
fn not_overridden<T>() -> Ready<Result<T, ResourceError>> {
    ready(Err(ResourceError::Failed))
}
