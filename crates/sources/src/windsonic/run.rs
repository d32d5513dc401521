//! Runs a [`Session`] with a serial port and the clocks.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anemone_hub::Topic;
use tokio::time::Instant;

use super::WindsonicOptions;
use super::session::{Output, Session};
use crate::backoff::Backoff;
use crate::serial::{Framing, Port, SerialError};
use crate::status::{State, Status, chain, earliest, publish, seconds, sleep_until, wall_clock};

/// The most bytes of one read: several lines at any baud rate.
const READ_BYTES: usize = 1024;

/// Reads the instrument. Publishes its measurements to `topic` and its state to `status` (by convention the topic
/// `NAME.status`). Never returns: it reports each failure of the device and opens it again.
///
/// Runs on the calling task, in a tokio runtime with IO and time drivers; a current-thread runtime is enough.
///
/// # Cancel safety
/// Dropping the future closes the device. No event is published in part.
pub async fn run(options: WindsonicOptions, topic: Arc<Topic>, status: Arc<Topic>) -> Infallible {
    let mut source = SerialSource::new(options, topic, status);
    loop {
        let error = match Port::open(&source.options.path, source.options.baud, Framing::default())
        {
            Ok(port) => source.serve(&port).await,
            Err(error) => error,
        };
        let wait = source.backoff.next(fastrand::f64());
        let detail = format!("{}; retrying in {}", chain(&error), seconds(wait));
        source.status.set(State::Lost, detail);
        source.status.pause(wait).await;
    }
}

struct SerialSource {
    options: WindsonicOptions,
    topic: Arc<Topic>,
    status: Status,
    backoff: Backoff,
    started: Instant,
}

impl SerialSource {
    fn new(options: WindsonicOptions, topic: Arc<Topic>, status: Arc<Topic>) -> Self {
        let detail = format!("opening {} at {} baud", options.path.display(), options.baud);
        let name = topic.name().to_string();
        Self {
            status: Status::open(status, name, options.report_interval, detail),
            backoff: Backoff::new(options.retry_min, options.retry_max),
            started: Instant::now(),
            options,
            topic,
        }
    }

    /// Drives a session until the device fails.
    async fn serve(&mut self, port: &Port) -> SerialError {
        let mut session = Session::begin(self.now(), self.options.clone());
        let mut buffer = [0; READ_BYTES];
        loop {
            while let Some(output) = session.poll_output() {
                self.output(output);
            }
            while let Some(bytes) = session.poll_transmit() {
                match port.try_write(&bytes) {
                    Ok(written) if written < bytes.len() => {
                        // A lost command does no harm: the session sends it again.
                        tracing::debug!("{written} of {} bytes sent", bytes.len());
                    }
                    Ok(_) => {}
                    Err(error) => return error,
                }
            }
            let timeout = session.poll_timeout().map(|timeout| self.started + timeout);
            let wake_at = earliest(timeout, self.status.due());
            tokio::select! {
                read = port.read(&mut buffer) => match read {
                    Ok(len) => {
                        let t0 = wall_clock();
                        session.receive(self.now(), t0, &buffer[..len]);
                    }
                    Err(error) => return error,
                },
                () = sleep_until(wake_at) => {}
            }
            session.handle_timeout(self.now());
            self.status.report_due();
        }
    }

    fn output(&mut self, output: Output) {
        match output {
            Output::Message(message, raw, t0) => {
                if publish(&self.topic, t0, &message.event(&raw, t0)) {
                    self.status.event();
                }
            }
            Output::BadLine(fault) => self.status.bad_line(fault),
            Output::State(state, detail) => {
                if state == State::Live {
                    self.backoff.reset();
                }
                self.status.tell(state, detail);
            }
        }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }
}
