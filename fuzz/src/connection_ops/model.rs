//! The model of an end: the items it must receive, and its permitted behaviour.

use std::collections::VecDeque;

use anemone_proto::{CloseFrame, MessageKind, ProtocolError};

use crate::seen::Seen;

/// One end as it should be.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// The items that are on their way to it, or wait at its peer.
    expected: VecDeque<Seen>,
    /// Foreign bytes came among those of its peer: anything may arrive.
    pub(super) is_tampered: bool,
    /// Its peer has sent more than its limits allow, and it may fail.
    pub(super) may_fail: bool,
    /// The message that it is sending in fragments.
    pub(super) fragmented: Option<Fragmented>,
    /// It has queued a close frame.
    pub(super) is_closing: bool,
    /// It has seen the end.
    pub(super) is_ended: bool,
}

/// A message that is being sent in fragments.
#[derive(Clone, Debug)]
pub(super) struct Fragmented {
    pub(super) kind: MessageKind,
    pub(super) bytes: Vec<u8>,
    pub(super) fragments: u32,
}

impl Fragmented {
    pub(super) fn new(kind: MessageKind) -> Self {
        Self { kind, bytes: Vec::new(), fragments: 0 }
    }

    pub(super) fn add(&mut self, payload: &[u8]) {
        self.bytes.extend_from_slice(payload);
        self.fragments += 1;
    }
}

impl Model {
    pub(super) fn expect(&mut self, seen: Seen) {
        self.expected.push_back(seen);
    }

    pub(super) fn expect_control(&mut self, is_ping: bool, payload: &[u8]) {
        let payload = payload.to_vec();
        self.expect(if is_ping { Seen::Ping(payload) } else { Seen::Pong(payload) });
    }

    pub(super) fn expect_close(&mut self, frame: Option<CloseFrame>) {
        self.expect(Seen::Close(frame));
    }

    /// Handles a received item: it must be the next one that was sent.
    pub(super) fn came(&mut self, seen: &Seen) {
        assert!(!self.is_ended, "{seen:?} after the end");
        self.is_ended = seen.is_end();
        if self.is_tampered {
            return;
        }
        if let Seen::Failed(error) = seen {
            let is_limit = matches!(
                error,
                ProtocolError::FrameTooBig { .. }
                    | ProtocolError::MessageTooBig { .. }
                    | ProtocolError::InflatedTooBig { .. }
                    | ProtocolError::TooManyFragments { .. }
            );
            assert!(is_limit && self.may_fail, "failed without a fault of its peer: {error}");
            return;
        }
        assert_eq!(Some(seen), self.expected.pop_front().as_ref());
    }

    /// Nothing is under way any more.
    pub(super) fn check_all_came(&self) {
        let is_over = self.is_ended || self.is_tampered || self.expected.is_empty();
        assert!(is_over, "never came: {:?}", self.expected);
    }
}
