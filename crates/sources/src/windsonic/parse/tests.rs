use proptest::prelude::*;

use super::*;
use crate::windsonic::line::Assembler;

/// Texts between STX and ETX with their checksums, verified with an instrument.
const VERIFIED: [(&str, &str); 6] = [
    ("Q,229,002.74,M,00,", "16"),
    ("Q,,000.03,M,00,", "2D"),
    ("Q,349,000.05,M,00,", "15"),
    ("Q,031,000.06,M,00,", "1A"),
    ("Q,194,000.04,N,00,", "15"),
    ("Q,+000.05,+000.00,M,00,", "35"),
];

fn line(content: &str, sum: &str) -> Vec<u8> {
    format!("\u{2}{content}\u{3}{sum}").into_bytes()
}

/// Returns a line in a Gill format with the right checksum.
fn gill(content: &str) -> Vec<u8> {
    line(content, &format!("{:02X}", checksum(content.as_bytes())))
}

fn nmea(content: &str) -> Vec<u8> {
    format!("${content}*{:02X}", checksum(content.as_bytes())).into_bytes()
}

fn error(line: &[u8]) -> String {
    parse(line).unwrap_err().to_string()
}

#[test]
fn the_verified_lines_parse_and_are_written_again_the_same() {
    for (content, sum) in VERIFIED {
        let line = line(content, sum);
        let parsed = parse(&line).unwrap();
        assert_eq!(parsed.raw, content);
        assert_eq!(parsed.message.encode(), [&line[..], b"\r\n"].concat());
    }
}

#[test]
fn a_polar_message_has_all_its_parts() {
    let line = line("Q,229,002.74,M,00,", "16");
    let message = parse(&line).unwrap().message;
    assert_eq!(message.unit, UnitId::new('Q'));
    assert_eq!(message.direction(), Some(229));
    assert_eq!(message.speed(), Hundredths::new(274));
    assert_eq!(message.units, SpeedUnits::MetresPerSecond);
    assert_eq!(message.status, "00");
}

#[test]
fn a_uv_message_has_components_and_what_follows_from_them() {
    let line = line("Q,+000.05,+000.00,M,00,", "35");
    let message = parse(&line).unwrap().message;
    assert_eq!(message.wind, Wind::Vector { u: Hundredths::new(5), v: Hundredths::new(0) });
    assert_eq!((message.direction(), message.speed()), (Some(180), Hundredths::new(5)));
}

#[test]
fn an_nmea_message_has_no_unit_and_its_own_status() {
    for (content, status) in [("WIMWV,229,R,002.74,M,A", "A"), ("IIMWV,,R,000.03,N,V", "V")] {
        let line = nmea(content);
        let parsed = parse(&line).unwrap();
        assert_eq!((parsed.message.unit, parsed.message.status.as_str()), (None, status));
        assert_eq!(parsed.raw.as_bytes(), line);
    }
}

#[test]
fn each_fault_is_said_in_the_terms_of_the_line() {
    assert_eq!(error(b"Q,229,002.74,M,00,\x0316"), "line begins neither with STX nor with $");
    assert_eq!(error(b"\x02Q,229,00"), "line has no ETX and no checksum after it");
    assert_eq!(error(b"$WIMWV,229"), "line has no * and no checksum after it");
    assert_eq!(
        error(b"\x02Q,229,002.74,M,00,\x031"),
        "1 bytes stand where the checksum should be two hex digits"
    );
    assert_eq!(error(b"\x02Q,229,002.75,M,00,\x0316"), "checksum is 16, the bytes give 17");
    assert_eq!(error(&gill("Q,229,M,00,")), "message has 5 fields, expected 6");
    assert_eq!(error(&gill("Q,360,002.74,M,00,")), "direction \"360\" is not empty or 000 to 359");
    assert_eq!(error(&gill("Q,229,2.74,M,00,")), "speed \"2.74\" is not as 002.74");
    assert_eq!(error(&gill("Q,+002.74,002.74,M,00,")), "V \"002.74\" is not as +002.74");
    assert_eq!(error(&gill("q,229,002.74,M,00,")), "unit \"q\" is not one letter, A to Z");
    assert_eq!(error(&gill("Q,229,002.74,X,00,")), "unit of speed \"X\" is not one of M N P K F");
    assert_eq!(error(&gill("Q,229,002.74,M,0,")), "status \"0\" is not two digits");
    assert_eq!(
        error(&nmea("WIXDR,1,R,002.74,M,A")),
        "sentence \"WIXDR\" is not a wind sentence, MWV"
    );
}

