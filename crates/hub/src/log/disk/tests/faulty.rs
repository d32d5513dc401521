//! A machine that fails on demand: a disk that fills up, turns read-only or does not flush, and crashes that lose
//! data that was not flushed.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use super::super::platform::{Identity, Output, Platform, System};
use crate::UnixTime;

#[derive(Clone, Debug, Default)]
pub(super) struct Faulty(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    faults: Mutex<Faults>,
    resumed: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    /// The bytes that the disk still takes.
    pub(super) room: Option<u64>,
    /// The next write fails half-way, though there is room.
    pub(super) next_write_fails: bool,
    pub(super) read_only: bool,
    pub(super) flush_fails: bool,
    pub(super) cut_fails: bool,
    pub(super) remove_fails: bool,
    /// Every write waits while this is set.
    stalled: bool,
    /// True while a write waits.
    is_waiting: bool,
    /// After so many flushes, the next one waits while this is set.
    pub(super) flush_stalls_after: Option<u32>,
    pub(super) is_flush_waiting: bool,
    /// After so many flushes of the directory of all topics, and removals of directories, the next one waits while this is
    /// set.
    pub(super) directory_stalls_after: Option<u32>,
    pub(super) is_directory_waiting: bool,
    /// The number of times that the machine was started.
    pub(super) boots: u32,
    pub(super) now: UnixTime,
    /// The number of the present copy of its files.
    pub(super) copy: u64,
    /// The part of each file that is flushed.
    pub(super) flushed: HashMap<PathBuf, Vec<u8>>,
    pub(super) flushes: u32,
    pub(super) writes: u32,
}

impl Faulty {
    pub(super) fn set(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.0.faults.lock().unwrap());
        self.0.resumed.notify_all();
    }

    pub(super) fn get<T>(&self, of: impl FnOnce(&Faults) -> T) -> T {
        of(&self.0.faults.lock().unwrap())
    }

    /// Has every write wait until the guard is dropped.
    pub(super) fn stall(&self) -> Stall<'_> {
        self.set(|faults| faults.stalled = true);
        Stall(self)
    }

    /// Crashes the machine: of the data that was not flushed, `survives` chooses how much is left. Files in memory
    /// keep their length, since no process writes any more.
    pub(super) fn crash(&self, directory: &Path, survives: impl Fn(u64) -> u64) {
        self.set(|faults| faults.boots += 1);
        for path in files_below(directory) {
            let flushed = self.get(|faults| faults.flushed.get(&path).map_or(0, Vec::len)) as u64;
            let len = std::fs::metadata(&path).unwrap().len();
            if len > flushed {
                let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
                file.set_len(flushed + survives(len - flushed)).unwrap();
            }
        }
    }

    /// The machine crashes, and each file is as it was when it was flushed last.
    pub(super) fn crash_to_what_is_flushed(&self, directory: &Path) {
        self.set(|faults| faults.boots += 1);
        for path in files_below(directory) {
            match self.get(|faults| faults.flushed.get(&path).cloned()) {
                Some(bytes) => std::fs::write(path, bytes).unwrap(),
                None if path.ends_with("lock") => {}
                None => std::fs::remove_file(path).unwrap(),
            }
        }
    }

    fn await_flush(&self) {
        let mut faults = self.0.faults.lock().unwrap();
        match faults.flush_stalls_after {
            Some(0) if !faults.is_flush_waiting => {
                faults.is_flush_waiting = true;
                let stalled = |faults: &mut Faults| faults.flush_stalls_after.is_some();
                self.0.resumed.wait_while(faults, stalled).unwrap().is_flush_waiting = false;
            }
            Some(left) => faults.flush_stalls_after = Some(left.saturating_sub(1)),
            None => {}
        }
    }

    fn await_directory(&self) {
        let mut faults = self.0.faults.lock().unwrap();
        match &mut faults.directory_stalls_after {
            Some(0) => {
                faults.is_directory_waiting = true;
                let stalled = |faults: &mut Faults| faults.directory_stalls_after.is_some();
                self.0.resumed.wait_while(faults, stalled).unwrap().is_directory_waiting = false;
            }
            Some(left) => *left -= 1,
            None => {}
        }
    }

    fn writable(&self) -> io::Result<()> {
        let read_only = self.get(|faults| faults.read_only);
        if read_only { Err(io::ErrorKind::ReadOnlyFilesystem.into()) } else { Ok(()) }
    }
}

/// While it is there, writes wait.
#[derive(Debug)]
pub(super) struct Stall<'a>(&'a Faulty);

impl Stall<'_> {
    pub(super) async fn begun(&self) {
        while !self.0.get(|faults| faults.is_waiting) {
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Stall<'_> {
    fn drop(&mut self) {
        self.0.set(|faults| faults.stalled = false);
    }
}

pub(super) fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

impl Platform for Faulty {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        self.writable()?;
        let file = System.open(path)?;
        Ok(Box::new(FaultyFile { file, path: path.to_owned(), machine: self.clone() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.writable()?;
        self.set(|faults| {
            if let Some(flushed) = faults.flushed.remove(from) {
                faults.flushed.insert(to.to_owned(), flushed);
            }
        });
        System.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.writable()?;
        if self.get(|faults| faults.remove_fails) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        System.remove_file(path)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.writable()?;
        System.create_directory(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.writable()?;
        self.await_directory();
        System.remove_directory(path)
    }

    fn flush_directory(&self, path: &Path) -> io::Result<()> {
        if path.ends_with("topics") {
            self.await_directory();
        }
        // The machine never really crashes, and a disk takes its time for this.
        std::fs::metadata(path).map(drop)
    }

    fn boot(&self) -> Option<String> {
        Some(self.get(|faults| faults.boots).to_string())
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        std::fs::metadata(path)?;
        Ok(Identity::numbered(self.get(|faults| faults.copy)))
    }

    fn now(&self) -> UnixTime {
        self.get(|faults| faults.now)
    }
}

#[derive(Debug)]
struct FaultyFile {
    file: Box<dyn Output>,
    path: PathBuf,
    machine: Faulty,
}

impl Output for FaultyFile {
    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        let Shared { faults, resumed } = &*self.machine.0;
        let wait = |faults: &mut Faults| {
            faults.is_waiting = faults.stalled;
            faults.stalled
        };
        let mut faults = resumed.wait_while(faults.lock().unwrap(), wait).unwrap();
        faults.writes += 1;
        if faults.read_only {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        if std::mem::take(&mut faults.next_write_fails) {
            self.file.write(&bytes[..bytes.len() / 2], at)?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        let room = faults.room.unwrap_or(u64::MAX).min(bytes.len() as u64);
        faults.room = faults.room.map(|left| left - room);
        let written = usize::try_from(room).unwrap();
        self.file.write(&bytes[..written], at)?;
        if written < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.machine.writable()?;
        if self.machine.get(|faults| faults.cut_fails) {
            return Err(io::ErrorKind::Other.into());
        }
        self.file.cut(len)?;
        self.machine.set(|faults| {
            if let Some(flushed) = faults.flushed.get_mut(&self.path) {
                flushed.truncate(usize::try_from(len).unwrap());
            }
        });
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.machine.await_flush();
        if self.machine.get(|faults| faults.flush_fails) {
            return Err(io::Error::from_raw_os_error(5));
        }
        let bytes = std::fs::read(&self.path).unwrap_or_default();
        self.machine.set(|faults| {
            faults.flushes += 1;
            faults.flushed.insert(self.path.clone(), bytes);
        });
        Ok(())
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        self.file.is_at(path)
    }
}
