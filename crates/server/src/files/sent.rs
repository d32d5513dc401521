//! A file on its way to a client: what was promised of it, and not a byte of another version.

use std::fmt;
use std::fs::File;
use std::io::{self, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use anemone_ws::Held;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tower_http::services::fs as tower_fs;

use super::folder::{Folder, is_absence};
use super::open::{self, Refusal, Version};

/// So much is read of a file at once. One that is not larger is read as it is opened, and closed then.
pub(super) const PIECE_BYTES: usize = 64 << 10;
/// So much of it the reply has in hand.
pub(super) const CHUNK_BYTES: usize = 16 << 10;

/// How often a small file is read anew that changed meanwhile.
const TRIES: usize = 3;

/// A file as it was when it was opened. The threads of the server never wait for the disk: others read.
pub(super) struct Sent {
    file: Arc<Opened>,
    /// Where the client is.
    at: u64,
    /// What was read last, and where that is in the file.
    piece: Bytes,
    piece_at: u64,
    reading: Mutex<Option<Reading>>,
    _held: Held,
}

type Reading = Pin<Box<dyn Future<Output = io::Result<Bytes>> + Send>>;

/// A file, and how to come by its bytes.
#[derive(Debug)]
pub(super) struct Opened {
    folder: Folder,
    path: PathBuf,
    version: Version,
    /// It stays open while there are descriptors for that, so that its client gets the rest though a rename puts another one in
    /// its place. Else it is opened anew for each piece.
    open: Option<(File, OwnedSemaphorePermit)>,
}

impl Sent {
    /// Opens a file. To be called where waiting for the disk is no harm.
    pub(super) fn open(folder: Folder, path: PathBuf) -> io::Result<Self> {
        let dir = folder.dir();
        let mut tries = 0;
        let (file, version, piece) = loop {
            let (file, version) = open::file(dir, &path)?;
            if version.bytes() > PIECE_BYTES as u64 {
                break (Some(file), version, Bytes::new());
            }
            match read(&file, version, 0) {
                Ok(piece) => break (None, version, piece),
                Err(error) if tries < TRIES && Refusal::of(&error).is_some() => tries += 1,
                Err(error) => return Err(error),
            }
        };
        let bytes = usize::try_from(version.bytes()).unwrap_or(usize::MAX).min(PIECE_BYTES);
        let held = folder.memory().hold(bytes + CHUNK_BYTES);
        let open = file.and_then(|file| Some((file, folder.descriptor()?)));
        let file = Arc::new(Opened { folder, path, version, open });
        let reading = Mutex::new(None);
        Ok(Self { file, at: 0, piece, piece_at: 0, reading, _held: held })
    }

    /// What is in hand of what comes next.
    fn in_hand(&self) -> &[u8] {
        let skipped = self.at.checked_sub(self.piece_at).and_then(|at| usize::try_from(at).ok());
        skipped.and_then(|at| self.piece.get(at..)).unwrap_or_default()
    }
}

impl Opened {
    /// The next piece of it, which is of the same version.
    fn piece(&self, at: u64) -> io::Result<Bytes> {
        let read = || match &self.open {
            Some((file, _)) => read(file, self.version, at),
            None => match open::file(self.folder.dir(), &self.path) {
                Err(error) if is_absence(&error) => Err(Refusal::Changed.into()),
                opened => read(&opened?.0, self.version, at),
            },
        };
        read().inspect_err(|error| self.folder.tell(&self.path, error))
    }
}

/// Reads a piece of a file that has to be as it was.
fn read(file: &File, version: Version, at: u64) -> io::Result<Bytes> {
    let rest = usize::try_from(version.bytes().saturating_sub(at)).unwrap_or(usize::MAX);
    let mut piece = vec![0; rest.min(PIECE_BYTES)];
    match file.read_exact_at(&mut piece, at) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(Refusal::Changed.into());
        }
        read => read?,
    }
    // After it was read: whatever was written to it before is seen now.
    if !version.is_kept_by(&open::version(file)?) {
        return Err(Refusal::Changed.into());
    }
    Ok(piece.into())
}

impl AsyncRead for Sent {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let in_hand = self.in_hand();
            if !in_hand.is_empty() {
                let len = in_hand.len().min(buffer.remaining());
                buffer.put_slice(&in_hand[..len]);
                self.at += len as u64;
                return Poll::Ready(Ok(()));
            }
            if self.at >= self.file.version.bytes() {
                return Poll::Ready(Ok(()));
            }
            let (file, at) = (Arc::clone(&self.file), self.at);
            // Nobody else has it: the lock is what lets others have a reference to this.
            let reading = self.reading.get_mut().unwrap_or_else(PoisonError::into_inner);
            let begun = reading.get_or_insert_with(|| {
                let folder = file.folder.clone();
                Box::pin(async move { folder.aside(move |_| file.piece(at)).await })
            });
            let piece = ready!(begun.as_mut().poll(cx));
            *reading = None;
            (self.piece, self.piece_at) = (piece?, at);
        }
    }
}

impl AsyncSeek for Sent {
    fn start_seek(mut self: Pin<&mut Self>, to: SeekFrom) -> io::Result<()> {
        let bytes = self.file.version.bytes();
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => bytes.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Poll::Ready(Ok(self.at))
    }
}

impl tower_fs::File for Sent {
    type Metadata = Version;
    type MetadataFuture<'a> = std::future::Ready<io::Result<Version>>;

    fn metadata(&self) -> Self::MetadataFuture<'_> {
        std::future::ready(Ok(self.file.version))
    }
}

impl tower_fs::Metadata for Version {
    fn is_dir(&self) -> bool {
        self.is_directory()
    }

    fn modified(&self) -> io::Result<std::time::SystemTime> {
        Ok(self.stamp())
    }

    fn len(&self) -> u64 {
        self.bytes()
    }
}

impl fmt::Debug for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sent").field("file", &self.file).field("at", &self.at).finish()
    }
}
