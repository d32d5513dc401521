use proptest::prelude::*;

use super::*;
use crate::windsonic::configure::{Dialogue, Outcome};
use crate::windsonic::emulate::settings::Rate;
use crate::windsonic::parse::parse;
use crate::windsonic::{SpeedUnits, UnitId};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn instrument(settings: Settings) -> Instrument {
    let source = Source::Model(Model::new(7));
    Instrument::new(Duration::ZERO, settings, source, Noise::new(0.0, 7))
}

fn lines(instrument: &mut Instrument) -> Vec<String> {
    let lines = std::iter::from_fn(|| instrument.poll_transmit());
    lines.map(|line| String::from_utf8(line).unwrap()).collect()
}

/// Returns the instrument's immediate answers to these bytes.
fn answers(instrument: &mut Instrument, sent: &str) -> Vec<String> {
    instrument.receive(ms(100), sent.as_bytes());
    lines(instrument)
}

/// Returns the messages that the instrument sends by itself until this time, with their times.
fn pass(instrument: &mut Instrument, until: Duration) -> Vec<(Duration, Message)> {
    let mut sent = Vec::new();
    while let Some(at) = instrument.poll_timeout().filter(|at| *at <= until) {
        instrument.handle_timeout(at);
        for line in lines(instrument) {
            sent.push((at, parse(line.trim_end().as_bytes()).unwrap().message));
        }
    }
    sent
}

#[test]
fn it_measures_by_itself_at_its_rate() {
    for (rate, hz) in [(Rate::Hz1, 1), (Rate::Hz2, 2), (Rate::Hz4, 4)] {
        let mut instrument = instrument(Settings { rate, ..Settings::default() });
        let sent = pass(&mut instrument, Duration::from_secs(60));
        assert_eq!(sent.len(), 60 * hz);
        assert_eq!(sent[0].1.sender, Sender::Gill(UnitId::default()));
    }
}

#[test]
fn a_late_call_shifts_nothing_and_missed_messages_are_not_made_up_for() {
    let mut instrument = instrument(Settings::default());
    instrument.handle_timeout(ms(1300));
    assert_eq!(instrument.poll_timeout(), Some(ms(2000)));
    instrument.handle_timeout(ms(7999));
    assert_eq!(lines(&mut instrument).len(), 2);
    assert_eq!(instrument.poll_timeout(), Some(ms(8000)));
}

#[test]
fn configuration_mode_is_entered_with_the_identifier_and_stops_measuring() {
    let mut instrument = instrument(Settings::default());
    assert_eq!(answers(&mut instrument, "*W"), [""; 0]);
    assert_eq!(answers(&mut instrument, "*Q"), ["CONFIGURATION MODE\r\n"]);
    assert_eq!(pass(&mut instrument, ms(10_000)), []);
    let listed = "M2,U1,O1,L1,P1,B3,F1,H1,NQ,E1,T1,S3,C2\r\n";
    assert_eq!(answers(&mut instrument, "D3\r"), [listed]);
    assert_eq!(answers(&mut instrument, "Q\r\n"), [""; 0]);
    assert_eq!(pass(&mut instrument, ms(10_000)).len(), 9);
}

#[test]
fn accepted_settings_are_echoed_and_others_are_not() {
    let mut instrument = instrument(Settings::default());
    answers(&mut instrument, "*Q");
    assert_eq!(answers(&mut instrument, "M5\rP3\r"), ["M5\r\n", "P3\r\n"]);
    for command in ["M9\r", "hello\r", "QM2\r", "D4\r", "this is far too long\r"] {
        assert_eq!(answers(&mut instrument, command), ["ILLEGAL COMMAND\r\n"], "{command}");
    }
    assert_eq!(answers(&mut instrument, "\r\n\r"), [""; 0]);
    let listed = "M5,U1,O1,L1,P3,B3,F1,H1,NQ,E1,T1,S3,C2\r\n";
    assert_eq!(answers(&mut instrument, "D3\r"), [listed]);
}

#[test]
fn each_format_is_what_it_says() {
    let polled = |format: &str, units: &str| {
        let mut instrument = instrument(Settings::default());
        answers(&mut instrument, &format!("*Q{format}\r{units}\rNW\rQ\r?"));
        let lines = answers(&mut instrument, "W");
        let line = lines.last().unwrap().trim_end().as_bytes();
        parse(line).unwrap().message
    };
    for format in ["M1", "M3"] {
        let message = polled(format, "U1");
        assert!(matches!(message.wind, Wind::Vector { .. }), "{format}");
        assert_eq!(message.sender, Sender::Gill(UnitId::new('W').unwrap()));
    }
    for format in ["M2", "M4", "M5"] {
        assert!(matches!(polled(format, "U1").wind, Wind::Polar { .. }), "{format}");
    }
    assert_eq!(polled("M5", "U1").sender, Sender::Nmea(Some(Reference::Relative)));
    for (at, units) in SpeedUnits::ALL.into_iter().enumerate() {
        assert_eq!(polled("M2", &format!("U{}", at + 1)).units, Some(units));
    }
}

#[test]
fn uv_and_polar_say_the_same_wind() {
    let sample = WindSample { metres_per_second: 4.0, degrees: 229.0 };
    let of = |format| message(&Settings { format, ..Settings::default() }, sample);
    let (polar, vector) = (of(Format::PolarPolled), of(Format::UvPolled));
    assert_eq!(polar.direction(), vector.direction());
    assert_eq!(polar.speed(), vector.speed());
}

