use std::future::poll_fn;

use anemone_hub::{Epoch, Hub};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use super::*;
use crate::{Changed, CollectionOptions, Found, Guard, Messages, Methods, Record, Schema};

fn messages() -> ResourceService<Messages> {
    let hub = Hub::new(Epoch::random().unwrap());
    let messages = Messages::open(&hub, "messages".parse().unwrap(), CollectionOptions::default());
    ResourceService::new("/messages", messages.unwrap())
}

struct Reply {
    status: u16,
    headers: http::HeaderMap,
    text: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    fn field(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn problem(&self) -> (u16, String) {
        assert_eq!(self.field("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        (self.status, problem["type"].as_str().unwrap().replace("/problems/", ""))
    }
}

async fn ask<S>(service: &S, head: &str, fields: &[(&str, &str)], body: impl Into<Bytes>) -> Reply
where
    S: Service<Request<Full<Bytes>>, Response = Response<ReplyBody>, Error = Infallible> + Clone,
{
    let (method, target) = head.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(target);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let mut service = service.clone();
    poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
    let reply = service.call(request.body(Full::from(body.into())).unwrap()).await.unwrap();
    let (head, body) = reply.into_parts();
    let text = String::from_utf8(body.collect().await.unwrap().to_bytes().into()).unwrap();
    Reply { status: head.status.as_u16(), headers: head.headers, text }
}

#[tokio::test]
async fn each_request_has_the_reply_of_the_table() {
    let service = messages();
    let created = ask(&service, "POST /messages", &[], r#"{"text":"a"}"#).await;
    assert_eq!((created.status, created.json()), (201, json!({"id": "1", "text": "a"})));
    assert_eq!(created.field("location"), "messages/1");
    let tag = created.field("etag");
    assert!(tag.starts_with('"') && tag.ends_with("-1\""), "{tag}");
    let got = ask(&service, "GET /messages/1", &[], "").await;
    assert_eq!((got.status, &*got.text, got.field("etag")), (200, r#"{"id":"1","text":"a"}"#, tag));
    let known = ask(&service, "GET /messages/1", &[("if-none-match", tag)], "").await;
    assert_eq!((known.status, &*known.text, known.field("etag")), (304, "", tag));
    let updated = ask(&service, "PUT /messages/1", &[], r#"{"text":"b","from":"me"}"#).await;
    assert_eq!(
        (updated.status, updated.json()),
        (200, json!({"id": "1", "text": "b", "from": "me"}))
    );
    assert_ne!(updated.field("etag"), tag);
    let patched = ask(&service, "PATCH /messages/1", &[], r#"{"from":null}"#).await;
    assert_eq!((patched.status, patched.json()), (200, json!({"id": "1", "text": "b"})));
    let found = ask(&service, "GET /messages?text=b&$limit=5", &[], "").await;
    let page = json!({"total": 1, "limit": 5, "skip": 0, "data": [{"id": "1", "text": "b"}]});
    assert_eq!((found.status, found.json()), (200, page));
    let stale = ask(&service, "DELETE /messages/1", &[("if-match", tag)], "").await;
    assert_eq!(stale.problem(), (412, "precondition-failed".into()));
    let fresh = [("if-match", patched.field("etag"))];
    let removed = ask(&service, "DELETE /messages/1", &fresh, "").await;
    assert_eq!((removed.status, removed.json()), (200, json!({"id": "1", "text": "b"})));
    assert_eq!(removed.field("etag"), "");
    let gone = ask(&service, "GET /messages/1", &[], "").await;
    assert_eq!(gone.problem(), (404, "unknown-record".into()));
}

#[tokio::test]
async fn testing_is_there_until_it_is_stored() {
    let service = messages();
    let testing = || ask(&service, "GET /messages/testing", &[], "");
    let reply = testing().await;
    assert_eq!((reply.status, &*reply.text, reply.field("etag")), (200, r#"{"id":"testing"}"#, ""));
    let put = ask(&service, "PUT /messages/testing", &[], r#"{"text":"a"}"#).await;
    assert_eq!(put.problem(), (404, "unknown-record".into()));
    let created = ask(&service, "POST /messages", &[], r#"{"id":"testing","text":"a"}"#).await;
    assert_eq!(created.status, 201);
    assert_eq!(testing().await.json(), json!({"id": "testing", "text": "a"}));
}

#[tokio::test]
async fn head_is_get_without_a_body() {
    let service = messages();
    let got = ask(&service, "GET /messages/testing", &[], "").await;
    let head = ask(&service, "HEAD /messages/testing", &[], "").await;
    assert_eq!((head.status, &*head.text), (200, ""));
    assert_eq!(head.field("content-length"), got.text.len().to_string());
    assert_eq!(head.field("content-type"), got.field("content-type"));
    assert_eq!(ask(&service, "HEAD /messages?$limit=1", &[], "").await.status, 200);
}

#[tokio::test]
async fn options_tell_a_browser_which_methods_there_are() {
    let service = messages();
    let one = ask(&service, "OPTIONS /messages/a", &[], "").await;
    assert_eq!((one.status, one.field("allow")), (204, "GET, HEAD, PUT, PATCH, DELETE"));
    assert_eq!(one.field("access-control-allow-methods"), one.field("allow"));
    assert!(one.field("access-control-allow-headers").contains("If-Match"));
    let all = ask(&service, "OPTIONS /messages", &[], "").await;
    assert_eq!((all.status, all.field("allow")), (204, "GET, HEAD, POST"));
}

#[tokio::test]
async fn bad_input_gets_the_problem_of_the_page() {
    let service = messages();
    ask(&service, "POST /messages", &[], r#"{"id":"a","text":"a"}"#).await;
    let big = format!("{{\"text\":\"{}\"}}", "x".repeat(64 << 10));
    let text: &[(&str, &str)] = &[("content-type", "text/plain")];
    for (head, fields, body, status, name) in [
        ("POST /messages", &[][..], &*big, 413, "body-too-big"),
        ("POST /messages", text, "{}", 415, "unsupported-type"),
        (
            "POST /messages",
            &[("content-type", "application/merge-patch+json")],
            "{}",
            415,
            "unsupported-type",
        ),
        (
            "POST /messages",
            &[("content-type", "application/json; charset=latin1")],
            "{}",
            415,
            "unsupported-type",
        ),
        ("POST /messages", &[("content-encoding", "gzip")], "{}", 415, "unsupported-encoding"),
        ("POST /messages", &[], "{\n  \"text\": a}", 400, "bad-body"),
        ("POST /messages", &[], "", 400, "bad-body"),
        ("POST /messages", &[], "[]", 422, "unprocessable"),
        ("POST /messages", &[], "{}", 422, "unprocessable"),
        ("POST /messages", &[], r#"{"text":7}"#, 422, "unprocessable"),
        ("POST /messages", &[], r#"{"text":"b","text":"c"}"#, 422, "unprocessable"),
        ("PATCH /messages/a", &[], r#"{"text":"b","\u0074ext":"c"}"#, 422, "unprocessable"),
        ("POST /messages", &[], r#"{"id":"a","text":"b"}"#, 409, "conflict"),
        ("POST /messages", &[("idempotency-key", "a b")], r#"{"text":"b"}"#, 400, "bad-parameter"),
        ("POST /messages", &[("if-match", "\"x\"")], r#"{"text":"b"}"#, 412, "precondition-failed"),
        ("POST /messages?key=a", &[], r#"{"text":"b"}"#, 400, "bad-parameter"),
        ("PUT /messages/b", &[], r#"{"text":"b"}"#, 404, "unknown-record"),
        ("PUT /messages/b", &[("if-match", "*")], r#"{"text":"b"}"#, 412, "precondition-failed"),
        ("PATCH /messages/a", &[("if-match", "a")], "{}", 400, "bad-parameter"),
        ("DELETE /messages/b", &[], "", 404, "unknown-record"),
        ("GET /messages/b", &[], "", 404, "unknown-record"),
        ("GET /messages/a/b", &[], "", 404, "unknown-path"),
        ("GET /messages/", &[], "", 404, "unknown-path"),
        ("GET /messages/%zz", &[], "", 400, "bad-name"),
        ("GET /messages/a?text=b", &[], "", 400, "bad-parameter"),
        ("GET /messages?$foo=1", &[], "", 400, "bad-parameter"),
        ("GET /messages?text[$like]=1", &[], "", 400, "bad-parameter"),
        ("GET /messages?$limit=x", &[], "", 400, "bad-parameter"),
        ("GET /messages?colour=red", &[], "", 422, "unprocessable"),
        ("PUT /messages", &[], "{}", 405, "method-not-allowed"),
        ("POST /messages/a", &[], "{}", 405, "method-not-allowed"),
    ] {
        let reply = ask(&service, head, fields, body.to_owned()).await;
        assert_eq!(reply.problem(), (status, name.to_owned()), "{head} {}", reply.text);
    }
}

#[tokio::test]
async fn a_problem_says_where_and_what_instead() {
    let service = messages();
    let reply = ask(&service, "POST /messages", &[], "{\n  \"text\": a}").await;
    assert!(reply.text.contains("line 2 column 11"), "{}", reply.text);
    let reply = ask(&service, "POST /messages", &[], r#"{"text":"a","from":7}"#).await;
    assert_eq!(reply.json()["pointer"], "/from");
    let reply = ask(&service, "POST /messages", &[], r#"{"text":"a","text":"b"}"#).await;
    assert_eq!(reply.json()["pointer"], "/text");
    let form: &[(&str, &str)] = &[("content-type", "application/x-www-form-urlencoded")];
    let reply = ask(&service, "POST /messages", form, r#"{"text":"hi"}"#).await;
    assert_eq!(reply.json()["title"], "The type of the body is not supported");
    let detail = "the type of the body may be application/json, not \"application/x-www-form-urlencoded\": send \
                  Content-Type: application/json (curl --json)";
    assert_eq!(reply.json()["detail"], detail);
    let reply = ask(&service, "POST /messages", &[("content-type", "text/plain")], "{}").await;
    assert_eq!(reply.field("accept-post"), "application/json");
    let reply = ask(&service, "PATCH /messages/a", &[("content-type", "text/plain")], "{}").await;
    assert_eq!(reply.field("accept-patch"), "application/merge-patch+json, application/json");
    assert_eq!(ask(&service, "PUT /messages", &[], "{}").await.field("allow"), "GET, HEAD, POST");
    let allow = ask(&service, "POST /messages/a", &[], "{}").await;
    assert_eq!(allow.field("allow"), "GET, HEAD, PUT, PATCH, DELETE");
}

#[tokio::test]
async fn a_create_with_a_key_may_be_repeated() {
    let service = messages();
    let create =
        |body: &'static str| ask(&service, "POST /messages", &[("idempotency-key", "k")], body);
    let first = create(r#"{"text":"a","from":"b"}"#).await;
    ask(&service, "PATCH /messages/1", &[], r#"{"text":"c"}"#).await;
    let again = create(r#"{"from":"b","text":"a"}"#).await;
    assert_eq!((again.status, again.field("idempotent-replayed")), (200, "true"));
    assert_eq!((&again.text, again.field("etag")), (&first.text, first.field("etag")));
    assert_eq!(again.field("location"), "messages/1");
    assert_eq!(create(r#"{"text":"other"}"#).await.problem(), (422, "key-reused".into()));
    let found = ask(&service, "GET /messages", &[], "").await;
    assert_eq!(found.json()["total"], 1);
}

#[tokio::test]
async fn a_remove_with_a_key_may_be_repeated_and_says_so() {
    let service = messages();
    for _ in 0..2 {
        ask(&service, "POST /messages", &[], r#"{"text":"a"}"#).await;
    }
    let remove = |path: &'static str| ask(&service, path, &[("idempotency-key", "k")], "");
    let first = remove("DELETE /messages/1").await;
    assert_eq!((first.status, first.field("idempotent-replayed")), (200, ""));
    let again = remove("DELETE /messages/1").await;
    assert_eq!((again.status, again.field("idempotent-replayed")), (200, "true"));
    assert_eq!((&again.text, again.field("etag")), (&first.text, ""));
    assert_eq!(remove("DELETE /messages/2").await.problem(), (422, "key-reused".into()));
    let gone = ask(&service, "DELETE /messages/1", &[], "").await;
    assert_eq!(gone.problem(), (404, "unknown-record".into()));
}

#[tokio::test]
async fn a_body_has_64_kib_at_most() {
    let service = messages();
    let spaces = |bytes: usize| format!("{{\"text\":\"a\"{}}}", " ".repeat(bytes - 12));
    let largest = ResourceService::<Messages>::BODY_BYTES_MAX;
    assert_eq!(ask(&service, "POST /messages", &[], spaces(largest)).await.status, 201);
    assert_eq!(ask(&service, "POST /messages", &[], spaces(largest + 1)).await.status, 413);
}

/// A resource that only says who asks.
struct Greeting(Schema);

#[derive(Clone)]
struct User(&'static str);

impl Resource for Greeting {
    fn methods(&self) -> Methods {
        Methods::of(&[crate::Method::Get])
    }

    fn schema(&self) -> &Schema {
        &self.0
    }

    async fn get(&self, id: &str, call: &Call) -> Result<Record, ResourceError> {
        let user = call.extensions.get::<User>().map_or("nobody", |user| user.0);
        let fields = [("id".to_owned(), id.into()), ("user".to_owned(), user.into())];
        Ok(Record { fields: fields.into_iter().collect(), tag: None })
    }
}

#[tokio::test]
async fn a_method_that_is_not_offered_is_not_allowed() {
    let service = ResourceService::new("/greetings", Greeting(Schema::new("Greeting")));
    let reply = ask(&service, "GET /greetings/hi", &[], "").await;
    assert_eq!(reply.json(), json!({"id": "hi", "user": "nobody"}));
    let refused = ask(&service, "DELETE /greetings/hi", &[], "").await;
    assert_eq!((refused.status, refused.field("allow")), (405, "GET, HEAD"));
    let refused = ask(&service, "GET /greetings", &[], "").await;
    assert_eq!((refused.status, refused.field("allow")), (405, ""));
}

#[tokio::test]
async fn hooks_are_layers_around_the_service() {
    let service = ResourceService::new("/greetings", Greeting(Schema::new("Greeting")));
    let guarded = Guard::new(service, |head| match head.headers.get("authorization") {
        Some(_) => Ok(()),
        None => Err(ResourceError::Refused("say who you are".into())),
    });
    assert_eq!(
        ask(&guarded, "GET /greetings/hi", &[], "").await.problem(),
        (403, "start-refused".into())
    );
    let reply = ask(&guarded, "GET /greetings/hi", &[("authorization", "x")], "").await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn what_a_resource_does_not_override_fails() {
    struct Nothing(Schema);
    impl Resource for Nothing {
        fn methods(&self) -> Methods {
            Methods::ALL
        }
        fn schema(&self) -> &Schema {
            &self.0
        }
    }
    let nothing = Nothing(Schema::new("Nothing"));
    let call = Call::default();
    assert_eq!(
        nothing.find(&Query::default(), &call).await.map(|Found { total, .. }| total),
        Err(ResourceError::Failed)
    );
    let created: Result<Changed, _> = nothing.create(Fields::new(), &call).await;
    assert_eq!(created, Err(ResourceError::Failed));
    let service = ResourceService::new("/nothing", nothing);
    for head in [
        "GET /nothing",
        "GET /nothing/a",
        "PUT /nothing/a",
        "PATCH /nothing/a",
        "DELETE /nothing/a",
    ] {
        assert_eq!(
            ask(&service, head, &[], "{}").await.problem(),
            (500, "internal".into()),
            "{head}"
        );
    }
}

/// Messages whose texts take six bytes for each of their characters.
async fn escaped(count: usize) -> ResourceService<Messages> {
    let service = messages();
    let record = json!({"text": "\u{1}".repeat(2_000)}).to_string();
    for _ in 0..count {
        let created = ask(&service, "POST /messages", &[], record.clone()).await;
        assert_eq!(created.status, 201);
    }
    service
}

#[tokio::test]
async fn a_page_is_as_long_as_its_json_and_not_as_its_characters() {
    let service = escaped(200).await;
    let found = ask(&service, "GET /messages?$limit=1000", &[], "").await;
    let records = found.json()["data"].as_array().unwrap().len();
    assert!(found.text.len() <= Query::BYTES_MAX, "{} bytes", found.text.len());
    assert!(found.text.len() > Query::BYTES_MAX - 13_000, "{} bytes", found.text.len());
    let next = ask(&service, &format!("GET /messages?$skip={records}&$limit=1"), &[], "").await;
    assert_eq!(next.json()["data"][0]["id"], (records + 1).to_string());
}

#[tokio::test]
async fn a_page_gives_way_to_other_clients_between_its_pieces() {
    let (service, target) = (escaped(8).await, "GET /messages?$limit=1000");
    let request = Request::builder().uri(&target[4..]).body(Full::<Bytes>::default()).unwrap();
    let mut body = service.clone().answer(request).await.into_body();
    let (mut pieces, mut pauses) = (0, 0);
    let mut cx = Context::from_waker(std::task::Waker::noop());
    loop {
        match http_body::Body::poll_frame(Pin::new(&mut body), &mut cx) {
            Poll::Ready(Some(_)) => pieces += 1,
            Poll::Ready(None) => break,
            Poll::Pending => pauses += 1,
        }
        assert!(pauses == pieces || pauses + 1 == pieces, "{pauses} pauses, {pieces} pieces");
    }
    assert!(pieces > 1 && pauses + 1 == pieces, "{pauses} pauses, {pieces} pieces");
    // Whoever waits for the next piece is woken.
    assert_eq!(ask(&service, target, &[], "").await.json()["total"], 8);
}

#[tokio::test]
async fn a_page_comes_in_pieces_and_its_length_is_known_before() {
    let service = escaped(40).await;
    for (limit, pieces_min) in [(0, 1), (1, 1), (40, 10)] {
        let target = format!("GET /messages?$limit={limit}");
        let whole = ask(&service, &target, &[], "").await;
        assert_eq!(whole.json()["data"].as_array().unwrap().len(), limit);
        let request = Request::builder().uri(&target[4..]).body(Full::<Bytes>::default()).unwrap();
        let mut body = service.clone().answer(request).await.into_body();
        let len = http_body::Body::size_hint(&body).exact().unwrap();
        assert_eq!(len, whole.text.len() as u64);
        let (mut text, mut pieces) = (Vec::new(), 0);
        while let Some(frame) = body.frame().await {
            let piece = frame.unwrap().into_data().unwrap();
            assert!(!piece.is_empty() && piece.len() <= 64 << 10, "{}", piece.len());
            text.extend_from_slice(&piece);
            pieces += 1;
        }
        assert!(pieces >= pieces_min, "{pieces} pieces");
        assert_eq!(text, whole.text.as_bytes());
    }
}
