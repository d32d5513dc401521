//! Topics below a path of an axum program: `cargo run --package anemone-server --example within_axum`

use std::net::SocketAddr;
use std::time::Duration;

use anemone_hub::{Data, Epoch, Hub, Retention, UnixTime};
use anemone_server::{PublishRight, Server, TopicRule, TopicRules};
use axum::Router;
use axum::extract::ConnectInfo;
use axum::response::Html;
use axum::routing::get;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

const PAGE: &str = r#"<!doctype html>
<title>Wind</title>
<script>
  const events = new EventSource("/live/topics/wind?after=earliest");
  events.onmessage = (event) => document.body.append(event.data);
</script>
"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let hub = Hub::new(Epoch::random()?);
    let wind = hub.create("wind".parse()?, Retention::default())?;
    wind.publish(UnixTime::now(), Data::json(&serde_json::json!({ "speed": 2.7 }))?)?;

    // Clients may publish to this one.
    let chat = TopicRule { publish: PublishRight::Anyone, ..TopicRule::new("chat".parse()?) };
    let running = Server::builder(hub).topics(TopicRules::new([chat])?).bind()?.start()?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on http://{}/", listener.local_addr()?);
    let live = running
        .service()
        .behind(&listener)?
        .peer_from(|found| found.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.into()));
    let router = Router::new()
        .route("/", get(async || Html(PAGE)))
        .route("/hello", get(async || "hello"))
        .nest_service("/live", live);

    let (stop, stopping) = tokio::sync::oneshot::channel::<()>();
    let served = axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>())
        .with_graceful_shutdown(async { drop(stopping.await) });
    let serving = tokio::spawn(served.into_future());
    terminate.recv().await;
    drop(stop);
    eprintln!("{:?}", running.stop().await);
    // A client may never end its request, or never take its reply.
    let _ = timeout(Duration::from_secs(5), serving).await;
    Ok(())
}
