use proptest::prelude::*;

use super::*;
use crate::windsonic::line::Assembler;
use crate::windsonic::message::Reference;

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

pub(super) fn nmea(content: &str) -> Vec<u8> {
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
    assert_eq!(message.sender, Sender::Gill(UnitId::default()));
    assert_eq!(message.direction(), Some(Decimal::whole(229)));
    assert_eq!(message.speed(), Some(Decimal::hundredths(274)));
    assert_eq!(message.units, Some(SpeedUnits::MetresPerSecond));
    assert_eq!(message.status, "00");
}

#[test]
fn a_uv_message_has_components_and_what_follows_from_them() {
    let line = line("Q,+000.05,+000.00,M,00,", "35");
    let message = parse(&line).unwrap().message;
    let five = Decimal::hundredths(5);
    assert_eq!(message.wind, Wind::Vector { u: five, v: Decimal::default() });
    assert_eq!((message.direction(), message.speed()), (Some(Decimal::whole(180)), Some(five)));
}

#[test]
fn an_nmea_message_has_no_unit_and_its_own_status() {
    for (content, status) in [("WIMWV,229,R,002.74,M,A", "A"), ("IIMWV,,R,000.03,N,V", "V")] {
        let line = nmea(content);
        let parsed = parse(&line).unwrap();
        assert_eq!(parsed.message.sender, Sender::Nmea(Some(Reference::Relative)));
        assert_eq!(parsed.message.status, status);
        assert_eq!(parsed.raw.as_bytes(), line);
    }
}

#[test]
fn nmea_may_lack_its_checksum_and_a_wrong_one_is_a_fault() {
    let line = b"$WIMWV,270,R,10,N,A";
    let parsed = parse(line).unwrap();
    assert_eq!(parsed.message.speed(), Some(Decimal::whole(10)));
    assert_eq!(parsed.raw.as_bytes(), line);
    assert_eq!(
        error(b"$WIMWV,270,R,10,N,A*"),
        "0 bytes stand where the checksum should be two hex digits"
    );
}

#[test]
fn data_without_figures_is_a_message_without_wind() {
    for content in ["Q,,,M,04,", "Q,999,999.99,M,04,", "Q,+999.99,-999.99,N,02,", "Q,,,K,01,"] {
        let line = gill(content);
        let parsed = parse(&line).unwrap();
        assert_eq!((parsed.message.wind, parsed.raw), (Wind::Void, content));
        assert_eq!((parsed.message.direction(), parsed.message.speed()), (None, None));
    }
    // While all is well, nines are figures.
    let strong = parse(&gill("Q,099,999.99,F,00,")).unwrap().message;
    assert_eq!(strong.speed(), Some(Decimal::hundredths(99_999)));
    assert!(parse(&gill("Q,999,999.99,M,00,")).is_err());
    assert!(parse(&gill("Q,229,,M,04,")).is_err());
}

#[test]
fn json_is_told_from_a_line_without_its_beginning() {
    for line in [&b"{\"t\":1}"[..], b" {\"t\":", b"\xef\xbb\xbf{", b"[ {\"t\":1}]"] {
        assert_eq!(parse(line), Err(ParseError::Json), "{}", line.escape_ascii());
    }
    for line in [&b"[info] ready"[..], b"23.5", b"\"a\"", b""] {
        assert_eq!(parse(line), Err(ParseError::Start), "{}", line.escape_ascii());
    }
}

#[test]
fn each_fault_is_said_in_the_terms_of_the_line() {
    assert_eq!(error(b"Q,229,002.74,M,00,\x0316"), "line begins neither with STX nor with $");
    assert_eq!(error(b"\x02Q,229,00"), "line has no ETX and no checksum after it");
    assert_eq!(error(b"$WIMWV,229"), "message has 2 fields, expected 6");
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
}

#[test]
fn a_field_after_the_last_comma_is_refused() {
    assert!(parse(&gill("Q,229,002.74,M,00,x")).is_err());
}

#[test]
fn feet_per_minute_may_have_five_digits() {
    let line = gill("Q,229,11811.02,F,00,");
    assert_eq!(parse(&line).unwrap().message.speed(), Some(Decimal::hundredths(1_181_102)));
    assert!(parse(&gill("Q,229,11811.02,M,00,")).is_err());
}

fn units() -> impl Strategy<Value = SpeedUnits> {
    prop::sample::select(SpeedUnits::ALL.to_vec())
}

fn messages() -> impl Strategy<Value = Message> {
    let direction = prop::option::of((0_u16..360).prop_map(Decimal::whole));
    let speed = |range: std::ops::Range<i64>| range.prop_map(Decimal::hundredths);
    let polar = (direction, speed(0..100_000))
        .prop_map(|(direction, speed)| Wind::Polar { direction, speed });
    let component = || speed(-99_999..100_000);
    let vector = (component(), component()).prop_map(|(u, v)| Wind::Vector { u, v });
    let letters = prop::char::range('A', 'Z');
    let gill = letters.prop_map(|letter| Sender::Gill(UnitId::new(letter).unwrap()));
    let gill = (gill, prop_oneof![polar.clone(), vector, Just(Wind::Void)], units(), "0[0-9]");
    let references = prop::sample::select(vec![Reference::Relative, Reference::Theoretical]);
    let nmea = references.prop_map(|reference| Sender::Nmea(Some(reference)));
    let nmea = (nmea, prop_oneof![polar, Just(Wind::Void)], units(), "[AV]");
    let message =
        |(sender, wind, units, status)| Message { sender, wind, units: Some(units), status };
    let (gill, nmea) = (gill.prop_map(message), nmea.prop_map(message));
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
