//! A file that is being sent: exactly the promised bytes, all of one version.

use std::fmt;
use std::fs::File;
use std::io::{self, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use anemone_ws::Reservation;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tower_http::services::fs as tower_fs;

use super::folder::{Folder, Overload, is_absence};
use super::open::{self, FileRefusal, Version};

/// The bytes read from a file at once. A file of at most this size is read when it is opened, and closed.
pub(super) const PIECE_BYTES: usize = 64 << 10;
/// The bytes that a reply holds.
pub(super) const CHUNK_BYTES: usize = 16 << 10;

/// The number of attempts to read a small file that changes meanwhile.
const TRIES: usize = 3;

/// A file in the version that was opened. The server's own threads never wait for the disk; blocking threads read.
pub(super) struct SentFile {
    file: Arc<ReadableFile>,
    /// The offset of the next byte.
    at: u64,
    /// The piece that was read last, and its offset in the file.
    piece: Bytes,
    piece_at: u64,
    reading: Mutex<Option<Reading>>,
}

type Reading = Pin<Box<dyn Future<Output = io::Result<Bytes>> + Send>>;

/// A file, and the means to read it.
#[derive(Debug)]
pub(super) struct ReadableFile {
    folder: Folder,
    path: PathBuf,
    version: Version,
    /// The open file, while there are descriptors for that, so that the client gets the rest after a rename replaces
    /// it. Otherwise the file is opened again for each piece.
    open: Option<(File, OwnedSemaphorePermit)>,
    /// The memory of a piece and of the reply's buffer, also while a thread still reads for a client that is gone.
    _held: Reservation,
}

impl SentFile {
    /// Opens a file. Must be called where waiting for the disk is allowed.
    pub(super) fn open(folder: Folder, path: PathBuf) -> io::Result<Self> {
        let dir = folder.dir();
        let mut tries = 0;
        let (file, version, piece, held) = loop {
            let (file, version) = open::file(dir, &path)?;
            let bytes = usize::try_from(version.bytes()).unwrap_or(usize::MAX).min(PIECE_BYTES);
            let held = folder.memory().reserve(bytes + CHUNK_BYTES);
            // Many others may have come while this one waited for the disk.
            if folder.memory().is_exceeded() {
                return Err(io::Error::other(Overload));
            }
            if version.bytes() > PIECE_BYTES as u64 {
                break (Some(file), version, Bytes::new(), held);
            }
            match read(&file, version, 0) {
                Ok(piece) => break (None, version, piece, held),
                Err(error) if tries < TRIES && FileRefusal::of(&error).is_some() => tries += 1,
                Err(error) => return Err(error),
            }
        };
        let open = file.and_then(|file| Some((file, folder.descriptor()?)));
        let file = Arc::new(ReadableFile { folder, path, version, open, _held: held });
        Ok(Self { file, at: 0, piece, piece_at: 0, reading: Mutex::new(None) })
    }

    /// Returns the bytes in memory from the next offset on.
    fn in_hand(&self) -> &[u8] {
        let skipped = self.at.checked_sub(self.piece_at).and_then(|at| usize::try_from(at).ok());
        skipped.and_then(|at| self.piece.get(at..)).unwrap_or_default()
    }
}

impl ReadableFile {
    /// Returns the next piece, of the same version.
    fn piece(&self, at: u64) -> io::Result<Bytes> {
        match &self.open {
            Some((file, _)) => read(file, self.version, at),
            None => match open::file(self.folder.dir(), &self.path) {
                Err(error) if is_absence(&error) => Err(FileRefusal::Changed.into()),
                opened => read(&opened?.0, self.version, at),
            },
        }
    }
}

/// Reads a piece of a file that must not have changed.
fn read(file: &File, version: Version, at: u64) -> io::Result<Bytes> {
    let rest = usize::try_from(version.bytes().saturating_sub(at)).unwrap_or(usize::MAX);
    let mut piece = vec![0; rest.min(PIECE_BYTES)];
    match file.read_exact_at(&mut piece, at) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(FileRefusal::Changed.into());
        }
        read => read?,
    }
    // Checked after reading: all earlier writes are visible now.
    if !version.is_kept_by(&open::version(file)?) {
        return Err(FileRefusal::Changed.into());
    }
    Ok(piece.into())
}

impl AsyncRead for SentFile {
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
            // The piece is used up, and the next one replaces it in memory.
            self.piece = Bytes::new();
            let (file, at) = (Arc::clone(&self.file), self.at);
            // This is the only reference; the lock only makes the type shareable.
            let reading = self.reading.get_mut().unwrap_or_else(PoisonError::into_inner);
            let begun = reading.get_or_insert_with(|| {
                let of = Arc::clone(&file);
                Box::pin(async move { file.folder.aside(&file.path, move || of.piece(at)).await })
            });
            let piece = ready!(begun.as_mut().poll(cx));
            *reading = None;
            (self.piece, self.piece_at) = (piece?, at);
        }
    }
}

impl AsyncSeek for SentFile {
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

impl tower_fs::File for SentFile {
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

impl fmt::Debug for SentFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SentFile").field("file", &self.file).field("at", &self.at).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use anemone_ws::Memory;
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::files::folder::Disk;
    use crate::files::folder::tests::stick;

    #[tokio::test]
    async fn no_more_is_held_of_a_file_than_counts_and_as_long() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("big"), vec![b'1'; 2 * PIECE_BYTES]).unwrap();
        let memory = Memory::default();
        let folder = Folder::new(root.path(), &Disk::new(1, &memory));
        let mut sent = SentFile::open(folder.clone(), "big".into()).unwrap();
        let mut bytes = vec![0; PIECE_BYTES];
        sent.read_exact(&mut bytes).await.unwrap();
        // The next piece is not read until these are done.
        let _stuck = stick(&folder).await;
        let mut buffer = ReadBuf::new(&mut bytes);
        let read = poll_fn(|cx| Poll::Ready(Pin::new(&mut sent).poll_read(cx, &mut buffer))).await;
        assert!(read.is_pending());
        assert_eq!(sent.piece.len(), 0, "the spent piece is let go of");
        assert_eq!(memory.held_bytes(), PIECE_BYTES + CHUNK_BYTES);
        // As a thread has it that reads when the client goes.
        let with_thread = Arc::clone(&sent.file);
        drop(sent);
        assert_eq!(memory.held_bytes(), PIECE_BYTES + CHUNK_BYTES);
        drop(with_thread);
        assert_eq!(memory.held_bytes(), 0);
    }
}
