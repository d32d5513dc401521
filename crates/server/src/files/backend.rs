//! The directory that the file library uses: it limits which files can be examined and opened.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;

use tower_http::services::fs as tower_fs;

use super::folder::Folder;
use super::open::{self, Version};
use super::sent::SentFile;

type FileFuture<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

impl tower_fs::Backend for Folder {
    type File = SentFile;
    type Metadata = Version;
    type OpenFuture = FileFuture<SentFile>;
    type MetadataFuture = FileFuture<Version>;

    fn open(&self, path: PathBuf) -> FileFuture<SentFile> {
        let folder = self.clone();
        Box::pin(async move {
            let (of, at) = (folder.clone(), path.clone());
            folder.aside(&path, move || SentFile::open(of, at)).await
        })
    }

    fn metadata(&self, path: PathBuf) -> FileFuture<Version> {
        let folder = self.clone();
        Box::pin(async move {
            let (of, at) = (folder.clone(), path.clone());
            folder.aside(&path, move || open::examine(of.dir(), &at)).await
        })
    }
}
