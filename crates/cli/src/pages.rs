//! The pages and the JavaScript client: files that are embedded in the binary, besides the server's topics.

mod content;

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::path::Path;
use std::task::{Context, Poll};

use anemone_server::{
    Body, ContentCoding, Kind, Mount, MountError, Problem, full, is_known, reading_only,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use rust_embed::{EmbeddedFile, RustEmbed};
use tower_service::Service;

use self::content::{Content, is_compressible};

#[derive(RustEmbed)]
#[folder = "../../web"]
struct Web;

/// The JavaScript client: `client.js`, which is what pages import, and its parts in `anemone-client/`.
#[derive(RustEmbed)]
#[folder = "../../clients/js/src"]
struct Client;

/// Allows scripts, styles and connections only from here, and nothing inline.
/// Only the policy `anemone`, for the URL of a worker, makes values for what runs scripts.
const POLICY: &str = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; \
                      require-trusted-types-for 'script'; trusted-types anemone";

/// The paths of the JavaScript client.
const CLIENT: [&str; 2] = ["/client.js", "/anemone-client"];

/// Mounts the pages at `/`. If a directory at `/` replaces them, mounts the JavaScript client for the pages in that
/// directory, unless it has files at the same paths. `messages` is the name of the messages, where there are some.
pub(crate) fn mounts(
    root: Option<&Path>,
    messages: Option<&'static str>,
) -> Result<Vec<Mount>, MountError> {
    let is_taken = |root: &Path| CLIENT.iter().any(|path| root.join(&path[1..]).exists());
    let is_client_needed = root.is_some_and(|root| !is_taken(root));
    let client = CLIENT.iter().filter(|_| is_client_needed);
    let mount = |path| Ok(Mount::new(path, Pages { messages })?.public_at(is_one).http_only());
    let mut mounts = client.copied().map(mount).collect::<Result<Vec<_>, _>>()?;
    let pages = mount("/")?;
    // A page about a topic or a run loads its scripts from `/`.
    mounts.push(if root.is_none() { pages.browser_pages() } else { pages });
    Ok(mounts)
}

/// Answers with the page at a path.
#[derive(Clone, Copy, Debug)]
struct Pages {
    messages: Option<&'static str>,
}

impl Service<Request<Body>> for Pages {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = request.uri().path();
        let name = self.shown_at(path, request.extensions().get::<Problem>().is_some());
        let page = match name {
            Some(name) => {
                reading_only(request.method().as_str()).and_then(|()| file(name, request.headers()))
            }
            None => Err(Problem::nothing_at(path)),
        };
        ready(Ok(page.unwrap_or_else(Problem::into_response)))
    }
}

impl Pages {
    /// Returns the name of the file for this path. The server asks for the page about a topic, a run, the runs, the
    /// connections or the messages at their own URLs, also for a topic or a run that does not exist.
    fn shown_at(self, path: &str, is_missing: bool) -> Option<&str> {
        match path.strip_prefix('/')? {
            "runs" => Some("runs.html"),
            "connections" => Some("connections.html"),
            own if Some(own) == self.messages => Some("messages.html"),
            own if own.starts_with("topics/") && is_missing => Some("missing.html"),
            own if own.starts_with("topics/") => Some("topic.html"),
            own if own.starts_with("runs/") => Some("run.html"),
            _ => name_of(path),
        }
    }
}

/// Returns true if there is a file at this path.
fn is_one(path: &str) -> bool {
    name_of(path).is_some()
}

/// Returns true if there are files below this path, which ends with a slash.
pub(crate) fn is_below(path: &str) -> bool {
    let Some(prefix) = path.strip_prefix('/') else { return false };
    Web::iter().chain(Client::iter()).any(|name| name.starts_with(prefix))
}

/// Returns true if there is a file at this path or below it.
pub(crate) fn hides(path: &str) -> bool {
    is_one(path) || is_below(&format!("{path}/"))
}

fn embedded(name: &str) -> Option<EmbeddedFile> {
    Web::get(name).or_else(|| Client::get(name))
}

/// Returns the name of the file at this path: `/` and `/wind` are pages.
fn name_of(path: &str) -> Option<&str> {
    let name = match path.strip_prefix('/')? {
        "" => "index.html",
        "wind" => "wind.html",
        name => name,
    };
    embedded(name).map(|_| name)
}

