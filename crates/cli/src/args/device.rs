//! A serial device on the command line: `attic=/dev/ttyUSB0@115200,8N1`.

use std::path::PathBuf;
use std::str::FromStr;

use anemone_hub::{TopicName, TopicNameError};
use anemone_sources::serial::Framing;

use crate::config::BAUD;

/// A topic and the serial device whose lines are its events.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct DeviceFrom {
    pub(crate) topic: TopicName,
    pub(crate) device: PathBuf,
    pub(crate) baud: Option<u32>,
    pub(crate) framing: Option<Framing>,
}

impl FromStr for DeviceFrom {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts =
            text.split_once('=').filter(|(_, place)| !place.is_empty() && !place.starts_with('@'));
        let (topic, place) = parts.ok_or(
            "expected a topic's name, =, and a serial device, such as attic=/dev/ttyUSB0@115200",
        )?;
        let (device, settings) = match place.rsplit_once('@') {
            Some((device, settings)) => (device, Some(settings)),
            None => (place, None),
        };
        let (speed, framing) = match settings.map(|settings| settings.split_once(',')) {
            Some(Some((speed, framing))) => (Some(speed), Some(framing)),
            Some(None) => (settings, None),
            None => (None, None),
        };
        let framing = framing.map(str::parse::<Framing>).transpose();
        Ok(Self {
            topic: topic.parse().map_err(|error: TopicNameError| error.to_string())?,
            device: device.into(),
            baud: speed.map(baud).transpose()?,
            framing: framing.map_err(|error| error.to_string())?,
        })
    }
}

/// Parses the speed of a serial line.
pub(super) fn baud(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(baud) if BAUD.contains(&baud) => Ok(baud),
        _ => Err(format!("expected {} to {} bits per second", BAUD.start(), BAUD.end())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_may_have_its_speed_and_its_framing_behind_the_last_at() {
        for (text, device, baud, framing) in [
            ("attic=/dev/ttyUSB0", "/dev/ttyUSB0", None, None),
            ("attic=/dev/ttyUSB0@115200", "/dev/ttyUSB0", Some(115_200), None),
            ("attic=/dev/ttyUSB0@9600,7E1", "/dev/ttyUSB0", Some(9600), Some("7E1")),
            ("attic=/dev/a@b=c@50", "/dev/a@b=c", Some(50), None),
        ] {
            let from: DeviceFrom = text.parse().unwrap();
            let found = from.framing.map(|framing| framing.to_string());
            assert_eq!((from.topic.as_str(), from.device.to_str()), ("attic", Some(device)));
            assert_eq!((from.baud, found.as_deref()), (baud, framing), "{text}");
        }
        for (text, part) in [
            ("attic", "such as attic=/dev/ttyUSB0@115200"),
            ("attic=", "such as attic=/dev/ttyUSB0@115200"),
            ("attic=@9600", "such as attic=/dev/ttyUSB0@115200"),
            ("attic=/dev/a@fast", "expected 50 to 4000000 bits per second"),
            ("attic=/dev/a@9600,9N1", "such as 8N1"),
            ("a b=/dev/a", "topic"),
        ] {
            let error = text.parse::<DeviceFrom>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
