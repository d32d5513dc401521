//! The instrument on a pseudo-terminal: the IO and the clock around an [`Instrument`].

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use super::EmulatorOptions;
use super::error::OpenError;
use super::instrument::{Instrument, Source};
use super::link::Link;
use super::noise::Noise;
use super::pty::{Pty, Wait};
use super::replay::Replay;
use super::wind::Model;

/// An instrument behind a pseudo-terminal that can be opened as a serial device. It begins to
/// measure when it is [run](Self::run).
#[derive(Debug)]
pub struct Emulator {
    instrument: Instrument,
    pty: Pty,
    link: Option<Link>,
}

impl Emulator {
    /// Makes the pseudo-terminal, and the link to it if one is asked for. A link that is there
    /// already is replaced; anything else at its path is left alone. Dropping the emulator removes
    /// the link.
    ///
    /// # Errors
    /// [`OpenError`], the variant by cause.
    pub fn open(options: EmulatorOptions) -> Result<Self, OpenError> {
        if !(0.0..=1.0).contains(&options.noise) {
            return Err(OpenError::Noise(options.noise));
        }
        let source = match &options.replay {
            None => Source::Model(Model::new(options.seed)),
            Some(path) => Source::Replay(
                Replay::open(path)
                    .map_err(|source| OpenError::Replay { path: path.clone(), source })?,
            ),
        };
        // Another stream of chance than the wind's: noise must not change the wind.
        let noise = Noise::new(options.noise, !options.seed);
        let instrument = Instrument::new(Duration::ZERO, options.settings, source, noise);
        let pty = Pty::open().map_err(OpenError::Pty)?;
        let link = options.link.map(|path| Link::make(path, pty.path())).transpose()?;
        Ok(Self { instrument, pty, link })
    }

    /// The pseudo-terminal's path; the link, if there is one, leads here.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.pty.path()
    }

    /// The link's path.
    #[must_use]
    pub fn link(&self) -> Option<&Path> {
        self.link.as_ref().map(Link::path)
    }

    /// Measures and answers until dropped. Readers may come and go; what is sent while there is
    /// none, or faster than one reads, is gone. Needs a tokio runtime with IO and time drivers.
    ///
    /// # Errors
    /// The system's, when the pseudo-terminal fails as none should.
    ///
    /// # Cancel safety
    /// Dropping the future ends the emulation and removes the link.
    pub async fn run(mut self) -> io::Result<Infallible> {
        let started = Instant::now();
        let mut buffer = [0; 256];
        loop {
            while let Some(line) = self.instrument.poll_transmit() {
                self.pty.send(&line)?;
            }
            let due = self.instrument.poll_timeout().map(|due| started + due);
            match self.pty.receive(&mut buffer, due).await? {
                Wait::Received(len) => self.instrument.receive(started.elapsed(), &buffer[..len]),
                Wait::Due => self.instrument.handle_timeout(started.elapsed()),
            }
        }
    }
}