#[test]
fn a_field_after_the_last_comma_is_refused() {
    assert!(parse(&gill("Q,229,002.74,M,00,x")).is_err());
}

#[test]
fn feet_per_minute_may_have_five_digits() {
    let line = gill("Q,229,11811.02,F,00,");
    assert_eq!(parse(&line).unwrap().message.speed(), Hundredths::new(1_181_102));
    assert!(parse(&gill("Q,229,11811.02,M,00,")).is_err());
}

fn units() -> impl Strategy<Value = SpeedUnits> {
    prop::sample::select(SpeedUnits::ALL.to_vec())
}

fn messages() -> impl Strategy<Value = Message> {
    let direction = prop::option::of(0_u16..360);
    let polar = (direction, 0..100_000)
        .prop_map(|(direction, speed)| Wind::Polar { direction, speed: Hundredths::new(speed) });
    let component = -99_999..100_000;
    let vector = (component.clone(), component)
        .prop_map(|(u, v)| Wind::Vector { u: Hundredths::new(u), v: Hundredths::new(v) });
    let letters = prop::char::range('A', 'Z').prop_map(UnitId::new);
    let gill = (letters, prop_oneof![polar.clone(), vector], units(), "0[0-9]")
        .prop_map(|(unit, wind, units, status)| Message { unit, wind, units, status });
    let nmea = (polar, units(), "[AV]").prop_map(|(wind, units, status)| Message {
        unit: None,
        wind,
        units,
        status,
    });
    prop_oneof![gill, nmea]
}

/// Returns the messages that a source finds in these bytes.
fn heard(bytes: &[u8]) -> Vec<Message> {
    let mut assembler = Assembler::new(128);
    let lines = bytes.iter().filter_map(|byte| assembler.push(*byte));
    lines.filter_map(|line| Some(parse(&line.bytes).ok()?.message)).collect()
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        let _ = parse(&bytes);
        let _ = parse(&[&[STX], &bytes[..]].concat());
        let _ = parse(&[b"$", &bytes[..]].concat());
        let _ = parse_gill(&bytes);
    }

    #[test]
    fn parsing_undoes_encoding(message in messages()) {
        let line = message.encode();
        prop_assert_eq!(parse(line.trim_ascii_end()).map(|parsed| parsed.message), Ok(message));
    }

    #[test]
    fn one_changed_byte_never_makes_another_message(
        message in messages(), at: prop::sample::Index, by in 1_u8..,
    ) {
        let mut line = message.encode();
        let at = at.index(line.len());
        line[at] ^= by;
        for heard in heard(&line) {
            // The message stays the same if CR becomes LF or a hex digit changes its case.
            prop_assert_eq!(&heard, &message);
        }
        let content = message.encode().trim_ascii_end().len() - 3;
        if (1..content).contains(&at) {
            prop_assert_eq!(heard(&line), []);
        }
    }

    #[test]
    fn one_lost_byte_never_makes_another_message(message in messages(), at: prop::sample::Index) {
        let mut line = message.encode();
        line.remove(at.index(line.len()));
        for heard in heard(&line) {
            prop_assert_eq!(&heard, &message);
        }
    }

    #[test]
    fn one_added_byte_never_makes_another_message(
        message in messages(), at: prop::sample::Index, byte: u8,
    ) {
        let mut line = message.encode();
        line.insert(at.index(line.len()), byte);
        for heard in heard(&line) {
            prop_assert_eq!(&heard, &message);
        }
    }

    #[test]
    fn a_message_after_noise_is_always_heard(
        noise in prop::collection::vec(any::<u8>(), 0..300), message in messages(),
    ) {
        let stream = [&noise[..], &message.encode()].concat();
        prop_assert_eq!(heard(&stream).pop(), Some(message));
    }
}