#[test]
fn a_calm_has_no_direction() {
    let calm = WindSample { metres_per_second: 0.049, degrees: 229.0 };
    let line = message(&Settings::default(), calm).encode();
    assert!(line.starts_with(b"\x02Q,,000.05,M,00,\x03"));
}

#[test]
fn a_polled_format_answers_its_identifier_only() {
    let mut instrument =
        instrument(Settings { format: Format::PolarPolled, ..Settings::default() });
    assert_eq!(instrument.poll_timeout(), None);
    assert_eq!(answers(&mut instrument, "Q").len(), 1);
    assert_eq!(answers(&mut instrument, "WXq\r\n"), [""; 0]);
    assert_eq!(answers(&mut instrument, "?Q").len(), 1);
    assert_eq!(answers(&mut instrument, "!Q"), [""; 0]);
    assert_eq!(instrument.poll_timeout(), None);
    assert_eq!(answers(&mut instrument, "?&"), ["Q\r\n"]);
    assert_eq!(answers(&mut instrument, "Q").len(), 1);
}

#[test]
fn polls_can_be_enabled_and_disabled_in_a_continuous_format() {
    let mut instrument = instrument(Settings::default());
    assert_eq!(answers(&mut instrument, "Q"), [""; 0]);
    assert_eq!(answers(&mut instrument, "?"), [""; 0]);
    assert_eq!(instrument.poll_timeout(), None);
    assert_eq!(answers(&mut instrument, "Q").len(), 1);
    assert_eq!(answers(&mut instrument, "!"), [""; 0]);
    assert_eq!(instrument.poll_timeout(), Some(ms(1100)));
}

#[test]
fn the_seed_determines_what_is_sent() {
    let sent = || {
        let mut instrument = instrument(Settings::default());
        pass(&mut instrument, Duration::from_secs(100))
    };
    assert_eq!(sent(), sent());
}

#[test]
fn a_recording_is_sent_in_its_own_format() {
    let (replay, _) = Replay::parse(b"Q,229,002.74,M,00,\n$WIMWV,229,R,002.74,M,A*06\n").unwrap();
    let noise = Noise::new(0.0, 7);
    let mut instrument =
        Instrument::new(Duration::ZERO, Settings::default(), Source::Replay(replay), noise);
    for at in 1..=3 {
        instrument.handle_timeout(Duration::from_secs(at));
    }
    let polar = "\u{2}Q,229,002.74,M,00,\u{3}16\r\n";
    assert_eq!(lines(&mut instrument), [polar, "$WIMWV,229,R,002.74,M,A*06\r\n", polar]);
}

/// Configures the instrument with the dialogue of this crate. Time passes only when the dialogue times out.
fn configured(instrument: &mut Instrument) -> Outcome {
    const COMMANDS: &[&str] = &["M2", "P3"];
    let (mut now, wait) = (ms(0), ms(500));
    let mut dialogue = Dialogue::begin(now, UnitId::default(), COMMANDS, wait);
    loop {
        while let Some(bytes) = dialogue.poll_transmit() {
            instrument.receive(now, &bytes);
        }
        let outcome = match instrument.poll_transmit() {
            Some(line) => dialogue.receive(now, &line),
            None => {
                now = dialogue.deadline();
                instrument.handle_timeout(now);
                dialogue.handle_timeout(now)
            }
        };
        if let Some(outcome) = outcome {
            while let Some(bytes) = dialogue.poll_transmit() {
                instrument.receive(now, &bytes);
            }
            return outcome;
        }
    }
}

proptest! {
    #[test]
    fn whatever_state_it_is_in_our_dialogue_configures_it(
        letter in prop::char::range('A', 'Z'), format in 1..=5,
        left_in in prop::sample::select(vec!["", "Q\r", "Q\r?", "Q\r!", "Q\r*", "M", "hello"]),
    ) {
        let mut instrument = instrument(Settings::default());
        instrument.receive(ms(0), format!("*QN{letter}\rM{format}\r{left_in}").as_bytes());
        while instrument.poll_transmit().is_some() {}
        prop_assert_eq!(configured(&mut instrument), Outcome::Done(UnitId::new(letter).unwrap()));
        prop_assert_eq!(instrument.stored.settings.format, Format::PolarContinuous);
        prop_assert_eq!(instrument.stored.settings.rate, Rate::Hz4);
        prop_assert!(instrument.poll_timeout().is_some());
    }

    #[test]
    fn arbitrary_input_never_panics_nor_makes_it_hold_more_than_its_bound(
        bytes: Vec<u8>, text in "[*?!&QMDUP0-9\r]{0,200}",
    ) {
        let mut instrument = instrument(Settings::default());
        instrument.receive(ms(1), &bytes);
        instrument.receive(ms(2), text.as_bytes());
        instrument.handle_timeout(ms(5000));
        prop_assert!(lines(&mut instrument).len() <= TRANSMIT_LINES_MAX);
        if let InstrumentState::Configuring { command } = &instrument.state {
            prop_assert!(command.len() <= COMMAND_BYTES_MAX);
        }
    }

    #[test]
    fn any_split_of_the_input_gives_the_same(text in "[*?!&QMDUP0-9\r]{0,60}", at: prop::sample::Index) {
        let at = at.index(text.len() + 1);
        let mut whole = instrument(Settings::default());
        whole.receive(ms(1), text.as_bytes());
        let mut pieces = instrument(Settings::default());
        pieces.receive(ms(1), &text.as_bytes()[..at]);
        pieces.receive(ms(1), &text.as_bytes()[at..]);
        prop_assert_eq!(lines(&mut whole), lines(&mut pieces));
    }
}
