//! Runs an [`Instrument`] with a pseudo-terminal and a clock.

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
use super::replay::{LeftOut, Replay};
use super::wind::Model;

/// An instrument behind a pseudo-terminal, which programs open as a serial device. It measures while it
/// [runs](Self::run).
#[derive(Debug)]
pub struct Emulator {
    instrument: Instrument,
    pty: Pty,
    link: Option<Link>,
    left_out: Option<LeftOut>,
}

impl Emulator {
    /// Creates the pseudo-terminal, and a link to it if the options name one. The link replaces an existing link;
    /// anything else at that path is an error. Dropping the emulator removes the link.
    ///
    /// # Errors
    /// One variant of [`OpenError`] for each cause.
    pub fn open(options: EmulatorOptions) -> Result<Self, OpenError> {
        if !(0.0..=1.0).contains(&options.noise) {
            return Err(OpenError::Noise(options.noise));
        }
        let (source, left_out) = match &options.replay {
            None => (Source::Model(Model::new(options.seed)), None),
            Some(path) => {
                let (replay, left_out) = Replay::open(path)
                    .map_err(|source| OpenError::Replay { path: path.clone(), source })?;
                (Source::Replay(replay), left_out)
            }
        };
        // The noise has its own random sequence, so it does not change the wind.
        let noise = Noise::new(options.noise, !options.seed);
        let instrument = Instrument::new(Duration::ZERO, options.settings, source, noise);
        let pty = Pty::open().map_err(OpenError::Pty)?;
        let link = options.link.map(|path| Link::make(path, pty.path())).transpose()?;
        Ok(Self { instrument, pty, link, left_out })
    }

    /// Returns the path of the pseudo-terminal.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.pty.path()
    }

    /// Returns the path of the link to the pseudo-terminal, if any.
    #[must_use]
    pub fn link(&self) -> Option<&Path> {
        self.link.as_ref().map(Link::path)
    }

    /// Returns a description of the lines of the recording that are not replayed, if there are any.
    #[must_use]
    pub fn left_out(&self) -> Option<&LeftOut> {
        self.left_out.as_ref()
    }

    /// Measures and answers until the future is dropped. Programs may open and close the device at any time. Messages
    /// are lost while no program has it open, or if the program reads too slowly. Needs a tokio runtime with IO and
    /// time drivers.
    ///
    /// # Errors
    /// The system's error if the pseudo-terminal fails, which should not happen.
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
