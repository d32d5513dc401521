//! Which service answers.

use anemone_server::{BindError, Server, StaticDir};
use anemone_testing::{Socket, logged};
use anemone_ws::proto::Message;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tower_service::Service as _;

use super::*;

/// A service that says its name and the path of the request.
fn named(path: &str) -> Mount {
    let name = path.to_owned();
    let say = async move |uri: Uri| format!("{name}: {}", uri.path());
    mount(path, Router::new().fallback(say))
}

#[test]
fn the_longest_path_answers_before_files_and_files_before_the_root() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("api")).unwrap();
    for name in ["file.txt", "api/file.txt"] {
        std::fs::write(folder.path().join(name), "a file").unwrap();
    }
    let fixture = with_mounts(["/docs/api", "/a", "/a/b"].map(named).to_vec(), |options| {
        options.mounts[0] = named("/"); // instead of the page
        options.static_dirs = vec![StaticDir::new("/docs/".parse().unwrap(), folder.path())];
    });
    for (target, body) in [
        ("/", "/: /"),
        ("/other", "/: /other"),
        ("/a", "/a: /a"),
        ("/a/c", "/a: /a/c"),
        ("/%61/%62/c?d", "/a/b: /a/b/c"),
        ("/ab", "/: /ab"),
        ("/docs/file.txt", "a file"),
        ("/docs/api/file.txt", "/docs/api: /docs/api/file.txt"),
    ] {
        assert_eq!(fixture.get(target, &[]).body, body, "{target}");
    }
    fixture.get("/topics/none", &[]).problem(404, "unknown-topic");
}

#[test]
fn a_browser_that_opens_a_topic_gets_the_page_of_the_root() {
    const BROWSER: (&str, &str) = ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let with_root = |root: Mount| with_mounts(vec![], move |options| options.mounts = vec![root]);
    let fixture = with_root(named("/").browser_pages());
    let page = fixture.get("/topics/wind", &[BROWSER]);
    assert_eq!(page.body, "/: /topics/wind");
    assert_eq!(
        (page.field("vary"), page.field("allow")),
        (Some("accept, sec-fetch-mode"), Some("GET, HEAD"))
    );
    for accept in ["*/*", "application/json", "text/html, application/json", "text/html;q=0, */*"] {
        let json = fixture.get("/topics/wind", &[("Accept", accept)]);
        assert_eq!(json.field("content-type"), Some("application/json"), "{accept}");
    }
    for target in ["/topics", "/topics?topic=wind"] {
        let json = fixture.get(target, &[BROWSER]);
        assert_eq!(json.field("content-type"), Some("application/json"), "{target}");
    }
    let page = fixture.get("/topics/none", &[BROWSER, ("If-None-Match", "*")]);
    assert_eq!((page.status, &*page.body), (404, "/: /topics/none"));
    assert_eq!((page.field("vary"), page.field("allow")), (Some("accept, sec-fetch-mode"), None));
    for accept in ["*/*", "application/json", "text/event-stream, text/html;q=0.5"] {
        fixture.get("/topics/none", &[("Accept", accept)]).problem(404, "unknown-topic");
    }
    fixture.get("/topics/-", &[BROWSER]).problem(400, "bad-name");
    fixture.get("/topics/wind?limit=x", &[BROWSER]).problem(400, "bad-parameter");
    fixture
        .get("/topics/wind?frame=f", &[("Accept", "application/json")])
        .problem(406, "not-acceptable");
    // Without such pages, a topic has only the representations of its own.
    let fixture = with_root(named("/"));
    let json = fixture.get("/topics/wind", &[BROWSER]);
    assert_eq!(json.field("content-type"), Some("application/json"));
}

#[test]
fn a_browser_that_opens_runs_or_a_mount_with_a_page_gets_the_page_of_the_root() {
    const BROWSER: (&str, &str) = ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let fixture = |root: Mount| {
        let mounts = vec![root, named("/notes").page_at_root(), named("/plain")];
        with_mounts(vec![], move |options| options.mounts = mounts)
    };
    let key = "0".repeat(32);
    let pages = fixture(named("/").browser_pages());
    for (target, body) in [
        ("/runs", "/: /runs"),
        ("/runs?limit=1", "/: /runs"),
        ("/notes", "/: /notes"),
        ("/notes/1", "/notes: /notes/1"),
        ("/plain", "/plain: /plain"),
    ] {
        assert_eq!(pages.get(target, &[BROWSER]).body, body, "{target}");
    }
    assert_eq!(pages.get("/runs", &[BROWSER]).field("vary"), Some("accept, sec-fetch-mode"));
    assert_eq!(pages.request("POST", "/notes", &[BROWSER]).body, "/notes: /notes");
    for accept in ["*/*", "application/json", "text/html, application/json", "text/html;q=0, */*"] {
        let accept = [("Accept", accept)];
        assert_eq!(
            pages.get("/runs", &accept).body.trim(),
            r#"{"total":0,"kept_ms":600000,"runs":[]}"#
        );
        assert_eq!(pages.get("/notes", &accept).body, "/notes: /notes");
    }
    // A run that is no longer there has a page that says so; its state is for programs.
    let gone = pages.get(&format!("/runs/{key}"), &[BROWSER]);
    assert_eq!((gone.status, &*gone.body), (404, &*format!("/: /runs/{key}")));
    pages.get(&format!("/runs/{key}?state"), &[BROWSER]).problem(404, "unknown-run");
    pages.get(&format!("/runs/{key}"), &[]).problem(404, "unknown-run");
    // Without such pages, all get what programs get.
    let none = fixture(named("/"));
    assert_eq!(
        none.get("/runs", &[BROWSER]).body.trim(),
        r#"{"total":0,"kept_ms":600000,"runs":[]}"#
    );
    assert_eq!(none.get("/notes", &[BROWSER]).body, "/notes: /notes");
    none.get(&format!("/runs/{key}"), &[BROWSER]).problem(404, "unknown-run");
}

