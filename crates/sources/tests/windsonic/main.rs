//! The sources on serial lines and the emulator, end to end over a pseudo-terminal.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

mod bench;
mod serial_lines;

use std::error::Error;
use std::time::Duration;

use anemone_sources::serial::{Framing, Port};
use anemone_sources::windsonic::emulate::{self, Emulator, Format, Rate, Settings};
use anemone_sources::windsonic::{Mode, SpeedUnits, UnitId, WindsonicOptions};
use anemone_testing::within;
use bench::{Bench, Terminal, emulator};
use serde_json::Value;
use tempfile::tempdir;

/// The words of an error and of its causes.
fn chain(error: &dyn Error) -> Vec<String> {
    let cause = error.source().map(chain).unwrap_or_default();
    [vec![error.to_string()], cause].concat()
}

fn instrument(settings: Settings) -> emulate::EmulatorOptions {
    emulate::EmulatorOptions { settings, ..emulate::EmulatorOptions::default() }
}

/// Times between events, in seconds; the first few left out, which may come in a burst at start-up.
fn intervals(events: &[Value]) -> Vec<f64> {
    let times: Vec<f64> = events.iter().map(|event| event["t0"].as_f64().unwrap()).collect();
    times.windows(2).map(|pair| (pair[1] - pair[0]) / 1000.0).collect()
}

fn assert_4_hz(events: &[Value]) {
    // A late event shortens the next interval, so only the mean is meaningful. 1 Hz would be 1 s.
    let intervals = intervals(events);
    let mean = intervals.iter().sum::<f64>() / intervals.len() as f64;
    assert!((0.15..0.9).contains(&mean), "mean interval {mean} s");
}

#[tokio::test]
async fn listening_publishes_what_comes() {
    let fast = Settings { rate: Rate::Hz4, ..Settings::default() };
    let emulator = emulator(instrument(fast));
    let bench = Bench::start(WindsonicOptions::new(&emulator.path));
    let events = bench.events(8).await;
    assert_4_hz(&events);
    for event in &events {
        assert_eq!(event["unit"], "Q");
        assert_eq!(event["units"], "m/s");
        assert_eq!(event["status"], "00");
        assert!(event["raw"].as_str().unwrap().starts_with("Q,"));
        assert!(event["speed"].as_f64().unwrap() < 60.0);
    }
    let live = bench.status(|status| status["state"] == "live").await;
    assert_eq!(live["detail"], format!("receiving from {}", emulator.path.display()));
}

#[tokio::test]
async fn every_format_arrives() {
    for (format, units, symbol) in [
        (Format::UvContinuous, SpeedUnits::Knots, "knots"),
        (Format::PolarContinuous, SpeedUnits::FeetPerMinute, "ft/min"),
        (Format::Nmea, SpeedUnits::KilometresPerHour, "km/h"),
    ] {
        let settings = Settings { format, units, rate: Rate::Hz4, ..Settings::default() };
        let emulator = emulator(instrument(settings));
        let bench = Bench::start(WindsonicOptions::new(&emulator.path));
        let event = &bench.events(1).await[0];
        assert_eq!(event["units"], symbol);
        assert_eq!(event["u"].is_number(), format == Format::UvContinuous);
        assert_eq!(event["unit"].is_null(), format == Format::Nmea);
    }
}

#[tokio::test]
async fn configure_makes_any_instrument_send_polar_4_times_a_second() {
    // Polled, and with another identifier: all settings differ from the required ones.
    let unit = UnitId::new('W').unwrap();
    let settings = Settings { unit, format: Format::UvPolled, ..Settings::default() };
    let emulator = emulator(instrument(settings));
    let options =
        WindsonicOptions { mode: Mode::Configure, ..WindsonicOptions::new(&emulator.path) };
    let bench = Bench::start(options);
    let events = bench.events(8).await;
    assert_4_hz(&events);
    for event in &events {
        assert_eq!(event["unit"], "W");
        assert!(event["u"].is_null());
    }
}

#[tokio::test]
async fn polling_makes_a_continuous_instrument_answer_4_times_a_second() {
    let emulator = emulator(instrument(Settings::default()));
    let options = WindsonicOptions { mode: Mode::Polled, ..WindsonicOptions::new(&emulator.path) };
    let bench = Bench::start(options);
    assert_4_hz(&bench.events(12).await[2..]);
}

