use super::super::parse;
use super::*;

fn bits(bits: u8) -> WindowBits {
    WindowBits::new(bits).unwrap()
}

fn with_takeover() -> DeflateConfig {
    DeflateConfig {
        own_context_takeover: true,
        peer_context_takeover: true,
        ..DeflateConfig::default()
    }
}

fn accepted(offers: &str, config: &DeflateConfig) -> Option<NegotiatedDeflate> {
    accept(&parse([offers.as_bytes()].into_iter()).unwrap(), config)
}

fn response(offers: &str, config: &DeflateConfig) -> Option<String> {
    accepted(offers, config).map(|negotiated| negotiated.to_string())
}

fn checked(response: &str, config: &DeflateConfig) -> Result<NegotiatedDeflate, ParameterError> {
    check(&parse([response.as_bytes()].into_iter()).unwrap()[0], config)
}

#[test]
fn a_server_answers_each_parameter() {
    let small =
        DeflateConfig { own_window_bits: bits(12), peer_window_bits: bits(11), ..with_takeover() };
    let cases = [
        (with_takeover(), "permessage-deflate", "permessage-deflate"),
        // Section 7.1.1.1: accepted by repeating it, and allowed unasked.
        (
            with_takeover(),
            "permessage-deflate; server_no_context_takeover",
            "permessage-deflate; server_no_context_takeover",
        ),
        (
            DeflateConfig::default(),
            "permessage-deflate; client_max_window_bits",
            "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
        ),
        // Section 7.1.1.2: the client's own limit applies.
        (
            with_takeover(),
            "permessage-deflate; client_no_context_takeover",
            "permessage-deflate; client_no_context_takeover",
        ),
        // Section 7.1.2.1: the same or smaller.
        (
            with_takeover(),
            "permessage-deflate; server_max_window_bits=10",
            "permessage-deflate; server_max_window_bits=10",
        ),
        (
            small.clone(),
            "permessage-deflate; server_max_window_bits=\"15\"",
            "permessage-deflate; server_max_window_bits=12",
        ),
        // Section 7.1.2.2: only when it was offered; the same or smaller.
        (small.clone(), "permessage-deflate", "permessage-deflate"),
        (
            small.clone(),
            "permessage-deflate; client_max_window_bits",
            "permessage-deflate; client_max_window_bits=11",
        ),
        (
            small.clone(),
            "permessage-deflate; client_max_window_bits=8",
            "permessage-deflate; client_max_window_bits=8",
        ),
        (
            small,
            "permessage-deflate; client_max_window_bits=11",
            "permessage-deflate; client_max_window_bits=11",
        ),
    ];
    for (config, offers, expected) in cases {
        assert_eq!(response(offers, &config).as_deref(), Some(expected), "{offers}");
    }
}

#[test]
fn a_server_honours_what_it_answered() {
    let config = DeflateConfig { own_window_bits: bits(12), ..with_takeover() };
    let plain = accepted("permessage-deflate", &config).unwrap();
    // Left out, since a smaller window is always understood.
    assert_eq!(plain.own_window_bits, Some(bits(12)));
    assert!(plain.own_context_takeover() && plain.peer_context_takeover());
    let offer = "permessage-deflate; server_no_context_takeover; server_max_window_bits=9";
    let limited = accepted(offer, &config).unwrap();
    assert_eq!(limited.own_window_bits, Some(bits(9)));
    assert!(!limited.own_context_takeover() && limited.peer_context_takeover());
    let offer = "permessage-deflate; client_no_context_takeover";
    assert!(!accepted(offer, &config).unwrap().peer_context_takeover());
}

#[test]
fn an_offer_that_cannot_be_accepted_is_declined() {
    // Section 7.1
    for parameters in [
        "foo",
        "foo=1",
        "server_no_context_takeover=1",
        "client_no_context_takeover=true",
        "server_max_window_bits",
        "server_max_window_bits=7",
        "server_max_window_bits=16",
        "server_max_window_bits=010",
        "server_max_window_bits=+9",
        "client_max_window_bits=x",
        "client_max_window_bits=100",
        "client_max_window_bits; client_max_window_bits=10",
        "server_no_context_takeover; server_no_context_takeover",
        // Valid, but zlib cannot compress with 256 bytes of window.
        "server_max_window_bits=8",
    ] {
        let offer = format!("permessage-deflate; {parameters}");
        assert_eq!(response(&offer, &with_takeover()), None, "{offer}");
        // The next one is examined, and unknown extensions are skipped.
        let offers = format!("x-other; a=b, {offer}, permessage-deflate, permessage-deflate; foo");
        assert_eq!(response(&offers, &with_takeover()).as_deref(), Some(NAME), "{offers}");
    }
    assert_eq!(response("", &with_takeover()), None);
    assert_eq!(response("x-webkit-deflate-frame", &with_takeover()), None);
}

#[test]
fn the_first_offer_wins() {
    // Section 5.1: "in order of preference"
    let offers = "permessage-deflate; server_max_window_bits=10, permessage-deflate";
    let expected = "permessage-deflate; server_max_window_bits=10";
    assert_eq!(response(offers, &with_takeover()).as_deref(), Some(expected));
}

