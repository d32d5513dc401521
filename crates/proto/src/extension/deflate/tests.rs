use proptest::prelude::*;

use super::*;

const LEVEL: CompressionLevel = CompressionLevel::BALANCED;

/// Inflates all of a piece, without a pause.
fn push(
    inflater: &mut Inflater,
    piece: &[u8],
    output: &mut Vec<u8>,
    most: usize,
) -> Result<(), InflateError> {
    if piece.is_empty() {
        return Ok(());
    }
    let (used, pushed) = inflater.push(piece, output, Bounds { pause: usize::MAX, most });
    assert_eq!(pushed?, Pushed::All);
    assert_eq!(used, piece.len());
    Ok(())
}

fn inflate(inflater: &mut Inflater, payload: &[u8]) -> Result<Vec<u8>, InflateError> {
    let mut output = Vec::new();
    push(inflater, payload, &mut output, 1 << 20)?;
    inflater.finish()?;
    Ok(output)
}

fn compress(compressor: &mut Compressor, message: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    let len = compressor.compress(message, &mut output);
    let len = Compressor::end(&mut output, len);
    output.truncate(len);
    output
}

/// Zeros, compressed to about a thousandth.
fn bomb(len: usize) -> Vec<u8> {
    compress(&mut Compressor::new(CompressionLevel::SMALLEST, WindowBits::MAX), &vec![0; len])
}

#[test]
fn the_examples_of_section_7_2_3_inflate() {
    for payload in [
        &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00][..], // 7.2.3.1, one block
        &[0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00], // 7.2.3.3, stored
        &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00], // 7.2.3.4, BFINAL
        &[0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00], // 7.2.3.5
    ] {
        let inflated = inflate(&mut Inflater::default(), payload);
        assert_eq!(inflated.as_deref(), Ok(&b"Hello"[..]), "{payload:x?}");
    }
    let empty = inflate(&mut Inflater::default(), &[0x00]); // 7.2.3.6
    assert_eq!(empty.as_deref(), Ok(&b""[..]));
}

#[test]
fn the_window_is_shared_as_section_7_2_3_2_shows() {
    let mut compressor = Compressor::new(LEVEL, WindowBits::MAX);
    let mut inflater = Inflater::default();
    for expected in
        [&[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00][..], &[0xf2, 0x00, 0x11, 0x00, 0x00]]
    {
        assert_eq!(compress(&mut compressor, b"Hello"), expected);
        assert_eq!(inflate(&mut inflater, expected).as_deref(), Ok(&b"Hello"[..]));
    }
    // Without the first message the second means nothing.
    inflater.restart();
    let second = inflate(&mut inflater, &[0xf2, 0x00, 0x11, 0x00, 0x00]);
    assert_eq!(second, Err(InflateError::Invalid));
}

#[test]
fn an_empty_message_is_a_zero_byte_first_and_later() {
    // section 7.2.3.6
    let mut compressor = Compressor::new(LEVEL, WindowBits::MAX);
    let mut inflater = Inflater::default();
    for message in [&b""[..], b"", b"something", b"", b"something", b""] {
        let payload = compress(&mut compressor, message);
        assert!(!message.is_empty() || payload == [0x00], "{payload:x?}");
        assert_eq!(inflate(&mut inflater, &payload).as_deref(), Ok(message));
    }
}