#[tokio::test]
async fn a_device_that_vanishes_is_lost_and_read_again_when_it_is_back() {
    let directory = tempdir().unwrap();
    let link = directory.path().join("wind");
    let fast = Settings { rate: Rate::Hz4, ..Settings::default() };
    let again = || {
        emulator(emulate::EmulatorOptions { link: Some(link.clone()), ..instrument(fast.clone()) })
    };
    let bench = Bench::start(WindsonicOptions::new(&link));
    let lost = bench.status(|status| status["state"] == "lost").await;
    let detail = lost["detail"].as_str().unwrap();
    assert!(detail.starts_with(&format!("no such device {}: ", link.display())));

    let first = again();
    bench.events(2).await;
    drop(first);
    let live = bench.status(|status| status["state"] == "live").await;
    let lost = bench
        .status(|status| {
            status["state"] == "lost" && status["since"].as_f64() > live["since"].as_f64()
        })
        .await;
    assert!(lost["detail"].as_str().unwrap().contains("is gone"), "{lost}");
    let before = bench.count();

    let _second = again();
    bench.events(before + 2).await;
    bench
        .status(|status| {
            status["state"] == "live" && status["since"].as_f64() > lost["since"].as_f64()
        })
        .await;
}

#[tokio::test]
async fn damaged_lines_are_counted_while_good_ones_flow() {
    let fast = Settings { rate: Rate::Hz4, ..Settings::default() };
    let emulator = emulator(emulate::EmulatorOptions { noise: 0.5, seed: 3, ..instrument(fast) });
    let options = WindsonicOptions {
        report_interval: Duration::from_millis(500),
        ..WindsonicOptions::new(&emulator.path)
    };
    let bench = Bench::start(options);
    let status = bench
        .status(|status| {
            status["bad_lines"].as_u64() >= Some(2) && status["events"].as_u64() >= Some(2)
        })
        .await;
    assert!(bench.count() as u64 >= status["events"].as_u64().unwrap());
}

#[tokio::test]
async fn half_a_line_at_the_start_and_a_broken_one_later_lose_nothing() {
    let terminal = Terminal::open();
    let options = WindsonicOptions {
        report_interval: Duration::from_millis(100),
        ..WindsonicOptions::new(&terminal.path)
    };
    let bench = Bench::start(options);
    bench.status(|status| status["detail"].as_str().unwrap().contains("waiting")).await;
    terminal.write(b"02.74,M,00,\x0316\r\n\x02Q,229,002.74,M,00,\x0316\r\n");
    assert_eq!(bench.events(1).await[0]["speed"], 2.74);
    terminal.write(&[&[b'U'; 3_000][..], b"\x02Q,,000.03,M,00,\x032D\r\n"].concat());
    let events = bench.events(2).await;
    assert!(events[1]["direction"].is_null());
    // The half line was no bad line; the overlong one was.
    let status = bench.status(|status| status["bad_lines"] != 0).await;
    assert_eq!(status["bad_lines"], 1);
}

#[tokio::test]
async fn an_instrument_that_cannot_measure_is_live_and_its_status_is_named_at_once() {
    let terminal = Terminal::open();
    let bench = Bench::start(WindsonicOptions::new(&terminal.path));
    bench.status(|status| status["detail"].as_str().unwrap().contains("waiting")).await;
    terminal.write(b"\x02Q,229,002.74,M,00,\x0316\r\n");
    bench.status(|status| status["state"] == "live").await;
    terminal.write(b"\x02Q,,,M,04,\x0334\r\n");
    let event = bench.events(2).await.pop().unwrap();
    assert!(event["speed"].is_null() && event["direction"].is_null(), "{event}");
    assert_eq!(event["status"], "04");
    let told =
        bench.status(|status| status["detail"].as_str().unwrap().contains("status 04")).await;
    assert_eq!((&told["state"], &told["bad_lines"]), (&"live".into(), &0.into()));
}

#[tokio::test]
async fn an_instrument_that_says_nothing_is_silent() {
    let terminal = Terminal::open();
    let options = WindsonicOptions {
        silence_max: Duration::from_millis(200),
        ..WindsonicOptions::new(&terminal.path)
    };
    let bench = Bench::start(options);
    let silent = bench.status(|status| status["state"] == "silent").await;
    assert!(silent["detail"].as_str().unwrap().ends_with("no valid message arrived for 200 ms"));
}