#[test]
fn a_page_of_another_origin_may_load_files_and_public_paths_but_no_service() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file.txt"), "a file").unwrap();
    let public = named("/public").public_at(|path| path == "/public/script.js");
    let fixture = with_mounts(vec![named("/api"), public], |options| {
        options.static_dirs = vec![StaticDir::new("/".parse().unwrap(), folder.path())];
    });
    logged::keep();
    let foreign = [("Origin", "http://evil.example")];
    fixture.get("/public/script.js", &[foreign[0], ("Sec-Fetch-Site", "same-site")]);
    let reason = "by its browser: pages of origin http://evil.example may not use this server";
    let told = logged::refusal("GET /public/script.js", reason);
    assert!(told.contains("allow them with --allow-origin, or allow_origins"), "{told}");
    for (target, status) in [
        ("/file.txt", 200),
        ("/%66ile.txt", 200),
        ("/public/script.js", 200),
        ("/public/scrip%74.js", 200),
        ("/public/other", 403),
        ("/api/file.txt", 403),
        ("/%61pi/file.txt", 403),
        ("/topics", 403),
    ] {
        assert_eq!(fixture.get(target, &foreign).status, status, "{target}");
    }
}

#[test]
fn two_services_at_one_path_cannot_be_bound() {
    for path in ["/", "/a"] {
        let options = Options { mounts: [path, path].map(named).to_vec(), ..Options::default() };
        let hub = anemone_hub::Hub::new(anemone_hub::Epoch::from_bits(1));
        let refused = Server::bind(options, hub).map(|_| ()).unwrap_err();
        assert!(matches!(refused, BindError::MountedTwice { .. }));
        assert_eq!(refused.to_string(), format!("two services are mounted at {path}"));
    }
}

#[test]
fn a_preflight_is_answered_by_the_service_which_knows_its_methods() {
    let open = Open::default();
    let fixture = with_mounts(vec![mount("/svc", routes(&open))], |options| {
        options.allowed_origins.push("https://page.example".parse().unwrap());
    });
    let preflight = [("Origin", "https://page.example"), ("Access-Control-Request-Method", "PUT")];
    let seen = fixture.request("OPTIONS", "/svc/seen", &preflight);
    assert_eq!((seen.status, &*seen.body), (200, "OPTIONS /svc/seen none none "));
    assert_eq!(seen.field("access-control-allow-origin"), Some("https://page.example"));
    assert_eq!(fixture.request("OPTIONS", "/topics/wind", &preflight).status, 204);
}

#[test]
fn a_mount_is_also_below_a_path_of_another_http_server() {
    let hub = anemone_hub::Hub::new(anemone_hub::Epoch::from_bits(1));
    let running = Server::builder(hub).mount(named("/a")).bind().unwrap().start().unwrap();
    let mut router = Router::new().nest_service("/live", running.service());
    let asked = http::Request::get("/live/a/b").header("host", "localhost");
    let asked = asked.body(axum::body::Body::empty()).unwrap();
    let runtime = Runtime::new().unwrap();
    let body = runtime.block_on(async {
        let reply = router.call(asked).await.unwrap();
        axum::body::to_bytes(reply.into_body(), 100).await.unwrap()
    });
    assert_eq!(body, "/a: /a/b");
    running.stop_blocking();
}

#[test]
fn a_websocket_below_a_path_of_another_http_server_is_a_call_too() {
    let hub = anemone_hub::Hub::new(anemone_hub::Epoch::from_bits(1));
    let open = Open::default();
    let builder = Server::builder(hub).mount(mount("/svc", routes(&open)));
    let running = builder.bind().unwrap().start().unwrap();
    let router = Router::new().nest_service("/live", running.service());
    let runtime = Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let endpoint = Endpoint { address: listener.local_addr().unwrap() };
    runtime.spawn(async move { axum::serve(listener, router).await });
    let call = |target: &str, message: &str| -> Socket {
        let mut socket = endpoint.websocket(target, &[], &[]);
        socket.send(Message::Text(message));
        socket
    };
    let mut seen = call("/live/svc/seen?a", "x");
    assert_eq!(seen.next(), "POST /svc/seen?a application/json none x");
    assert_eq!(seen.next(), "close 1000 ");
    let mut silent = call("/live/svc/silent", "");
    assert_eq!(silent.next(), "1");
    drop(silent);
    open.wait(0);
    running.stop_blocking();
}
