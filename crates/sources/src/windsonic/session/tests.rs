use proptest::prelude::*;

use super::*;
use crate::windsonic::message::gill_line;

const GOOD: &[u8] = b"\x02Q,229,002.74,M,00,\x0316\r\n";
const T0: UnixTime = UnixTime::from_micros(1_789_000_000_123_456);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn begin(mode: Mode) -> Session {
    Session::begin(Duration::ZERO, WindsonicOptions { mode, ..WindsonicOptions::new("/dev/wind") })
}

fn outputs(session: &mut Session) -> Vec<Output> {
    std::iter::from_fn(|| session.poll_output()).collect()
}

fn sent(session: &mut Session) -> String {
    let bytes: Vec<_> = std::iter::from_fn(|| session.poll_transmit()).flatten().collect();
    bytes.escape_ascii().to_string()
}

/// Returns the last reported state.
fn state(session: &mut Session) -> (State, String) {
    let mut states = outputs(session).into_iter().filter_map(|output| match output {
        Output::State(state, detail) => Some((state, detail)),
        _ => None,
    });
    states.next_back().expect("a state was told")
}

fn messages(outputs: &[Output]) -> usize {
    outputs.iter().filter(|output| matches!(output, Output::Message(..))).count()
}

fn bad_lines(outputs: &[Output]) -> Vec<&str> {
    let mut faults = Vec::new();
    for output in outputs {
        if let Output::BadLine(fault) = output {
            faults.push(fault.as_str());
        }
    }
    faults
}

/// Lets time pass until `until`, and handles each timeout when it is due.
fn pass(session: &mut Session, until: Duration) {
    while let Some(at) = session.poll_timeout().filter(|at| *at <= until) {
        session.handle_timeout(at);
        assert!(session.poll_timeout().is_none_or(|next| next > at), "due again at the same time");
    }
}

#[test]
fn the_first_message_makes_it_live_and_carries_the_time_of_its_read() {
    let mut session = begin(Mode::Listen);
    assert_eq!(state(&mut session).0, State::Opening);
    session.receive(ms(10), T0, GOOD);
    let outputs = outputs(&mut session);
    let [Output::Message(_, raw, t0), Output::State(State::Live, detail)] = &outputs[..] else {
        panic!("{outputs:?}")
    };
    assert_eq!((raw.as_str(), *t0), ("Q,229,002.74,M,00,", T0));
    assert_eq!(detail, "receiving from /dev/wind");
    assert_eq!(sent(&mut session), "");
}

#[test]
fn half_a_line_at_the_start_is_no_bad_line_and_half_a_line_later_is_one() {
    let mut session = begin(Mode::Listen);
    session.receive(ms(1), T0, &GOOD[7..]);
    session.receive(ms(2), T0, GOOD);
    assert_eq!(bad_lines(&outputs(&mut session)), [""; 0]);
    session.receive(ms(3), T0, &GOOD[7..]);
    assert_eq!(bad_lines(&outputs(&mut session)).len(), 1);
}

#[test]
fn a_bad_line_is_told_with_its_fault_and_the_next_good_one_is_not_lost() {
    let mut session = begin(Mode::Listen);
    session.receive(ms(1), T0, b"\x02Q,229,002.75,M,00,\x0316\r\n\xff\x02Q,22");
    session.receive(ms(2), T0, GOOD);
    let outputs = outputs(&mut session);
    assert_eq!(messages(&outputs), 1);
    assert_eq!(
        bad_lines(&outputs),
        [
            r#"checksum is 16, the bytes give 17: "\x02Q,229,002.75,M,00,\x0316""#,
            r#"line begins neither with STX nor with $: "\xff""#,
            r#"line has no ETX and no checksum after it: "\x02Q,22""#,
        ]
    );
}