#[tokio::test]
async fn a_device_in_use_is_not_opened_twice() {
    let emulator = emulator(instrument(Settings { rate: Rate::Hz4, ..Settings::default() }));
    let first = Bench::start(WindsonicOptions::new(&emulator.path));
    first.events(1).await;
    let second = Bench::start(WindsonicOptions::new(&emulator.path));
    let lost = second.status(|status| status["state"] == "lost").await;
    assert!(lost["detail"].as_str().unwrap().contains("is in use by another program"), "{lost}");
    drop(first);
    second.events(1).await;
}

#[tokio::test]
async fn any_speed_will_do_on_a_pseudo_terminal_but_none() {
    let terminal = Terminal::open();
    for baud in [50, 9600, 115_200, 250_000, 4_000_000] {
        Port::open(&terminal.path, baud, Framing::default()).unwrap();
    }
    let error = Port::open(&terminal.path, 0, Framing::default()).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot set {} to 0 baud", terminal.path.display()));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_terminal_somebody_works_in_is_left_alone() {
    let terminal = Terminal::open();
    let shell = bench::Shell::start(&terminal);
    let bench = Bench::start(WindsonicOptions::new(&terminal.path));
    let lost = bench.status(|status| status["state"] == "lost").await;
    let expected = format!("{} is a terminal in use; retrying", terminal.path.display());
    assert!(lost["detail"].as_str().unwrap().starts_with(&expected), "{lost}");
    // Once they have left it is a terminal as any other.
    drop(shell);
    bench.status(|status| status["detail"].as_str().unwrap().contains("waiting")).await;
}

#[tokio::test]
async fn a_recording_is_replayed_over_and_over() {
    let directory = tempdir().unwrap();
    let recording = directory.path().join("recording");
    std::fs::write(&recording, "Q,229,002.74,M,00,\nQ,,000.03,M,00,\n").unwrap();
    let fast = Settings { rate: Rate::Hz4, ..Settings::default() };
    let emulator =
        emulator(emulate::EmulatorOptions { replay: Some(recording), ..instrument(fast) });
    let bench = Bench::start(WindsonicOptions::new(&emulator.path));
    let events = bench.events(4).await;
    assert_eq!(events[0]["raw"], events[2]["raw"]);
    assert_eq!(events[1]["raw"], events[3]["raw"]);
    assert_ne!(events[0]["raw"], events[1]["raw"]);
}

#[tokio::test]
async fn an_emulator_that_nobody_reads_goes_on_and_keeps_nothing_old() {
    let fast = Settings { rate: Rate::Hz4, ..Settings::default() };
    let emulator = emulator(instrument(fast));
    // A reader that comes, does not read, and goes.
    let reader = bench::open(&emulator.path);
    within(bench::readable(&reader)).await;
    assert!(bench::waiting(&reader) > 0);
    drop(reader);
    // Not a wait for something to happen: all that is due by then is done before it ends.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let reader = bench::open(&emulator.path);
    assert_eq!(bench::waiting(&reader), 0);
    within(bench::readable(&reader)).await;
    assert!(bench::waiting(&reader) > 0);
}

#[tokio::test]
async fn what_cannot_be_emulated_is_refused_with_the_reason() {
    let directory = tempdir().unwrap();
    let taken = directory.path().join("taken");
    std::fs::write(&taken, "Q,400,002.74,M,00,\n").unwrap();
    let error = |options| Emulator::open(options).unwrap_err();
    let defaults = emulate::EmulatorOptions::default;
    assert_eq!(
        error(emulate::EmulatorOptions { link: Some(taken.clone()), ..defaults() }).to_string(),
        format!("{} exists and is not a symbolic link", taken.display())
    );
    let bad_line = error(emulate::EmulatorOptions { replay: Some(taken.clone()), ..defaults() });
    assert_eq!(
        chain(&bad_line),
        [
            format!("cannot replay {}", taken.display()).as_str(),
            "none of its lines is a measurement",
            "line 1 is not a measurement",
            "direction \"400\" is not empty or 000 to 359",
        ]
    );
    assert_eq!(
        error(emulate::EmulatorOptions { noise: 1.5, ..defaults() }).to_string(),
        "noise is 1.5, expected a probability, 0 to 1"
    );
}
