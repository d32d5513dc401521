//! Time-outs: pongs, bytes, the end of a message and the answer to a close frame that come too late.

use super::*;

#[test]
fn a_quiet_peer_is_pinged_and_then_given_up() {
    let mut server = server();
    let second = |second: u64| Time::from_millis(second * 1000);
    assert_eq!(server.poll_timeout(), Some(second(20)));
    assert_eq!(server.handle_timeout(second(19)), None);
    assert_eq!(transmit(&mut server), [0_u8; 0]);
    for due in [20, 40] {
        assert_eq!(server.poll_timeout(), Some(second(due)));
        assert_eq!(server.handle_timeout(second(due)), None);
        assert_eq!(transmit(&mut server)[0], 0x89);
    }
    assert_eq!(server.poll_timeout(), Some(second(60)));
    let error = ProtocolError::IdleTimeout { millis: 60_000 };
    assert_eq!(server.handle_timeout(second(60)), Some(Event::Failed(error)));
    assert_eq!(server.poll_timeout(), None);
}

#[test]
fn pings_without_a_pause_come_a_millisecond_apart() {
    let config = Config { ping_interval: Duration::ZERO, ..Config::default() };
    let mut server = server_with(config);
    for millis in 1..4 {
        assert_eq!(server.poll_timeout(), Some(Time::from_millis(millis)));
        server.handle_timeout(Time::from_millis(millis));
        assert_eq!(transmit(&mut server)[0], 0x89);
    }
}

#[test]
fn a_pong_tells_the_round_trip_and_any_byte_keeps_the_peer_alive() {
    let mut server = server();
    server.handle_timeout(Time::from_millis(20_000));
    let mut pong = masked(Opcode::Pong, &transmit(&mut server)[2..]);
    let round_trip = Some(Duration::from_millis(34));
    match server.receive(Time::from_millis(20_034), &mut pong).event {
        Some(Event::Pong { round_trip: told, .. }) => assert_eq!(told, round_trip),
        other => panic!("{other:?}"),
    }
    assert_eq!(server.round_trip(), round_trip);
    assert_eq!(server.poll_timeout(), Some(Time::from_millis(40_034)));
}

#[test]
fn a_pong_that_carries_something_else_answers_no_ping_of_ours() {
    // section 5.5.3
    let mut server = server();
    server.handle_timeout(Time::from_millis(20_000));
    let answer = transmit(&mut server)[2..].to_vec();
    for payload in [&b""[..], b"?", &answer[1..]] {
        server.receive(Time::from_millis(20_001), &mut masked(Opcode::Pong, payload));
        assert_eq!(server.round_trip(), None);
    }
    server.receive(Time::from_millis(20_034), &mut masked(Opcode::Pong, &answer));
    assert_eq!(server.round_trip(), Some(Duration::from_millis(34)));
}

#[test]
fn a_pong_that_nobody_asked_for_leaves_the_round_trip_as_it_was() {
    // section 5.5.3
    let mut server = server();
    server.handle_timeout(Time::from_millis(20_000));
    let answer = transmit(&mut server)[2..].to_vec();
    for millis in [20_034, 20_500] {
        server.receive(Time::from_millis(millis), &mut masked(Opcode::Pong, &answer));
        assert_eq!(server.round_trip(), Some(Duration::from_millis(34)));
    }
}

#[test]
fn a_peer_that_never_answers_a_close_frame_is_waited_for_so_long() {
    // section 7.1.1
    let mut server = server();
    server.sender().close(None).unwrap();
    server.handle_timeout(Time::from_millis(1000));
    assert_eq!(server.poll_timeout(), Some(Time::from_millis(6000)));
    server.handle_timeout(Time::from_millis(5999));
    assert!(!server.is_closed());
    server.handle_timeout(Time::from_millis(6000));
    assert!(server.is_closed());
}

#[test]
fn a_message_has_only_so_long_however_often_a_byte_of_it_comes() {
    for take_pieces in [false, true] {
        for control in [&b""[..], &masked(Opcode::Ping, b"hi")] {
            let mut server = server();
            if take_pieces {
                server.take_pieces();
            }
            let second = |second: u64| Time::from_millis(1000 * second);
            let mut begin = masked(Opcode::Binary, &[0; 1000])[..10].to_vec();
            if !control.is_empty() {
                begin = fragment(false, Opcode::Binary, b"");
            }
            server.receive(second(7), &mut begin);
            let mut failed = None;
            for now in 8..400 {
                let mut next = if control.is_empty() { b"x".to_vec() } else { control.to_vec() };
                server.receive(second(now), &mut next);
                server.sender().transmitted(usize::MAX);
                if server.handle_timeout(second(now)).is_some() {
                    failed = Some(now);
                    break;
                }
            }
            assert_eq!(failed, Some(37));
        }
    }
}
