//! A directory as the library sees it that serves files: what it may look at and open there.

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
        Box::pin(self.clone().aside(move |folder| {
            let opened = Sent::open(folder.clone(), path.clone());
            opened.inspect_err(|error| folder.tell(&path, error))
        }))
    }

    fn metadata(&self, path: PathBuf) -> Answer<Version> {
        Box::pin(self.clone().aside(move |folder| {
            open::look(folder.dir(), &path).inspect_err(|error| folder.tell(&path, error))
        }))
    }
}
