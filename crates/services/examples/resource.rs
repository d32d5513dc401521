//! A resource of a program's own in a server: `cargo run --package anemone-services --example resource`
//!
//! It has a collection of tasks, kept in the topic `tasks`, with two hooks before it: one decides who may change tasks, the
//! other what may be in them. Then, for example:
//!
//! ```sh
//! curl 'http://127.0.0.1:8080/tasks' --json '{"title":"sweep"}'
//! curl 'http://127.0.0.1:8080/tasks?done[$ne]=true&$sort[title]=1'
//! curl 'http://127.0.0.1:8080/topics/tasks?after=earliest' -H 'Accept: text/event-stream'
//! ```

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use anemone_hub::{Epoch, Hub};
use anemone_server::{Body, Caller, Mount, Server, TopicRule, TopicRules};
use anemone_services::{
    Collection, CollectionOptions, Field, Guard, ReplyBody, ResourceError, ResourceService, Schema,
};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use tokio::signal::unix::{SignalKind, signal};
use tower_service::Service;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let hub = Hub::new(Epoch::random()?);
    let schema = Schema::new("Task")
        .field(Field::text("title", 1..=80).required())
        .field(Field::boolean("done"));
    let tasks = Collection::open(&hub, "tasks".parse()?, schema, CollectionOptions::default())?;
    let rule = rule(&tasks);
    let service = ResourceService::new("/tasks", tasks);
    let (paths, events) = (service.openapi_paths(), service.event_schema());
    let hooked = Guard::new(Polite(service), may_change);
    let mount = Mount::new("/tasks", hooked)?
        .finishes_changes()
        .describe(paths)
        .topics(serde_json::json!({ "tasks": events }));
    let server = Server::builder(hub)
        .listen(([127, 0, 0, 1], 8080).into())
        .topics(TopicRules::new([rule])?)
        .mount(mount)
        .bind()?;
    if let Some(address) = server.local_addr() {
        eprintln!("listening on http://{address}/");
    }
    let shutdown = async {
        terminate.recv().await;
    };
    eprintln!("{:?}", server.serve(shutdown).await?);
    Ok(())
}

/// The topic stays as the collection needs it, and no client publishes to it.
fn rule(tasks: &Collection) -> TopicRule {
    let options = tasks.topic_options();
    TopicRule {
        retention: options.retention,
        keys: options.keys,
        storage: options.storage,
        ..TopicRule::new(tasks.topic().name().clone().into())
    }
}

/// A hook for authorisation: all may read, and programs on this machine may change.
fn may_change(head: &Parts) -> Result<(), ResourceError> {
    let is_local = head.extensions.get::<Caller>().is_some_and(Caller::is_local);
    if is_local || [Method::GET, Method::HEAD, Method::OPTIONS].contains(&head.method) {
        return Ok(());
    }
    Err(ResourceError::Refused("only programs on the server's own machine may change tasks".into()))
}

/// A hook for validation: a tower service around another one that looks at the body before it. It could also change the
/// body, or the reply.
#[derive(Clone)]
struct Polite(ResourceService<Collection>);

impl Service<Request<Body>> for Polite {
    type Response = Response<ReplyBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut inner = self.0.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            // The resource refuses longer bodies itself, so one byte more than it takes is enough here.
            let limit = ResourceService::<Collection>::BODY_BYTES_MAX + 1;
            let Ok(body) = Limited::new(body, limit).collect().await else {
                return Ok(refused(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "the body is too long or incomplete",
                ));
            };
            let body = body.to_bytes();
            if String::from_utf8_lossy(&body).contains("damn") {
                return Ok(refused(StatusCode::UNPROCESSABLE_ENTITY, "please say it politely"));
            }
            inner.call(Request::from_parts(head, Full::from(body))).await
        })
    }
}

fn refused(status: StatusCode, words: &'static str) -> Response<ReplyBody> {
    let mut response = Response::new(words.into());
    *response.status_mut() = status;
    response
}
