//! The call of a service as the work of a run.

use anemone_hub::Data;
use anemone_hub::run::{RunContext, RunFailure, RunOutcome, RunWork};
use anemone_wire::problem::Details;
use anemone_ws::Memory;
use anemone_ws::proto::handshake::base64;
use http::response::Parts;
use http::{HeaderMap, Response};
use serde_json::{Map, Value};

use super::items::{Division, Items};
use super::media_type::MediaType;
use super::partial_batch::{broken, pass_on, string, unfit};
use crate::reply::body::Body;
use crate::{Kind, Problem};

/// The most bytes of a reply that becomes the result. The limits of runs may allow less.
const RESULT_BYTES_MAX: usize = 16 << 20;

/// The most characters of a reply that a failure quotes.
const QUOTED_CHARS_MAX: usize = 200;

/// Returns the work of a run that calls a service: its items are partial results, and any other reply is the result.
///
/// The service runs on a runtime of the run's own thread, and is dropped there when the run is stopped.
pub(super) fn of_call(
    call: impl Future<Output = Result<Response<Body>, Problem>> + Send + 'static,
    memory: Memory,
) -> RunWork {
    RunWork::new(move |run| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| RunFailure::new(format!("no runtime: {error}")))?;
        runtime.block_on(async {
            let work = async {
                let reply = call.await.map_err(|problem| failure(&problem.to_json()))?;
                let (head, body) = reply.into_parts();
                let items = Items::of(Response::from_parts(head.clone(), body), &memory);
                finish(&head, items, run).await
            };
            tokio::select! {
                biased;
                stopped = run.stopped() => Err(stopped.into()),
                outcome = work => outcome,
            }
        })
    })
}

/// Takes a reply to its end.
async fn finish(head: &Parts, mut items: Items, run: &RunContext) -> RunOutcome {
    let is_error = head.status.is_client_error() || head.status.is_server_error();
    if items.division() == Division::Lines && !is_error {
        return pass_on(&mut items, run).await.map(|()| None);
    }
    let mut body = Vec::new();
    while let Some(item) = items.next().await {
        body.extend_from_slice(&item.map_err(broken)?);
        if body.len() > RESULT_BYTES_MAX {
            let detail = format!("the reply of the service has more than {RESULT_BYTES_MAX} bytes");
            return Err(RunFailure::new(detail));
        }
        run.check()?;
    }
    match is_error {
        true => Err(refused(head, &body)),
        false => result(&head.headers, &body),
    }
}

/// Returns the result in a reply: JSON as it was written, any other text as a string, and bytes as Base64.
fn result(headers: &HeaderMap, body: &[u8]) -> RunOutcome {
    if body.is_empty() {
        return Ok(None);
    }
    let Ok(text) = std::str::from_utf8(body) else {
        let bytes = serde_json::json!({ "base64": base64(body) });
        return Data::json(&bytes).map(Some).map_err(unfit);
    };
    let json =
        (MediaType::of(headers) == MediaType::Json).then(|| Data::parse(text).ok()).flatten();
    json.map_or_else(|| string(text), Ok).map(Some)
}

/// Returns the failure for a reply with an error: its problem, if it has one that clients can read. It has the status of
/// the reply.
fn refused(head: &Parts, body: &[u8]) -> RunFailure {
    let text = String::from_utf8_lossy(body);
    let is_json = MediaType::of(&head.headers) == MediaType::Json;
    let object = is_json.then(|| serde_json::from_str::<Map<String, Value>>(&text).ok()).flatten();
    let own = object.map(|mut problem| {
        let status = Value::from(head.status.as_u16());
        match problem.insert("status".to_owned(), status.clone()) {
            Some(same) if same == status => text.to_string(),
            _ => Value::Object(problem).to_string(),
        }
    });
    match own.filter(|own| Details::parse(own.as_bytes()).is_some()) {
        Some(own) => failure(&own),
        None => {
            let quoted = text.trim().chars().take(QUOTED_CHARS_MAX).collect::<String>();
            let mut detail = format!("the service answered {}", head.status);
            if !quoted.is_empty() {
                detail.extend([": ", &quoted]);
            }
            failure(&Problem::new(Kind::RunFailed, detail).status(head.status).to_json())
        }
    }
}

