//! The page of a program that embeds the server; its 8 kB do not fit into a small window.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use anemone_server::{Body, Mount, Problem, full, reading_only};
use http::{Request, Response};
use tower_service::Service;

const PATHS: [&str; 5] = ["/", "/index.html", "/wind/main.js", "/wind/style.css", "/favicon.svg"];

/// Answers with the page, which any origin may read.
pub(crate) fn mount() -> Mount {
    Mount::new("/", Page).unwrap().public_at(|path| PATHS.contains(&path)).http_only()
}

#[derive(Clone)]
struct Page;

impl Service<Request<Body>> for Page {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = request.uri().path();
        let is_there = PATHS.contains(&path).then_some(()).ok_or_else(|| Problem::nothing_at(path));
        let page = is_there.and_then(|()| reading_only(request.method().as_str())).map(|()| {
            Response::builder()
                .header("content-type", "text/html")
                .body(full("Anemone ".repeat(1000)))
                .unwrap()
        });
        ready(Ok(page.unwrap_or_else(Problem::into_response)))
    }
}