#[test]
fn a_line_too_long_is_told_once_and_cut() {
    let mut session = begin(Mode::Listen);
    session.receive(ms(1), T0, &[&[b'U'; 9_000][..], b"\r\n", GOOD].concat());
    let outputs = outputs(&mut session);
    assert_eq!(messages(&outputs), 1);
    let expected = format!("line is longer than 128 bytes: \"{}…\"", "U".repeat(60));
    assert_eq!(bad_lines(&outputs), [expected]);
}

#[test]
fn what_the_instrument_says_of_itself_is_no_bad_line() {
    let mut session = begin(Mode::Listen);
    session.receive(ms(1), T0, b"\r\nWINDSONIC (Gill Instruments Ltd)\r\n2368-110-01\r\n");
    session.receive(ms(2), T0, b"CHECKSUM ROM:E15C E15C *PASS*\r\nCONFIGURATION MODE\r\n");
    assert_eq!(bad_lines(&outputs(&mut session)), [""; 0]);
}

#[test]
fn without_valid_messages_it_is_silent_and_says_why() {
    let mut session = begin(Mode::Listen);
    pass(&mut session, ms(2999));
    assert_eq!(state(&mut session).0, State::Opening);
    pass(&mut session, ms(3000));
    let quiet = "/dev/wind is open, but no valid message arrived for 3 s".to_owned();
    assert_eq!(state(&mut session), (State::Silent, quiet));
    session.receive(ms(3100), T0, GOOD);
    assert_eq!(state(&mut session).0, State::Live);
    session.receive(ms(3200), T0, b"\x02\xf3\xf3\r");
    pass(&mut session, ms(6100));
    let (silent, detail) = state(&mut session);
    assert_eq!(silent, State::Silent);
    assert!(detail.starts_with("nothing but bad lines from /dev/wind, 1 so far"), "{detail}");
    assert!(detail.ends_with("(is it 9600 baud?)"), "{detail}");
}

#[test]
fn bad_lines_that_begin_after_silence_are_told_and_counted_on() {
    let mut session = begin(Mode::Listen);
    pass(&mut session, ms(3000));
    assert_eq!(state(&mut session).0, State::Silent);
    for (count, bytes) in [(1, &b"\x80\xf3\xf3\r"[..]), (2, b"\x02Q,229\r"), (3, b"\xfe\r")] {
        session.receive(ms(4000 + count), T0, bytes);
        let (silent, detail) = state(&mut session);
        assert_eq!(silent, State::Silent);
        let expected = format!("nothing but bad lines from /dev/wind, {count} so far");
        assert!(detail.starts_with(&expected), "{detail}");
        // Only bytes that are not text speak for a wrong speed.
        assert_eq!(detail.contains("9600 baud"), bytes != b"\x02Q,229\r", "{detail}");
    }
}

#[test]
fn a_fault_of_the_instrument_is_no_silence_and_is_named_until_it_is_over() {
    let mut session = begin(Mode::Listen);
    session.receive(ms(1), T0, GOOD);
    state(&mut session);
    let void = gill_line("Q,,,M,04,");
    for at in 1..20 {
        session.receive(ms(at * 1000), T0, &void);
        pass(&mut session, ms(at * 1000 + 999));
    }
    let outputs = outputs(&mut session);
    assert_eq!((messages(&outputs), bad_lines(&outputs).len()), (19, 0));
    let told = |output: &&Output| matches!(output, Output::State(..));
    let told: Vec<_> = outputs.iter().filter(told).collect();
    let expected = "receiving from /dev/wind; the instrument reports status 04, both axes failed \
                    (look for something in their paths)";
    assert_eq!(told, [&Output::State(State::Live, expected.to_owned())]);
    session.receive(ms(20_000), T0, GOOD);
    let live = (State::Live, "receiving from /dev/wind".to_owned());
    assert_eq!(state(&mut session), live);
}

