//! The pages and the JavaScript client: files that are embedded in the binary, besides the server's topics.

mod content;
pub(crate) mod facts;

use std::borrow::Cow;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};

use anemone_server::{
    Body, ContentCoding, Kind, Mount, MountError, Problem, full, is_known, prefers_html,
    reading_only,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use rust_embed::{EmbeddedFile, RustEmbed};
use tower_service::Service;

use self::content::{Content, is_compressible};
use self::facts::ServerFacts;

#[derive(RustEmbed)]
#[folder = "../../web"]
struct Web;

/// The JavaScript client: `client.js`, which is what pages import, and its parts in `anemone-client/`.
#[derive(RustEmbed)]
#[folder = "../../clients/js/src"]
struct JsClient;

/// Allows scripts, styles and connections only from here, and nothing inline.
/// Only the policy `anemone`, for the URL of a worker, makes values for what runs scripts.
const POLICY: &str = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; \
                      require-trusted-types-for 'script'; trusted-types anemone";

/// Returns the policy of a page at this host. It names the WebSockets of the host, which Safari before 15.4 does not count as
/// `'self'`. A host that could not be written in a policy is left out.
fn policy(host: Option<&HeaderValue>) -> HeaderValue {
    let is_of_policy = |byte: u8| byte.is_ascii_alphanumeric() || b".-:".contains(&byte);
    let host = host.and_then(|host| host.to_str().ok());
    let host = host.filter(|host| !host.is_empty() && host.bytes().all(is_of_policy));
    let policy = host.map(|host| {
        HeaderValue::try_from(format!("{POLICY}; connect-src 'self' ws://{host} wss://{host}"))
    });
    policy.and_then(Result::ok).unwrap_or(HeaderValue::from_static(POLICY))
}

/// The paths of the JavaScript client.
const CLIENT: [&str; 2] = ["/client.js", "/anemone-client"];

/// The paths of what the pages about runs, topics and messages load, besides the client.
const PARTS: [&str; 7] =
    ["/page", "/chart", "/home", "/measure", "/missing", "/topic", "/transport"];
/// The paths of what these pages link to, or do without.
const BESIDE: [&str; 4] = ["/wind", "/transports", "/lab", "/favicon.svg"];

/// Mounts the pages at `/`. If a directory at `/` replaces the first one, mounts the JavaScript client for the pages in that
/// directory, and what the pages about runs, topics and messages load. Files of the directory at the same paths go first.
/// `services` are the paths of those that have a page of their own. `runs` are the paths at which runs start: those without a
/// page of their own lead to the form that starts runs. `facts` are for the page at `/`.
pub(crate) fn mounts(
    root: Option<&Path>,
    services: Arc<[&'static str]>,
    runs: Arc<[String]>,
    facts: ServerFacts,
) -> Result<Vec<Mount>, MountError> {
    let has = |path: &&str| root.is_some_and(|root| root.join(&path[1..]).exists());
    let is_client_free = !CLIENT.iter().any(&has);
    // Pages with parts of another origin would fail in ways that nobody understands.
    let are_pages_free = is_client_free && !PARTS.iter().any(&has);
    let client = CLIENT.iter().filter(|_| root.is_some() && is_client_free);
    let parts = PARTS.iter().chain(BESIDE.iter().filter(|path| !has(path)));
    let parts = parts.filter(|_| root.is_some() && are_pages_free);
    let pages = Pages { services, runs, facts };
    let mount = |path| Ok(Mount::new(path, pages.clone())?.public_at(is_one).http_only());
    let mut mounts = client.chain(parts).copied().map(mount).collect::<Result<Vec<_>, _>>()?;
    let pages = mount("/")?;
    // A page about a topic or a run loads its scripts from `/`.
    mounts.push(if are_pages_free { pages.browser_pages() } else { pages });
    Ok(mounts)
}

#[derive(Clone, Debug)]
struct Pages {
    services: Arc<[&'static str]>,
    runs: Arc<[String]>,
    facts: ServerFacts,
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
        if !self.services.contains(&path) && self.runs.iter().any(|run| run == path) {
            return ready(Ok(start_form(path)));
        }
        if let Some(reply) = self.facts.answer(&request) {
            return ready(Ok(reply.unwrap_or_else(Problem::into_response)));
        }
        let problem = request.extensions().get::<Problem>();
        if problem.is_some_and(|problem| problem.kind() == Kind::UnknownPath) {
            return ready(Ok(nothing(path, request.headers())));
        }
        let reading = reading_only(request.method().as_str());
        let page = match self.shown_at(path, problem.is_some()) {
            Some(name) => reading.and_then(|()| file(&name, request.headers())),
            None if reading.is_ok() && prefers_html(request.headers()) => {
                let mut page = nothing(path, request.headers());
                page.headers_mut()
                    .append(header::VARY, HeaderValue::from_static("accept, sec-fetch-mode"));
                Ok(page)
            }
            None => Err(Problem::nothing_at(path)),
        };
        ready(Ok(page.unwrap_or_else(Problem::into_response)))
    }
}

impl Pages {
    /// Returns the name of the file for this path. The server asks for the page about a topic, a run, the runs, the
    /// connections or a service at their own URLs, also for a topic or a run that does not exist.
    fn shown_at<'a>(&self, path: &'a str, is_missing: bool) -> Option<Cow<'a, str>> {
        let name = match path.strip_prefix('/')? {
            "runs" => "runs.html",
            "connections" => "connections.html",
            own if self.services.contains(&path) => return Some(format!("{own}.html").into()),
            own if own.starts_with("topics/") && is_missing => "missing.html",
            own if own.starts_with("topics/") => "topic.html",
            own if own.starts_with("runs/") => "run.html",
            _ => name_of(path)?,
        };
        Some(name.into())
    }
}

