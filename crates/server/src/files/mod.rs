//! A user's own files, served from the same origin as the topics.
//!
//! tower-http finds and describes them: conditions, ranges, types, compression. `open` decides which files it may
//! open, and `sent` how it reads them. This module maps paths to directories, and rewords some of the library's
//! replies.

mod backend;
mod compress;
mod dirs;
mod folder;
mod length;
mod log_times;
mod open;
mod place;
mod range;
mod sent;

use anemone_ws::Memory;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::Empty;
use tower_http::services::ServeDir;
use tower_http::services::fs::DefaultServeDirFallback;

use self::compress::{Compressor, weak};
pub use self::dirs::{
    CacheControl, CacheControlError, StaticDir, StaticDirError, StaticPath, StaticPathError,
};
use self::folder::{Disk, Folder, is_absence, is_overload};
use self::length::measured;
use self::open::FileRefusal;
use self::range::ByteRange;
use crate::reply::body::Body;
use crate::reply::entity_tag;
use crate::request::own_path::OwnPath;
use crate::{Kind, Problem};

#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Longer paths first.
    trees: Vec<Tree>,
}

/// A directory and its path.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The path, which ends with a slash.
    path: String,
    cache_control: HeaderValue,
    serve: ServeDir<DefaultServeDirFallback, Folder>,
    /// Shared by all directories.
    compressor: Compressor,
}

/// An error of two directories at one path.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{path} already serves the files of {}", dir.display())]
pub struct StaticDirsError {
    path: StaticPath,
    dir: std::path::PathBuf,
}

impl Files {
    /// Serves these directories; their buffers count in `memory`.
    pub(crate) fn new(dirs: &[StaticDir], memory: &Memory) -> Result<Self, StaticDirsError> {
        let (disk, compressor) = (Disk::new(dirs.len(), memory), Compressor::default());
        let mut trees: Vec<Tree> = Vec::with_capacity(dirs.len());
        for (index, dir) in dirs.iter().enumerate() {
            if let Some(first) = dirs[..index].iter().find(|first| first.path == dir.path) {
                let (path, dir) = (first.path.clone(), first.dir.clone());
                return Err(StaticDirsError { path, dir });
            }
            trees.push(Tree::new(dir, &disk, &compressor));
        }
        trees.sort_by_key(|tree| std::cmp::Reverse(tree.path.len()));
        Ok(Self { trees })
    }

    /// Returns the directory for this normalized path, if there is one; never for the server's own paths.
    pub(crate) fn at(&self, path: &str) -> Option<&Tree> {
        if OwnPath::at(path).is_some() {
            return None;
        }
        let has = |tree: &&Tree| {
            path.starts_with(&*tree.path) || tree.path.strip_suffix('/') == Some(path)
        };
        self.trees.iter().find(has)
    }
}

impl Tree {
    fn new(
        StaticDir { path, dir, cache_control }: &StaticDir,
        disk: &Disk,
        compressor: &Compressor,
    ) -> Self {
        let serve = ServeDir::with_backend("", Folder::new(dir, disk))
            .with_buf_chunk_size(sent::CHUNK_BYTES)
            .ignore_multi_range_requests(true);
        let path = path.as_str().to_owned();
        let (cache_control, compressor) = (cache_control.0.clone(), compressor.clone());
        Self { path, cache_control, serve, compressor }
    }

