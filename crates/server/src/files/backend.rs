//! The directory that the file library uses: it limits which files can be examined and opened.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;

use tower_http::services::fs as tower_fs;

use super::folder::Folder;
use super::open::{self, Version};
use super::sent::Sent;

type Answer<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

impl tower_fs::Backend for Folder {
    type File = Sent;
    type Metadata = Version;
    type OpenFuture = Answer<Sent>;
    type MetadataFuture = Answer<Version>;

    fn open(&self, path: PathBuf) -> Answer<Sent> {
        let folder = self.clone();
        Box::pin(async move {
            let (of, at) = (folder.clone(), path.clone());
            folder.aside(&path, move || Sent::open(of, at)).await
        })
    }

    fn metadata(&self, path: PathBuf) -> Answer<Version> {
        let folder = self.clone();
        Box::pin(async move {
            let (of, at) = (folder.clone(), path.clone());
            folder.aside(&path, move || open::look(of.dir(), &at)).await
        })
    }
}
