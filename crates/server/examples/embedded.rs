//! A listener of Anemone's with the routes of another program beside the topics, on its runtime:
//! `cargo run --package anemone-server --example embedded`

use anemone_hub::{Data, Epoch, Hub, Retention, UnixTime};
use anemone_server::{Mount, PublishRight, Server, TopicRule, TopicRules};
use axum::Router;
use axum::response::Html;
use axum::routing::get;
use tokio::signal::unix::{SignalKind, signal};

const PAGE: &str = r#"<!doctype html>
<title>Wind</title>
<script>
  const socket = new WebSocket("/topics/wind?after=earliest");
  socket.onmessage = (event) => document.body.append(event.data);
</script>
"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let hub = Hub::new(Epoch::random()?);
    let wind = hub.create("wind".parse()?, Retention::default())?;
    wind.publish(UnixTime::now(), Data::json(&serde_json::json!({ "speed": 2.7 }))?)?;

    let chat = TopicRule { publish: PublishRight::Anyone, ..TopicRule::new("chat".parse()?) };
    let routes =
        Router::new().route("/", get(async || Html(PAGE))).route("/hello", get(async || "hello"));
    let server = Server::builder(hub)
        .topics(TopicRules::new([chat])?)
        .listen(([127, 0, 0, 1], 0).into())
        .mount(Mount::new("/", routes)?)
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
