//! Watches the files of a certificate, and uses new contents.
//!
//! It compares contents instead of times, so it notices a link that is repointed, as certificate managers do, and two
//! changes within one tick of a clock.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::certificate::{Digest, PemFiles};
use super::{Tls, TlsError};

/// The interval of the checks.
const INTERVAL: Duration = Duration::from_secs(2);

/// The watching thread, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watch(Option<(mpsc::Sender<()>, JoinHandle<()>)>);

impl Watch {
    /// Watches the files of this certificate, if it is from files.
    pub(crate) fn start(tls: Option<&Tls>) -> io::Result<Self> {
        let Some(mut watcher) = tls.and_then(Watcher::new) else { return Ok(Self(None)) };
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new().name("certificate".to_owned()).spawn(move || {
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                watcher.check();
            }
        })?;
        Ok(Self(Some((stop, thread))))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.0.take() {
            drop(stop);
            // A panic was reported where it happened.
            let _ = thread.join();
        }
    }
}

pub(super) struct Watcher {
    tls: Tls,
    files: PemFiles,
    /// The digest of the files of the current certificate.
    loaded: Digest,
    /// The last error, so that it is logged once.
    complaint: Option<String>,
}

impl Watcher {
    /// Returns `None` if the certificate is not from files.
    pub(super) fn new(tls: &Tls) -> Option<Self> {
        let (files, loaded) = tls.files.clone()?;
        Some(Self { tls: tls.clone(), files, loaded, complaint: None })
    }

    /// Uses the current contents of the files, if they are new and valid.
    pub(super) fn check(&mut self) {
        match self.renew() {
            Ok(()) => self.complaint = None,
            Err(error) => self.complain(&error),
        }
    }

    fn renew(&mut self) -> Result<(), TlsError> {
        let found = self.files.read()?;
        let digest = found.digest();
        if digest != self.loaded {
            let certificate = found.parse(&self.files)?;
            self.tls.current.0.store(Arc::new(certificate));
            self.loaded = digest;
            tracing::info!(sha256 = self.tls.fingerprint(), "using the new certificate");
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn complaint(&self) -> Option<&str> {
        self.complaint.as_deref()
    }

    fn complain(&mut self, error: &TlsError) {
        let text = error.to_string();
        if self.complaint.as_ref() != Some(&text) {
            let error: &dyn std::error::Error = error;
            tracing::warn!(error, "still using the old certificate");
            self.complaint = Some(text);
        }
    }
}