#[test]
fn a_stream_that_ends_is_followed_by_another() {
    // section 7.2.1: any number of blocks may have BFINAL set
    let hello = [0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
    let mut inflater = Inflater::default();
    for _ in 0..3 {
        let twice = [&hello[..], &hello, &[0x00]].concat();
        assert_eq!(inflate(&mut inflater, &twice).as_deref(), Ok(&b"HelloHello"[..]));
        // Some peers leave out the empty block after the last one, or the block of nothing.
        assert_eq!(inflate(&mut inflater, &hello).as_deref(), Ok(&b"Hello"[..]));
        assert_eq!(inflate(&mut inflater, &[0x03, 0x00]).as_deref(), Ok(&b""[..]));
        assert_eq!(inflate(&mut inflater, &[]).as_deref(), Ok(&b""[..]));
        // An empty block that is the last one is an empty block.
        assert_eq!(inflate(&mut inflater, &[0x01]).as_deref(), Ok(&b""[..]));
    }
}

#[test]
fn a_message_that_is_cut_short_is_not_taken_for_a_whole_one() {
    let text = b"the quick brown fox jumps over the lazy dog; the lazy dog sleeps on";
    let whole = compress(&mut Compressor::new(LEVEL, WindowBits::MAX), text);
    let stored = [0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00];
    for payload in [&whole[..], &stored] {
        // One byte of the second is the empty message.
        for len in 2..payload.len() {
            let cut = inflate(&mut Inflater::default(), &payload[..len]);
            assert_eq!(cut, Err(InflateError::Invalid), "{len} bytes of {payload:x?}");
        }
        // Nor is one whose tail was left in place.
        let with_tail = [payload, &TAIL].concat();
        let inflated = inflate(&mut Inflater::default(), &with_tail);
        assert_eq!(inflated, Err(InflateError::Invalid), "{payload:x?}");
    }
}

#[test]
fn a_bomb_is_stopped_at_the_limit_and_takes_no_more_memory() {
    let payload = bomb(8 << 20);
    assert!(payload.len() < 9 << 10, "{}", payload.len());
    for limit in [0, 1, 100, 1000, 1 << 16, (1 << 20) + 1] {
        for piece in [1, 1000, payload.len()] {
            let mut inflater = Inflater::default();
            let mut output = Vec::new();
            let mut pieces = payload.chunks(piece);
            let error =
                pieces.find_map(|piece| push(&mut inflater, piece, &mut output, limit).err());
            assert_eq!(error, Some(InflateError::TooLong));
            assert_eq!(output.len(), limit);
            assert!(output.capacity() <= limit.max(Inflater::BLOCK_BYTES_MIN) + 1);
            assert!(inflater.stream.total_out() <= limit as u64 + 1);
        }
    }
}

#[test]
fn a_message_above_the_limit_is_too_long_whatever_follows_in_the_same_piece() {
    // A stored block of one byte, and one of the type that there is not.
    let payload = [0x00, 0x01, 0x00, 0xfe, 0xff, b'a', 0x07];
    for piece in [1, 6, 7] {
        let (mut inflater, mut output) = (Inflater::default(), Vec::new());
        let mut pieces = payload.chunks(piece);
        let error = pieces.find_map(|piece| push(&mut inflater, piece, &mut output, 0).err());
        assert_eq!((error, output.len()), (Some(InflateError::TooLong), 0), "{piece} at a time");
    }
}

#[test]
fn a_message_may_have_exactly_the_length_of_the_limit() {
    for len in [0, 1, 255, 256, 257, 16_384, 100_000] {
        let payload = bomb(len);
        let mut output = Vec::new();
        let mut inflater = Inflater::default();
        push(&mut inflater, &payload, &mut output, len).unwrap();
        inflater.finish().unwrap();
        assert_eq!(output.len(), len);
    }
}

#[test]
fn what_does_not_get_smaller_is_given_up_and_the_compressor_goes_on_after_a_reset() {
    let mut state = 1_u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    let noise: Vec<u8> = noise.take(10_000).collect();
    let mut codecs = Codecs::new();
    let mut compressor = codecs.take_compressor(LEVEL, WindowBits::MIN);
    assert_eq!(compressor.compress_within(&noise, &mut codecs.output, noise.len() + 3), None);
    codecs.keep_compressor(compressor);
    let mut compressor = codecs.take_compressor(LEVEL, WindowBits::MIN);
    assert_eq!(compress(&mut compressor, b"Hello"), [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00]);
}

#[test]
fn a_message_given_up_half_way_leaves_nothing_behind_for_the_next() {
    // zlib-rs 0.6.8 panics at the second message when the compressor of the first is reset.
    let mut state = 1_u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    let noise: Vec<u8> = noise.take(62_000).collect();
    for level in [CompressionLevel::FASTEST, LEVEL] {
        for len in [4000, 8000, 16_000, 32_000, 62_000] {
            let mut codecs = Codecs::new();
            let mut compressor = codecs.take_compressor(level, WindowBits::MAX);
            let first = compressor.compress_within(&noise[..len], &mut codecs.output, len + 3);
            assert_eq!(first, None);
            codecs.keep_compressor(compressor);
            let mut compressor = codecs.take_compressor(level, WindowBits::MAX);
            let payload = compress(&mut compressor, &noise);
            assert_eq!(inflate(&mut Inflater::default(), &payload), Ok(noise.clone()));
        }
    }
}

#[test]
fn a_thread_keeps_one_compressor_for_each_window() {
    let mut codecs = Codecs::new();
    for bits in (9..=15).chain(9..=15) {
        for level in [CompressionLevel::FASTEST, LEVEL] {
            let window = WindowBits::new(bits).unwrap();
            let first = codecs.take_compressor(level, window);
            let second = codecs.take_compressor(level, window);
            codecs.keep_compressor(first);
            codecs.keep_compressor(second);
        }
    }
    assert_eq!(codecs.compressors.len(), 7);
}

#[test]
fn codecs_may_go_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<Codecs>();
    is_send::<crate::Connection>();
}