fn failure(problem: &str) -> RunFailure {
    let value = serde_json::from_str::<Value>(problem).unwrap_or_default();
    let detail = value["detail"].as_str().unwrap_or("the service failed");
    match Data::parse(problem) {
        Ok(problem) => RunFailure::with_problem(detail, &problem),
        Err(_) => RunFailure::new(detail),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::time::Instant;

    use anemone_hub::run::{Run, RunLimits, Runs, StartRun};
    use anemone_hub::{After, PageLimit, UnixTime};
    use anemone_wire::RunState;
    use bytes::Bytes;
    use futures_util::{StreamExt, TryStreamExt, stream};
    use http::{HeaderValue, header};
    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;
    use crate::reply::body::full;

    #[test]
    fn an_item_or_a_result_that_is_too_deep_for_readers_is_a_string() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        let (taken, deeper) = (nested(100), nested(101));
        let run = ended(of_stream(full(format!("{taken}\n{deeper}\n"))));
        let string = format!("\"{deeper}\"");
        let events = [&taken, &string].map(|value| format!("{{\"partial\":{value}}}"));
        assert_eq!(told(&run)[1..3], events);
        let run = ended(RunWork::new(move |_| {
            let json = HeaderValue::from_static("application/json");
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, json)]);
            assert_eq!(result(&headers, taken.as_bytes())?, Some(Data::parse(&taken).unwrap()));
            result(&headers, deeper.as_bytes())
        }));
        assert_eq!(run.status(Instant::now()).result(), Some(&*string));
    }

    fn of_stream(body: Body) -> RunWork {
        let ndjson = HeaderValue::from_static("application/x-ndjson");
        let reply = Response::builder().header(header::CONTENT_TYPE, ndjson).body(body).unwrap();
        of_call(async { Ok(reply) }, Memory::default())
    }

    /// The data of the events of a run.
    fn told(run: &Run) -> Vec<String> {
        let first = run.topic().start(UnixTime::now(), After::Earliest).unwrap();
        let limit = PageLimit { events_max: 10_000, ..PageLimit::default() };
        let page = run.topic().read(UnixTime::now(), first, limit).unwrap();
        page.events.iter().map(|event| event.data.as_str().to_owned()).collect()
    }

    #[test]
    fn the_items_of_a_stream_keep_their_order_among_progress_pauses_and_the_end() {
        let lines = |numbers: std::ops::Range<u32>| -> String {
            numbers.map(|number| format!("{number}\n")).collect()
        };
        let pieces = [lines(0..1_000), "progress 1/2 half\n".to_owned(), lines(1_000..2_000)];
        let pieces = pieces.map(|piece| Ok(Bytes::from(piece)));
        let pause = stream::once(async {
            tokio::task::yield_now().await;
            Ok(Bytes::from("2000"))
        });
        let broken = stream::once(async { Err(io::Error::other("lost")) });
        let body = Body::new(StreamBody::new(
            stream::iter(pieces).chain(pause).chain(broken).map_ok(Frame::data),
        ));
        let run = ended(of_stream(body));
        let told = told(&run);
        let half = told.iter().position(|event| event.starts_with("{\"progress\"")).unwrap();
        assert_eq!(half, 1_001, "behind the state and the first thousand");
        let partials = told.iter().filter_map(|event| event.strip_prefix("{\"partial\":"));
        let numbers = partials.map(|rest| rest.trim_end_matches('}').parse::<u32>().unwrap());
        assert!(numbers.eq(0..2_000), "the last line has no end");
        assert_eq!(run.status(Instant::now()).state, RunState::Failed);
    }

    fn ended(work: RunWork) -> Arc<Run> {
        let runs = Runs::new(RunLimits::default());
        let run = runs.start(StartRun::new("/a", work)).unwrap().run;
        while !run.has_ended() {
            std::thread::yield_now();
        }
        run
    }

    #[test]
    fn an_error_of_a_service_is_a_problem_with_its_status_that_clients_can_read() {
        let own = r#"{"type":"/problems/no","status":422, "title":"No"}"#;
        assert_eq!(problem_of(own), own);
        for (body, expected) in [
            (r#"{"type":"/no"}"#, r#"{"status":422,"type":"/no"}"#),
            (r#"{"status":"error","type":"/no"}"#, r#"{"status":422,"type":"/no"}"#),
            (r#"{"status":200,"type":"/no"}"#, r#"{"status":422,"type":"/no"}"#),
        ] {
            assert_eq!(problem_of(body), expected);
        }
        // What clients would not understand as a problem is quoted.
        for body in
            [r#"{"status":"error","message":"no"}"#, r#"{"type":"/no","detail":[{"msg":"no"}]}"#]
        {
            let problem = problem_of(body);
            let details = Details::parse(problem.as_bytes()).unwrap();
            assert_eq!((&*details.name, details.status), ("run-failed", 422));
            assert!(details.detail.ends_with(&format!(": {body}")), "{problem}");
        }
    }

    /// Returns the problem of a run whose service has answered 422 with this body.
    fn problem_of(body: &'static str) -> String {
        let run = ended(RunWork::new(move |_| {
            let reply =
                Response::builder().status(422).header(header::CONTENT_TYPE, "application/json");
            Err(refused(&reply.body(()).unwrap().into_parts().0, body.as_bytes()))
        }));
        run.status(Instant::now()).problem().unwrap().to_owned()
    }
}