    /// Returns the reply to a request for the file at its path.
    pub(crate) async fn answer<B>(&self, request: &Request<B>) -> Result<Response<Body>, Problem> {
        let path = request.uri().path();
        let Some(below) = path.strip_prefix(&*self.path) else {
            return redirect(request.uri()).ok_or_else(|| Problem::nothing_at(path));
        };
        if !may_be_file(below) {
            return Err(Problem::nothing_at(path));
        }
        let absent = || Problem::nothing_at(path);
        let target = Uri::try_from(format!("/{below}")).map_err(|_| absent())?;
        let asked = FileRequest { method: request.method(), target, fields: request.headers() };
        let response = self.ask(&asked).await.map_err(|error| match FileRefusal::of(&error) {
            None if is_overload(&error) => Problem::overloaded(),
            Some(FileRefusal::Changed) | None if !is_absence(&error) => {
                let detail = format!("cannot read the file at {path}");
                Problem::new(Kind::Internal, detail)
            }
            _ => absent(),
        })?;
        let is_head = request.method() == Method::HEAD;
        let mut response = match response.status() {
            StatusCode::NOT_FOUND => return Err(absent()),
            StatusCode::PRECONDITION_FAILED => {
                let detail = "the file does not match the request's condition";
                return Err(Problem::new(Kind::PreconditionFailed, detail));
            }
            StatusCode::RANGE_NOT_SATISFIABLE => return Err(out_of_range(&response)),
            StatusCode::TEMPORARY_REDIRECT => redirect(request.uri()).ok_or_else(absent)?,
            StatusCode::NOT_MODIFIED => known(request.headers(), response),
            _ => {
                let response = with_charset(measured(response));
                self.compressor.compress(request.headers(), response).await
            }
        };
        if response.status() == StatusCode::NOT_ACCEPTABLE {
            let detail = "files are sent uncompressed or with gzip; Accept-Encoding allows neither";
            return Err(Problem::new(Kind::NotAcceptable, detail));
        }
        if is_head {
            response = response.map(|_| Body::default());
        }
        let fields = response.headers_mut();
        fields.insert(header::CACHE_CONTROL, self.cache_control.clone());
        fields.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        Ok(response)
    }

    /// Returns the library's reply. A range for one version of the file (`If-Range`, RFC 9110 section 13.1.5) is
    /// requested on the condition of that version; if it fails, the whole file is requested.
    async fn ask(&self, asked: &FileRequest<'_>) -> std::io::Result<Response<Body>> {
        let call = async |request| {
            let response = self.serve.clone().try_call(request).await?;
            Ok::<_, std::io::Error>(response.map(Body::new))
        };
        let range = asked.range();
        let is_of_the_end = matches!(range, Some(ByteRange::Last(1..)));
        let mut next = range;
        while let Some(range) = next
            && let Some(request) = asked.for_a_range(range)
        {
            let is_conditional = asked.fields.contains_key(header::IF_RANGE);
            let response = call(request).await?;
            next = None;
            match response.status() {
                StatusCode::PRECONDITION_FAILED if is_conditional => {}
                // The file is shorter than the requested suffix, which then means all of it.
                StatusCode::RANGE_NOT_SATISFIABLE if range != ByteRange::ALL && is_of_the_end => {
                    next = Some(ByteRange::ALL);
                }
                StatusCode::PARTIAL_CONTENT if range::is_of_nothing(&response) => {
                    if !is_of_the_end {
                        return Ok(range::unsatisfiable(response));
                    }
                }
                _ => return Ok(response),
            }
        }
        call(asked.for_the_whole()).await
    }
}

struct FileRequest<'a> {
    method: &'a Method,
    /// The path below the directory.
    target: Uri,
    fields: &'a HeaderMap,
}

impl FileRequest<'_> {
    fn for_the_whole(&self) -> Request<Empty<Bytes>> {
        let mut request = Request::new(Empty::new());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.target.clone();
        *request.headers_mut() = self.fields.clone();
        request.headers_mut().remove(header::RANGE);
        request
    }

    /// Returns the requested range, if it is one range in a GET request.
    fn range(&self) -> Option<ByteRange> {
        let mut ranges = self.fields.get_all(header::RANGE).iter();
        let range = ranges.next().filter(|_| ranges.next().is_none())?;
        if self.method == Method::GET { ByteRange::parse(range) } else { None }
    }

    /// Returns the request for this range. Returns `None` if it is for one version without a strong tag (RFC 9110
    /// section 14.2); the whole file is then a valid answer.
    fn for_a_range(&self, range: ByteRange) -> Option<Request<Empty<Bytes>>> {
        let mut request = self.for_the_whole();
        let fields = request.headers_mut();
        fields.insert(header::RANGE, range.to_field()?);
        if let Some(tag) = fields.remove(header::IF_RANGE) {
            let is_strong =
                tag.to_str().is_ok_and(|tag| tag.starts_with('"') && entity_tag::is_one(tag));
            let conditions = [header::IF_MATCH, header::IF_UNMODIFIED_SINCE];
            if !is_strong || conditions.iter().any(|name| fields.contains_key(name)) {
                return None;
            }
            fields.insert(header::IF_MATCH, tag);
        }
        Some(request)
    }
}