/// Sends a browser from the path at which runs start to the form that starts them. The place is relative, since a proxy may
/// put a path in front.
fn start_form(path: &str) -> Response<Body> {
    let up = "../".repeat(path.matches('/').count() - 1);
    let mut response = Response::new(full(""));
    *response.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(place) = HeaderValue::try_from(format!("{up}runs#start={path}")) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

/// A path with more segments gets no page that says that nothing is there.
const SEGMENTS_MAX: usize = 100;

/// Returns the page that says that there is nothing at a path, for a request with these fields. Its links are relative to that, since a proxy may put another
/// path in front.
fn nothing(path: &str, asked: &HeaderMap) -> Response<Body> {
    // Each of them makes each link longer.
    if path.matches('/').count() > SEGMENTS_MAX {
        return Problem::nothing_at(path).into_response();
    }
    let page =
        embedded("nothing.html").map(|page| String::from_utf8_lossy(&page.data).into_owned());
    let up = match path.matches('/').count() {
        0 | 1 => "./".to_owned(),
        depth => "../".repeat(depth - 1),
    };
    let escaped = path.chars().take(80).collect::<String>();
    let escaped = escaped.replace('&', "&amp;").replace('<', "&lt;");
    let page = page.unwrap_or_default().replace("../", &up).replace("this path", &escaped);
    let mut response = Response::new(full(page));
    *response.status_mut() = StatusCode::NOT_FOUND;
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    isolate(fields, asked);
    response
}

fn is_one(path: &str) -> bool {
    name_of(path).is_some()
}

/// Returns true if there are files below this path, which ends with a slash.
pub(crate) fn is_below(path: &str) -> bool {
    let Some(prefix) = path.strip_prefix('/') else { return false };
    Web::iter().chain(JsClient::iter()).any(|name| name.starts_with(prefix))
}

/// Returns true if there is a file at this path or below it.
pub(crate) fn hides(path: &str) -> bool {
    is_one(path) || is_below(&format!("{path}/"))
}

fn embedded(name: &str) -> Option<EmbeddedFile> {
    Web::get(name).or_else(|| JsClient::get(name))
}

/// Returns the name of the file at this path: `/`, `/wind`, `/transports` and `/lab` are pages.
fn name_of(path: &str) -> Option<&str> {
    let name = match path.strip_prefix('/')? {
        "" => "index.html",
        "wind" => "wind.html",
        "lab" => "lab.html",
        "transports" => "transports.html",
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
    isolate(fields, headers);
    if !opens_sockets(name) {
        fields.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    }
    Ok(response)
}

/// Returns true for a file whose own policy decides about WebSockets: a page or the script of a worker. A browser applies no
/// other, and a page has dozens of them.
fn opens_sockets(name: &str) -> bool {
    name.ends_with(".html") || name.ends_with("worker.js")
}

/// Adds the fields that keep a page apart from others, to the reply to a request with these fields.
fn isolate(fields: &mut HeaderMap, asked: &HeaderMap) {
    fields.insert(header::CONTENT_SECURITY_POLICY, policy(asked.get(header::HOST)));
    // Isolated pages get a clock that is precise enough to measure latencies. Over plain http from another machine, browsers ignore the
    // policy and report that as an error. All of the last years send this field wherever it counts.
    fields.append(header::VARY, HeaderValue::from_static("sec-fetch-site"));
    if asked.contains_key("sec-fetch-site") {
        fields.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    }
    fields.insert("cross-origin-embedder-policy", HeaderValue::from_static("require-corp"));
    fields.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
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
    fn a_policy_names_the_web_sockets_of_its_own_host() {
        let policy = |host: &str| {
            let host = HeaderValue::try_from(host).unwrap();
            policy(Some(&host)).to_str().unwrap().to_owned()
        };
        for host in ["wind.example", "wind.example:8080", "127.0.0.1:8080", "my-pi.local"] {
            let own = format!("; connect-src 'self' ws://{host} wss://{host}");
            assert_eq!(policy(host), format!("{POLICY}{own}"));
        }
        for host in ["", "[::1]:8080", "a;script-src *", "a, b", "*", "a b"] {
            assert_eq!(policy(host), POLICY, "{host}");
        }
        assert_eq!(super::policy(None), POLICY);
    }

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
        for name in Web::iter().chain(JsClient::iter()) {
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
        assert!(Web::iter().all(|name| JsClient::get(&name).is_none()));
        let client = JsClient::iter().map(|name| format!("/{name}"));
        let is_mounted = |path: &str| path == CLIENT[0] || path.starts_with("/anemone-client/");
        assert!(client.into_iter().all(|path| is_mounted(&path)));
    }

    #[test]
    fn the_client_and_the_other_pages_are_there_beside_a_directory_that_replaces_the_first_one() {
        let paths = |root: Option<&Path>| {
            mounts(root, Arc::default(), Arc::default(), ServerFacts::default())
                .unwrap()
                .iter()
                .map(|mount| mount.path().to_owned())
                .collect::<Vec<_>>()
        };
        let root = tempfile::tempdir().unwrap();
        assert_eq!(paths(None), ["/"]);
        let all: Vec<_> = [&CLIENT[..], &PARTS, &BESIDE, &["/"]].concat();
        assert_eq!(paths(Some(root.path())), all);
        std::fs::write(root.path().join("favicon.svg"), "<svg/>").unwrap();
        std::fs::create_dir(root.path().join("wind")).unwrap();
        let others = [&CLIENT[..], &PARTS, &["/transports", "/lab", "/"]].concat();
        assert_eq!(paths(Some(root.path())), others);
        std::fs::create_dir(root.path().join("chart")).unwrap();
        assert_eq!(paths(Some(root.path())), [&CLIENT[..], &["/"]].concat());
        std::fs::write(root.path().join("client.js"), "export const mine = 1;").unwrap();
        assert_eq!(paths(Some(root.path())), ["/"]);
    }

    #[test]
    fn a_browser_is_sent_to_the_form_that_starts_runs() {
        for (path, place) in [("/primes", "runs#start=/primes"), ("/a/b", "../runs#start=/a/b")] {
            let response = start_form(path);
            assert_eq!(response.status(), StatusCode::SEE_OTHER);
            assert_eq!(response.headers()[header::LOCATION], place);
        }
    }

    #[test]
    fn the_pages_load_nothing_else() {
        let is_part =
            |name: &str| PARTS.iter().any(|part| name.starts_with(&format!("{}/", &part[1..])));
        let is_beside = |name: &str| {
            let beside = ["wind/", "transports/"];
            name.ends_with(".html") || beside.iter().any(|folder| name.starts_with(folder))
        };
        for name in Web::iter().filter(|name| !is_beside(name)) {
            assert!(is_part(&name) || BESIDE.contains(&&*format!("/{name}")), "{name}");
        }
        for name in Web::iter().filter(|name| name.ends_with(".js")) {
            let own = format!("/{}/", name.split('/').next().unwrap());
            for import in imports_of(&name) {
                let is_there = import.starts_with(&own)
                    || CLIENT.iter().any(|path| import.starts_with(path))
                    || is_part(&import[1..]);
                assert!(is_there, "{name} imports {import}, which a directory may replace");
            }
        }
    }

    /// Returns the paths of the modules that this one names.
    fn imports_of(name: &str) -> Vec<String> {
        let file = embedded(name).unwrap();
        let text = String::from_utf8_lossy(&file.data).into_owned();
        let is_import = |word: &&str| word.starts_with('.') && word.ends_with(".js");
        let resolve = |import: &str| {
            let mut path: Vec<_> = name.split('/').collect();
            path.pop();
            for part in import.split('/') {
                match part {
                    "." => {}
                    ".." => _ = path.pop(),
                    part => path.push(part),
                }
            }
            format!("/{}", path.join("/"))
        };
        text.split('"').filter(is_import).map(resolve).collect()
    }

    #[test]
    fn a_service_has_its_page_where_the_service_is() {
        let shown = |services: &[&'static str]| {
            let pages = Pages {
                services: services.into(),
                runs: Arc::default(),
                facts: ServerFacts::default(),
            };
            pages.shown_at("/messages", false)
        };
        assert_eq!((shown(&[]), shown(&["/messages"])), (None, Some("messages.html".into())));
        let of_services = crate::config::WITH_PAGE.map(|path| format!("{}.html", &path[1..]));
        for page in [
            "connections.html",
            "runs.html",
            "run.html",
            "topic.html",
            "missing.html",
            "nothing.html",
        ]
        .into_iter()
        .chain(of_services.iter().map(String::as_str))
        {
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
            assert_eq!(
                Pages {
                    services: Arc::default(),
                    runs: Arc::default(),
                    facts: ServerFacts::default()
                }
                .shown_at(path, false),
                None,
                "{path}"
            );
        }
    }
}