#[test]
fn a_client_offers_what_it_wants() {
    let small =
        DeflateConfig { own_window_bits: bits(10), peer_window_bits: bits(9), ..with_takeover() };
    for (config, expected) in [
        (
            DeflateConfig::default(),
            "permessage-deflate; server_no_context_takeover; client_no_context_takeover; \
             client_max_window_bits",
        ),
        (with_takeover(), "permessage-deflate; client_max_window_bits"),
        (small, "permessage-deflate; server_max_window_bits=9; client_max_window_bits=10"),
    ] {
        assert_eq!(offer(&config), expected);
    }
}

#[test]
fn a_client_refuses_each_wrong_response() {
    // Section 7.1
    let value = |name: &str, value: Option<&str>| ParameterError::Value {
        name: name.into(),
        value: value.map(Into::into),
    };
    let small =
        DeflateConfig { own_window_bits: bits(10), peer_window_bits: bits(9), ..with_takeover() };
    let too_large = |name, bits, limit| ParameterError::WindowTooLarge { name, bits, limit };
    let cases = [
        (with_takeover(), "foo", ParameterError::Unknown { name: "foo".into() }),
        // Section 7.1.2.2: without a value only in an offer.
        (with_takeover(), "client_max_window_bits", value(CLIENT_MAX_WINDOW_BITS, None)),
        (with_takeover(), "server_max_window_bits=16", value(SERVER_MAX_WINDOW_BITS, Some("16"))),
        (
            with_takeover(),
            "server_no_context_takeover=1",
            value(SERVER_NO_CONTEXT_TAKEOVER, Some("1")),
        ),
        (
            with_takeover(),
            "server_max_window_bits=9; server_max_window_bits=9",
            ParameterError::Repeated { name: SERVER_MAX_WINDOW_BITS.into() },
        ),
        (
            DeflateConfig::default(),
            "client_no_context_takeover",
            ParameterError::ContextTakeoverKept,
        ),
        (small.clone(), "server_max_window_bits=10", too_large(SERVER_MAX_WINDOW_BITS, 10, 9)),
        (small, "client_max_window_bits=9", too_large(SERVER_MAX_WINDOW_BITS, 15, 9)),
    ];
    for (config, parameters, error) in cases {
        let response = format!("permessage-deflate; {parameters}");
        assert_eq!(checked(&response, &config), Err(error), "{response}");
    }
}

#[test]
fn a_client_honours_the_response() {
    let config = with_takeover();
    let plain = checked("permessage-deflate", &config).unwrap();
    assert_eq!(plain.own_window_bits, Some(WindowBits::MAX));
    assert!(plain.own_context_takeover() && plain.peer_context_takeover());
    // Sections 7.1.1.1 and 7.1.2.1: sent without a request.
    let response = "permessage-deflate; server_no_context_takeover; server_max_window_bits=8";
    assert!(!checked(response, &config).unwrap().peer_context_takeover());
    let response = "permessage-deflate; client_no_context_takeover; client_max_window_bits=9";
    let limited = checked(response, &config).unwrap();
    assert_eq!(limited.own_window_bits, Some(bits(9)));
    assert!(!limited.own_context_takeover());
    // With 256 bytes of window nothing can be compressed, which is allowed.
    let tiny = checked("permessage-deflate; client_max_window_bits=8", &config).unwrap();
    assert_eq!(tiny.own_window_bits, None);
}

#[test]
fn a_server_may_ignore_what_the_client_says_of_its_own_window() {
    // Section 7.1.2.2: "the server may either ignore this value or use this value".
    let config = DeflateConfig { own_window_bits: bits(10), ..with_takeover() };
    for (answered, used) in [(9, 9), (10, 10), (11, 10), (15, 10)] {
        let response = format!("permessage-deflate; client_max_window_bits={answered}");
        assert_eq!(checked(&response, &config).unwrap().own_window_bits, Some(bits(used)));
    }
}

#[test]
fn a_client_and_a_server_of_ours_always_agree() {
    let configs = || {
        let flags = [false, true];
        let windows = [9, 11, 15].map(bits);
        windows.into_iter().flat_map(move |own| {
            windows.into_iter().flat_map(move |peer| {
                flags.into_iter().flat_map(move |mine| {
                    flags.into_iter().map(move |theirs| DeflateConfig {
                        own_window_bits: own,
                        peer_window_bits: peer,
                        own_context_takeover: mine,
                        peer_context_takeover: theirs,
                        ..DeflateConfig::default()
                    })
                })
            })
        })
    };
    for client in configs() {
        for server in configs() {
            let answer = accepted(&offer(&client), &server).unwrap();
            let result = checked(&answer.to_string(), &client).unwrap();
            assert!(!result.own_context_takeover || answer.peer_context_takeover);
            assert!(!answer.own_context_takeover || result.peer_context_takeover);
            assert!(
                result.own_window_bits <= Some(client.own_window_bits.min(server.peer_window_bits))
            );
            assert!(
                answer.own_window_bits <= Some(server.own_window_bits.min(client.peer_window_bits))
            );
        }
    }
}