/// Returns true if a path below a directory can be a file. Hidden files are excluded (`.git`, `.env`), except
/// `.well-known` (RFC 8615), and so are empty names and names with a backslash, which some systems treat as a slash.
fn may_be_file(below: &str) -> bool {
    let names = below.strip_suffix('/').unwrap_or(below);
    let is_plain = |(depth, name): (usize, &str)| {
        let is_hidden = place::is_hidden(depth, name.as_ref());
        !name.is_empty() && !is_hidden && !name.contains('\\') && !name.contains("%5C")
    };
    below.is_empty() || names.split('/').enumerate().all(is_plain)
}

/// Redirects to the same path with a slash at its end, so that relative links on the page work. The redirect is
/// relative, since a proxy may add a prefix to the path.
fn redirect(uri: &Uri) -> Option<Response<Body>> {
    let name = uri.path().rsplit('/').next()?;
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let location = HeaderValue::try_from(format!("./{name}/{query}")).ok()?;
    let mut response = Response::new(Body::default());
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    response.headers_mut().insert(header::LOCATION, location);
    Some(response)
}

/// Returns the reply to a client that has the file already, with the tag that it knows: weak if it has the compressed
/// file.
fn known(fields: &HeaderMap, mut response: Response<Body>) -> Response<Body> {
    if let Some(weak) = response.headers().get(header::ETAG).and_then(weak)
        && entity_tag::list(fields, header::IF_NONE_MATCH)
            .any(|tag| tag.as_bytes() == weak.as_bytes())
    {
        response.headers_mut().insert(header::ETAG, weak);
    }
    response
}

/// Returns the problem of a range outside the file, with the file's length (RFC 9110 section 14.4).
fn out_of_range(response: &Response<Body>) -> Problem {
    let detail = "the Range contains nothing of the file";
    let problem = Problem::new(Kind::RangeNotSatisfiable, detail);
    match response.headers().get(header::CONTENT_RANGE) {
        Some(len) => problem.field("content-range", len.clone()),
        None => problem,
    }
}

/// Declares text as UTF-8, since browsers would otherwise guess.
fn with_charset(mut response: Response<Body>) -> Response<Body> {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let utf8 = kind.filter(|kind| kind.starts_with("text/") && !kind.contains(';'));
    if let Some(Ok(utf8)) = utf8.map(|kind| HeaderValue::try_from(format!("{kind}; charset=utf-8")))
    {
        response.headers_mut().insert(header::CONTENT_TYPE, utf8);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_path_counts_and_the_servers_own_are_left_alone() {
        let of = |path: &str| StaticDir::new(path.parse().unwrap(), "www");
        let files = Files::new(&[of("/"), of("/docs/"), of("/docs/new/")], &Memory::default());
        let files = files.unwrap();
        let at = |path| files.at(path).map(|tree| &*tree.path);
        for (path, expected) in [
            ("/", Some("/")),
            ("/a", Some("/")),
            ("/docs", Some("/docs/")),
            ("/docsx", Some("/")),
            ("/docs/new", Some("/docs/new/")),
            ("/docs/new/x", Some("/docs/new/")),
            ("/docs/newer", Some("/docs/")),
            ("/topics", None),
            ("/topics/x/y", None),
            ("/ws/", None),
            ("/echo", None),
        ] {
            assert_eq!(at(path), expected, "{path}");
        }
        let twice = Files::new(&[of("/docs"), of("/docs/")], &Memory::default()).unwrap_err();
        assert_eq!(twice.to_string(), "/docs/ already serves the files of www");
    }

    #[test]
    fn what_is_hidden_or_no_name_is_no_file() {
        for path in ["", "a", "a/", "a/b.c", ".well-known/x", "a.b/", "a%20b", "..."] {
            let is_hidden = path == "...";
            assert_eq!(may_be_file(path), !is_hidden, "{path}");
        }
        for path in [
            ".env",
            ".git/config",
            "a/.htpasswd",
            "a/.well-known/x",
            "..",
            "a/../b",
            "/a",
            "a//b",
            "/",
            "a\\b",
            "a%5Cb",
        ] {
            assert!(!may_be_file(path), "{path}");
        }
    }
}