#[test]
fn a_device_that_writes_json_is_told_from_a_damaged_line() {
    let long = format!("{{\"values\":[{}1]}}\r\n", "1.25,".repeat(60));
    for line in ["{\"t\":21.5}\r\n", "\u{feff}{\"t\":21.5,\"h\":40}\r\n", &long] {
        let mut session = begin(Mode::Listen);
        session.receive(ms(1), T0, &[b"half\r\n", line.as_bytes()].concat());
        pass(&mut session, ms(3001));
        let (silent, detail) = state(&mut session);
        assert_eq!(silent, State::Silent);
        assert!(detail.contains("line is JSON") && detail.contains("--serial-lines"), "{detail}");
    }
}

#[test]
fn other_sentences_and_texts_are_no_bad_lines_and_the_newest_is_shown() {
    let mut session = begin(Mode::Listen);
    pass(&mut session, ms(3000));
    for (bytes, shown) in
        [(&b"$GPGLL,4916.45,N*3B\r\n"[..], "$GPGLL,4916.45,N*3B"), (b"23.5\r\n", "23.5")]
    {
        session.receive(ms(3001), T0, bytes);
        let outputs = outputs(&mut session);
        assert_eq!(bad_lines(&outputs), [""; 0]);
        let expected =
            format!("no measurement from /dev/wind for 3 s; its newest line: \"{shown}\"");
        assert_eq!(outputs.last(), Some(&Output::State(State::Silent, expected)));
    }
    session.receive(ms(3002), T0, b"$GPGLL,1*00\r\n");
    assert_eq!(bad_lines(&outputs(&mut session)).len(), 1);
}

#[test]
fn configure_sets_polar_continuous_4_hz_and_keeps_what_comes_meanwhile() {
    let mut session = begin(Mode::Configure);
    assert_eq!(sent(&mut session), "*Q");
    session.receive(ms(5), T0, &[GOOD, b"CONFIGURATION MODE\r\n"].concat());
    assert_eq!(sent(&mut session), r"M2\r");
    session.receive(ms(10), T0, b"M2\r\n");
    assert_eq!(sent(&mut session), r"P3\r");
    session.receive(ms(15), T0, b"P3\r\n");
    assert_eq!(sent(&mut session), r"Q\r");
    session.receive(ms(20), T0, GOOD);
    let outputs = outputs(&mut session);
    assert_eq!((messages(&outputs), bad_lines(&outputs).len()), (2, 0));
    assert_eq!(session.poll_timeout(), Some(ms(3020)));
}

#[test]
fn an_instrument_that_cannot_be_configured_is_listened_to_and_tried_again() {
    let mut session = begin(Mode::Configure);
    for at in (0..8_000).step_by(250) {
        session.receive(ms(at), T0, GOOD);
        pass(&mut session, ms(at + 249));
    }
    let told = outputs(&mut session);
    assert_eq!(messages(&told), 32);
    let Some(Output::State(State::Live, detail)) =
        told.iter().rfind(|output| matches!(output, Output::State(..)))
    else {
        panic!("{told:?}")
    };
    assert!(detail.contains("not configured: the instrument does not answer commands"), "{detail}");
    assert_eq!(sent(&mut session), r"*Q\rQ\r?&*Q\rQ\r?&*Q!");
    pass(&mut session, ms(36_000));
    assert!(sent(&mut session).starts_with("*Q"));
}

#[test]
fn an_instrument_that_falls_silent_is_configured_again() {
    let mut session = begin(Mode::Configure);
    for answer in [&b"CONFIGURATION MODE"[..], b"\r\nM2\r", b"P3\r", GOOD] {
        session.receive(ms(1), T0, answer);
    }
    sent(&mut session);
    pass(&mut session, ms(30_000));
    assert_eq!(state(&mut session).0, State::Silent);
    assert_eq!(sent(&mut session), "");
    pass(&mut session, ms(30_001));
    assert_eq!(sent(&mut session), "*Q");
}

#[test]
fn another_identifier_is_told_of_and_used() {
    let mut session = begin(Mode::Configure);
    pass(&mut session, ms(1000));
    for answer in ["W\r\n", "CONFIGURATION MODE", "\r\nM2\r", "P3\r"] {
        session.receive(ms(1100), T0, answer.as_bytes());
    }
    assert_eq!(sent(&mut session), r"*Q\rQ\r?&*WM2\rP3\rQ\r");
    assert!(state(&mut session).1.ends_with("; its identifier is W, not Q"));
}

