//! A `tower::Service` of a resource: the requests of the table "Resources" in `docs/PROTOCOL.md`.

mod body;
mod reply;
mod reply_body;
mod route;

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anemone_hub::IdempotencyKey;
use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use tower_service::Service;

use self::route::{MethodCall, Route};
use crate::{Call, Condition, Fields, Query, Resource, ResourceError, document};

pub(crate) use self::reply::refusal;
pub use self::reply_body::ReplyBody;

/// A `tower::Service` that answers requests for a resource at a path, with any HTTP server or as a mount of one.
///
/// It sees the whole path of a request. Hooks before and after a method are tower layers around it: a layer may refuse a
/// request, change it, add extensions, which the resource finds in its [`Call`], or change the reply.
///
/// A body may have 64 KiB ([`BODY_BYTES_MAX`](Self::BODY_BYTES_MAX)).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use anemone_hub::{Epoch, Hub};
/// use anemone_services::{Collection, CollectionOptions, Field, ResourceService, Schema};
/// use http_body_util::Full;
/// use tower_service::Service;
///
/// let hub = Hub::new(Epoch::random()?);
/// let schema = Schema::new("Station").field(Field::text("place", 1..=80).required());
/// let options = CollectionOptions::default();
/// let stations = Collection::open(&hub, "stations".parse()?, schema, options)?;
/// let mut service = ResourceService::new("/stations", stations);
///
/// let post = http::Request::post("/stations").header("Content-Type", "application/json");
/// let request = post.body(Full::<bytes::Bytes>::from(r#"{"place":"Zugspitze"}"#))?;
/// let reply = service.call(request).await?;
/// assert_eq!(reply.status(), 201);
/// # Ok(())
/// # }
/// ```
pub struct ResourceService<R> {
    path: Arc<str>,
    resource: Arc<R>,
}

impl<R: Resource> ResourceService<R> {
    /// The longest body of a request, in bytes: a record is no file, and each is held in memory.
    pub const BODY_BYTES_MAX: usize = body::BYTES_MAX;

    /// Creates the service of a resource at this path, such as `/messages`.
    pub fn new(path: impl Into<Arc<str>>, resource: R) -> Self {
        Self { path: path.into(), resource: Arc::new(resource) }
    }

    /// Returns the description of its paths, the members of an OpenAPI 3.1 object `paths`.
    #[must_use]
    pub fn openapi_paths(&self) -> serde_json::Value {
        document::openapi_paths(&self.path, self.resource.schema(), self.resource.methods())
    }

    /// Returns the JSON Schema of the events of its changes.
    #[must_use]
    pub fn event_schema(&self) -> serde_json::Value {
        document::event_schema(self.resource.schema())
    }

    async fn answer<B>(self, request: Request<B>) -> Response<ReplyBody>
    where
        B: http_body::Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send,
    {
        let (head, body) = request.into_parts();
        let route = match Route::of(&head, &self.path, self.resource.methods()) {
            Ok(route) => route,
            Err(refusal) => return *refusal,
        };
        let record = match route.call.takes_record() {
            Some(types) => match body::read(&head.headers, body, types).await {
                Ok(record) => record,
                Err(refusal) => return *refusal,
            },
            None => Fields::new(),
        };
        let answered = self.call(&route, head, record).await;
        let reply = answered.unwrap_or_else(|error| refusal(error.details()));
        if route.is_head { reply::without_body(reply) } else { reply }
    }

    async fn call(
        &self,
        route: &Route,
        head: Parts,
        record: Fields,
    ) -> Result<Response<ReplyBody>, ResourceError> {
        let (resource, schema) = (&*self.resource, self.resource.schema());
        let query = head.uri.query().filter(|query| !query.is_empty()).map(str::to_owned);
        if query.is_some() && !matches!(route.call, MethodCall::Find) {
            let detail = "only GET without an id takes parameters".to_owned();
            return Err(ResourceError::BadParameter(detail));
        }
        let call = call(head)?;
        Ok(match &route.call {
            MethodCall::Find => {
                let query = Query::parse(query.as_deref(), schema)?;
                reply::found(&query, resource.find(&query, &call).await?)
            }
            MethodCall::Get(id) => reply::got(resource.get(id, &call).await?, &call.condition),
            MethodCall::Create => {
                schema.validate(&record)?;
                // There is no record yet that could have a tag.
                call.condition.check(None)?;
                reply::created(resource.create(record, &call).await?, &self.path)
            }
            MethodCall::Update(id) => {
                schema.validate(&record)?;
                reply::changed(resource.update(id, record, &call).await?)
            }
            MethodCall::Patch(id) => reply::changed(resource.patch(id, record, &call).await?),
            MethodCall::Remove(id) => reply::changed(resource.remove(id, &call).await?),
        })
    }
}

/// Reads what a request says besides the record.
fn call(head: Parts) -> Result<Call, ResourceError> {
    let mut keys = head.headers.get_all("idempotency-key").into_iter();
    let key = match (keys.next(), keys.next()) {
        (None, _) => None,
        (Some(key), None) => {
            let bad = || {
                ResourceError::BadParameter(
                    "Idempotency-Key must be 1 to 128 visible ASCII characters".into(),
                )
            };
            let key: Option<IdempotencyKey> = key.to_str().ok().and_then(|key| key.parse().ok());
            Some(key.ok_or_else(bad)?)
        }
        _ => return Err(ResourceError::BadParameter("Idempotency-Key is given twice".into())),
    };
    Ok(Call { condition: Condition::of(&head.headers)?, key, extensions: head.extensions })
}

impl<R> Clone for ResourceService<R> {
    fn clone(&self) -> Self {
        Self { path: Arc::clone(&self.path), resource: Arc::clone(&self.resource) }
    }
}

impl<R> fmt::Debug for ResourceService<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceService").field("path", &self.path).finish_non_exhaustive()
    }
}

impl<R, B> Service<Request<B>> for ResourceService<R>
where
    R: Resource,
    B: http_body::Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    type Response = Response<ReplyBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}

#[cfg(test)]
mod tests;
