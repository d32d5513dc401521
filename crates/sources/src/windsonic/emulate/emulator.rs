//! The emulator: IO and time for an [`Instrument`].

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

/// An instrument behind a pseudo-terminal that can be opened as a serial device. It begins to measure when it is
/// [run](Self::run).
#[derive(Debug)]
pub struct Emulator {
    instrument: Instrument,
    pty: Pty,
    link: Option<Link>,
}

impl Emulator {
    /// Creates the pseudo-terminal, and the link to it if the options have one. An existing link is replaced;
    /// anything else at that path is an error. Dropping the emulator removes the link.
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
        // Has its own random sequence, so that noise does not change the wind.
        let noise = Noise::new(options.noise, !options.seed);
        let instrument = Instrument::new(Duration::ZERO, options.settings, source, noise);
        let pty = Pty::open().map_err(OpenError::Pty)?;
        let link = options.link.map(|path| Link::make(path, pty.path())).transpose()?;
        Ok(Self { instrument, pty, link })
    }

    /// Returns the path of the pseudo-terminal, to which the link leads, if any.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.pty.path()
    }

    /// Returns the path of the link, if any.
    #[must_use]
    pub fn link(&self) -> Option<&Path> {
        self.link.as_ref().map(Link::path)
    }

    /// Measures and answers until dropped. Programs may open and close it at any time. Messages are lost while there
    /// is no program, or if it reads too slowly. Needs a tokio runtime with IO and time drivers.
    ///
    /// # Errors
    /// The system's, if the pseudo-terminal fails, which should not happen.
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