#[test]
fn polling_asks_4_times_a_second_and_enables_polls_that_go_unanswered() {
    let mut session = begin(Mode::Polled);
    pass(&mut session, ms(1100));
    assert_eq!(sent(&mut session), "?Q");
    session.receive(ms(1110), T0, GOOD);
    pass(&mut session, ms(1350));
    assert_eq!(sent(&mut session), "Q");
    pass(&mut session, ms(1600));
    assert_eq!(sent(&mut session), "?Q");
    assert_eq!(session.poll_timeout(), Some(ms(1850)));
}

#[test]
fn polls_that_were_missed_are_not_made_up_for() {
    let mut session = begin(Mode::Polled);
    pass(&mut session, ms(1100));
    session.receive(ms(1110), T0, GOOD);
    sent(&mut session);
    session.handle_timeout(ms(2000));
    assert_eq!(sent(&mut session), "Q");
    assert_eq!(session.poll_timeout(), Some(ms(2100)));
}

#[test]
fn an_instrument_that_sends_by_itself_is_set_to_polled_mode() {
    let mut session = begin(Mode::Polled);
    session.receive(ms(400), T0, GOOD);
    assert_eq!(sent(&mut session), "*Q");
    session.receive(ms(410), T0, b"CONFIGURATION MODE\r\nM4\r\n");
    session.handle_timeout(ms(410));
    assert_eq!(sent(&mut session), r"M4\rQ\r?Q");
}

#[test]
fn an_instrument_that_answers_no_poll_is_set_to_polled_mode() {
    let mut session = begin(Mode::Polled);
    pass(&mut session, ms(3000));
    assert!(sent(&mut session).ends_with("?Q*Q"));
    assert_eq!(state(&mut session).0, State::Silent);
}

/// Returns a random stream of messages, texts and noise.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        3 => Just(GOOD.to_vec()),
        1 => Just(b"$WIMWV,229,R,002.74,M,A*06\r\n".to_vec()),
        1 => Just(b"CONFIGURATION MODE\r\nM2\r\n".to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..200),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_split_of_the_bytes_gives_the_same(
        stream in streams(), mut cuts: Vec<prop::sample::Index>,
        mode in prop::sample::select(vec![Mode::Listen, Mode::Configure, Mode::Polled]),
    ) {
        let mut whole = begin(mode);
        whole.receive(ms(1), T0, &stream);
        let mut pieces = begin(mode);
        let mut cuts: Vec<_> = cuts.drain(..).map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        for cut in cuts.windows(2) {
            pieces.receive(ms(1), T0, &stream[cut[0]..cut[1]]);
        }
        let only_lines = |session: &mut Session| {
            let mut outputs = outputs(session);
            outputs.retain(|output| !matches!(output, Output::State(..)));
            outputs
        };
        prop_assert_eq!(only_lines(&mut whole), only_lines(&mut pieces));
        // In polled mode, the first message starts a dialogue, which searches the rest of the same read for an answer.
        // Only this depends on the split.
        if mode != Mode::Polled {
            prop_assert_eq!(sent(&mut whole), sent(&mut pieces));
        }
    }

    #[test]
    fn whatever_comes_time_goes_on(
        steps in prop::collection::vec((streams(), 0_u64..4000), 0..8),
        mode in prop::sample::select(vec![Mode::Listen, Mode::Configure, Mode::Polled]),
    ) {
        let (mut session, mut now) = (begin(mode), 0);
        for (bytes, millis) in steps {
            session.receive(ms(now), T0, &bytes);
            session.handle_timeout(ms(now));
            now += millis;
            pass(&mut session, ms(now));
            let outputs = outputs(&mut session);
            prop_assert!(outputs.len() <= bytes.len() + 20);
            prop_assert!(sent(&mut session).len() <= 200);
        }
    }
}