/// Returns the file of this name, compressed if its client accepts that.
fn file(name: &str, headers: &HeaderMap) -> Result<Response<Body>, Problem> {
    let file = embedded(name).ok_or_else(|| Problem::nothing_at(&format!("/{name}")))?;
    let kind = content_type(name);
    let varies = is_compressible(&file, kind);
    let content = Content::choose(file, kind, headers).ok_or_else(|| {
        let detail =
            "pages are sent uncompressed, or from 1 KiB with gzip; Accept-Encoding allows neither";
        Problem::new(Kind::NotAcceptable, detail)
    })?;
    let (coding, etag) = (content.coding, content.etag.clone());
    let is_known = etag.to_str().is_ok_and(|etag| is_known(headers, etag));
    let mut response =
        Response::new(full(if is_known { Bytes::new() } else { content.into_bytes(name) }));
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let fields = response.headers_mut();
    if varies {
        fields.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    }
    if coding == ContentCoding::Gzip && !is_known {
        fields.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    fields.insert(header::ETAG, etag);
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    fields.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    // Isolated pages get a clock that is precise enough to measure latencies.
    fields.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    fields.insert("cross-origin-embedder-policy", HeaderValue::from_static("require-corp"));
    fields.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(response)
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_page_is_not_sent_again() {
        let page = file("index.html", &HeaderMap::new()).unwrap();
        assert_eq!(page.status(), StatusCode::OK);
        let etag = page.headers()[header::ETAG].to_str().unwrap().to_owned();
        for known in
            [etag.clone(), format!("W/{etag}"), format!("\"other\", {etag}"), "*".to_owned()]
        {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, known.parse().unwrap());
            assert_eq!(
                file("index.html", &headers).unwrap().status(),
                StatusCode::NOT_MODIFIED,
                "{known}"
            );
        }
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, "\"other\"".parse().unwrap());
        assert_eq!(file("index.html", &headers).unwrap().status(), StatusCode::OK);
    }

    #[test]
    fn a_compressed_file_has_the_same_bytes() {
        let headers = |coding| {
            HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(coding))])
        };
        for name in Web::iter().chain(Client::iter()) {
            let [plain, gzip] = ["identity", "gzip"].map(|coding| {
                let headers = headers(coding);
                let content =
                    Content::choose(embedded(&name).unwrap(), content_type(&name), &headers)
                        .unwrap();
                (content.coding, content.into_bytes(&name))
            });
            if gzip.0 == ContentCoding::Identity {
                assert!(plain.1.len() < 1 << 10, "{name}: {}", plain.1.len());
                continue;
            }
            assert!(plain.1.len() >= 1 << 10 && gzip.1.len() < plain.1.len(), "{name}");
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*gzip.1), &mut bytes)
                .unwrap();
            assert_eq!(bytes, plain.1, "{name}");
        }
    }

    #[test]
    fn every_file_has_one_path() {
        assert!(Web::iter().all(|name| Client::get(&name).is_none()));
        let client = Client::iter().map(|name| format!("/{name}"));
        let is_mounted = |path: &str| path == CLIENT[0] || path.starts_with("/anemone-client/");
        assert!(client.into_iter().all(|path| is_mounted(&path)));
    }

    #[test]
    fn the_client_is_there_beside_a_directory_that_replaces_the_pages() {
        let paths = |root: Option<&Path>| {
            mounts(root, None)
                .unwrap()
                .iter()
                .map(|mount| mount.path().to_owned())
                .collect::<Vec<_>>()
        };
        let root = tempfile::tempdir().unwrap();
        assert_eq!(paths(None), ["/"]);
        assert_eq!(paths(Some(root.path())), ["/client.js", "/anemone-client", "/"]);
        std::fs::write(root.path().join("client.js"), "export const mine = 1;").unwrap();
        assert_eq!(paths(Some(root.path())), ["/"]);
    }

    #[test]
    fn the_messages_have_a_page_where_there_are_some() {
        let shown = |messages| Pages { messages }.shown_at("/messages", false);
        assert_eq!((shown(None), shown(Some("messages"))), (None, Some("messages.html")));
        for page in [
            "connections.html",
            "messages.html",
            "runs.html",
            "run.html",
            "topic.html",
            "missing.html",
        ] {
            assert!(embedded(page).is_some(), "{page}");
        }
    }

    #[test]
    fn no_page_is_at_a_path_of_the_server() {
        for own in anemone_server::OWN_PATHS {
            assert!(!is_one(&format!("/{own}")) && !is_below(&format!("/{own}/")), "{own}");
        }
    }

    #[test]
    fn what_is_not_a_page_is_not_served() {
        for path in ["/nothing", "/../Cargo.toml", "//index.html", "/index.html/", ""] {
            assert_eq!(Pages { messages: None }.shown_at(path, false), None, "{path}");
        }
    }
}
