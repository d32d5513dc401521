//! `POST` publishes the events of its body to a topic, and `DELETE` deletes a topic or cancels a run.

use anemone_hub::run::Run;
use anemone_wire::Published;
use http::{HeaderValue, Request, Response, StatusCode, header};

use crate::Problem;
use crate::clients::access::AccessLine;
use crate::exchange::change::{self, Change};
use crate::memory::counted;
use crate::publish::{Content, Expected, PublishPermit, SentBody, key, no_parameters};
use crate::reply::body::{Body, empty, full, reply};
use crate::request::body::{BodyBounds, receive};
use crate::request::client::Client;
use crate::request::origin;
use crate::request::own_path::ReadPath;
use crate::site::Site;
use crate::stop::Stop;

/// Answers a request that changes a topic or a run.
pub(crate) async fn answer(
    site: &Site,
    client: Client,
    request: Request<Body>,
    path: ReadPath<'_>,
    stop: Stop,
    access: &AccessLine,
) -> Result<Response<Body>, Problem> {
    match Change::of(site, client, request.method().as_str(), path)? {
        Change::Publish(permit) => publish(permit, request, site, stop, access).await,
        Change::Delete(permit) => delete(permit, &request.map(drop)).await,
        Change::Cancel(run) => cancel(&run, &request.map(drop), site),
    }
}

/// Publishes all events of the body, or none.
async fn publish(
    permit: PublishPermit,
    request: Request<Body>,
    site: &Site,
    stop: Stop,
    access: &AccessLine,
) -> Result<Response<Body>, Problem> {
    origin::refuse_unnamed(request.headers().into())?;
    let key = key(request.uri().query(), request.headers())?;
    let content = Content::of(request.headers())?;
    let expected = Expected::of(request.headers())?;
    let bounds = BodyBounds::new(&site.limits, site.limits.batch_bytes_max);
    let body = receive(request, bounds, &site.memory, Some(stop)).await?;
    let sent = SentBody { content, body: body.as_ref(), key, expected };
    let published = permit.submit(&site.limits, sent).await?;
    access.set_position(published.last);
    let body = full(Published::from(published).to_json() + "\n");
    let mut response = reply("application/json", "no-store", body);
    *response.status_mut() = if published.repeated { StatusCode::OK } else { StatusCode::CREATED };
    if published.repeated {
        response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    Ok(response)
}

async fn delete(permit: PublishPermit, request: &Request<()>) -> Result<Response<Body>, Problem> {
    check_deletion(request)?;
    permit.delete().await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

/// Cancels the run, and answers with its state.
fn cancel(run: &Run, request: &Request<()>, site: &Site) -> Result<Response<Body>, Problem> {
    check_deletion(request)?;
    let state = change::cancel(run)?;
    let body = full(counted(&site.memory, format!("{state}\n")));
    Ok(reply("application/json", "no-store", body))
}

fn check_deletion(request: &Request<()>) -> Result<(), Problem> {
    origin::refuse_unnamed(request.headers().into())?;
    no_parameters(request.uri().query())?;
    change::unconditional(request.headers().contains_key(header::IF_MATCH))
}