fn any_message() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(Vec::new()),
        prop::collection::vec(any::<u8>(), 0..2000),
        prop::collection::vec(0_u8..4, 0..5000),
        (any::<u8>(), 0..50_000_usize).prop_map(|(byte, len)| vec![byte; len]),
        "[ a-f\":,{}]{0,300}".prop_map(String::into_bytes),
    ]
}

proptest! {
    #[test]
    fn inflating_undoes_compressing_with_every_window_and_level(
        messages in prop::collection::vec(any_message(), 0..6),
        bits in 9..=15_u8,
        level in 1..=9_u8,
        takes_over: bool,
    ) {
        let window = WindowBits::new(bits).unwrap();
        let mut codecs = Codecs::new();
        let mut compressor = codecs.take_compressor(CompressionLevel::new(level).unwrap(), window);
        let mut inflater = codecs.take_inflater();
        for message in &messages {
            if !takes_over {
                compressor.stream.reset();
                inflater.restart();
            }
            let payload = compress(&mut compressor, message);
            prop_assert_eq!(&inflate(&mut inflater, &payload), &Ok(message.clone()));
        }
    }

    #[test]
    fn any_split_of_any_payload_inflates_to_the_same(
        payload in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..300),
            any_message().prop_map(|message| compress(&mut Compressor::new(LEVEL, WindowBits::MAX), &message)),
            // Headers of blocks, for the most part.
            prop::collection::vec(prop_oneof![Just(0x00_u8), Just(0x03), Just(0xff), Just(0x01), 0..8_u8], 0..40),
        ],
        cut in any::<prop::sample::Index>(),
        limit in prop_oneof![0..300_usize, Just(1 << 20)],
    ) {
        let run = |pieces: &[&[u8]]| {
            let mut inflater = Inflater::default();
            let mut output = Vec::new();
            let pushed = pieces.iter().try_for_each(|piece| push(&mut inflater, piece, &mut output, limit));
            let result = pushed.and_then(|()| inflater.finish());
            (result, output)
        };
        let expected = run(&[&payload]);
        prop_assert!(expected.1.len() <= limit);
        prop_assert_eq!(&run(&payload.chunks(1).collect::<Vec<_>>()), &expected);
        let (a, b) = payload.split_at(cut.index(payload.len() + 1));
        prop_assert_eq!(&run(&[a, b]), &expected);
    }
}
