//! One end: the connection under test, the bytes on their way to it, and its model.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use anemone_proto::{
    CloseFrame, Config, Connection, Event, MaskKey, MessageKind, MisuseError, Output,
    ProtocolError, Sender, Time,
};
use arbitrary::{Arbitrary, Result, Unstructured};

use super::model::Model;
use crate::memory;
use crate::negotiated::{deflate_config, exchange, forget, negotiate, reset_codecs};
use crate::seen::{Collector, Seen, receive};

/// Flags (1 byte: bit 0 permessage-deflate, bit 1 codecs are not kept, bits 2 and 3 the client and the
/// server take pieces), limits and times of both ends (2 bytes each), and with permessage-deflate
/// what each end wants of it (2 bytes each).
pub(super) struct Setup(pub(super) [End; 2]);

impl<'a> Arbitrary<'a> for Setup {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        reset_codecs();
        let flags: u8 = u.arbitrary()?;
        let (for_client, for_server) = (config(u)?, config(u)?);
        let before = memory::live();
        let mut state = 1_u32;
        let keys = Box::new(move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            MaskKey(state.to_le_bytes())
        });
        let mut client = Connection::client(Arc::clone(&for_client), Time::ZERO, keys);
        let mut server = Connection::server(Arc::clone(&for_server), Time::ZERO);
        if flags & 1 != 0 {
            let (client_config, server_config) = (deflate_config(u)?, deflate_config(u)?);
            let (for_client, for_server) = negotiate(&client_config, &server_config);
            let lend = if flags & 2 == 0 { exchange } else { forget };
            client = client.with_deflate(&for_client, lend);
            server = server.with_deflate(&for_server, lend);
        }
        if flags & 4 != 0 {
            client.take_pieces();
        }
        if flags & 8 != 0 {
            server.take_pieces();
        }
        let held = memory::live() - before;
        let new = |connection, config, takes_pieces, held| End {
            connection,
            config,
            collector: Collector::default(),
            deflates: flags & 1 != 0,
            takes_pieces,
            link: VecDeque::new(),
            model: Model::default(),
            received_at: Time::ZERO,
            received_bytes: 0,
            held,
            queued_bytes_max: 0,
        };
        let client = new(client, for_client, flags & 4 != 0, held);
        Ok(Self([client, new(server, for_server, flags & 8 != 0, 0)]))
    }
}

fn config(u: &mut Unstructured<'_>) -> Result<Arc<Config>> {
    let [limits, times]: [u8; 2] = u.arbitrary()?;
    let bytes =
        |choice: u8| [16 << 20, 70_000, 65_535, 4096, 300, 125, 1, 0][usize::from(choice & 7)];
    let duration = |choice: u8, millis: [u64; 3]| match usize::from(choice & 3) {
        3 => Duration::MAX,
        choice => Duration::from_millis(millis[choice]),
    };
    Ok(Arc::new(Config {
        frame_bytes_max: bytes(limits),
        message_bytes_max: bytes(limits >> 3),
        fragments_max: [131_072, 5, 2, 1][usize::from(limits >> 6)],
        // The tests of the connection cover the time limit of messages.
        message_timeout: Duration::MAX,
        ping_interval: duration(times, [20_000, 1, 70_000]),
        idle_timeout: duration(times >> 2, [60_000, 1, 20_000]),
        close_timeout: duration(times >> 4, [5000, 0, 1]),
    }))
}

pub(super) struct End {
    connection: Connection,
    config: Arc<Config>,
    collector: Collector,
    deflates: bool,
    takes_pieces: bool,
    /// The bytes on their way to it.
    pub(super) link: VecDeque<u8>,
    pub(super) model: Model,
    received_at: Time,
    received_bytes: usize,
    /// The bytes that its connection has allocated and not freed.
    held: isize,
    /// Most bytes queued since the output was last empty.
    queued_bytes_max: usize,
}

impl End {
    /// Every call of the connection goes through here, so that all it allocates is counted.
    fn measured<T>(&mut self, work: impl FnOnce(&mut Connection) -> T) -> T {
        let before = memory::live();
        let done = work(&mut self.connection);
        self.held += memory::live() - before;
        done
    }

    fn queued_bytes(&mut self) -> usize {
        let queued = self.measured(|connection| connection.sender().queued_bytes());
        self.queued_bytes_max = if queued == 0 { 0 } else { self.queued_bytes_max.max(queued) };
        queued
    }

    pub(super) fn has_output(&mut self) -> bool {
        self.queued_bytes() > 0
    }

    /// Queues a frame with a payload of so many bytes. What is refused leaves nothing behind.
    pub(super) fn queue(
        &mut self,
        payload_bytes: usize,
        send: impl FnOnce(&mut Sender) -> std::result::Result<(), MisuseError>,
    ) -> std::result::Result<(), MisuseError> {
        let before = self.queued_bytes();
        let sent = self.measured(|connection| send(connection.sender()));
        let grown = self.queued_bytes() - before;
        let most = if sent.is_ok() { wire_bytes_max(payload_bytes, self.deflates) } else { 0 };
        assert!(grown <= most, "{payload_bytes} became {grown}");
        sent
    }

    pub(super) fn transmit(&mut self, len: usize) -> Vec<u8> {
        let before = self.queued_bytes();
        let queued = self.connection.sender().transmit();
        assert_eq!(queued.len(), before);
        let bytes = queued[..len.min(queued.len())].to_vec();
        self.measured(|connection| connection.sender().transmitted(bytes.len()));
        assert_eq!(self.queued_bytes(), before - bytes.len());
        bytes
    }

    pub(super) fn take_input(&mut self, len: usize) -> Vec<u8> {
        self.link.drain(..len.min(self.link.len())).collect()
    }

    pub(super) fn corrupt(&mut self, at: usize, by: u8) {
        if !self.link.is_empty() && by != 0 {
            let at = at % self.link.len();
            self.link[at] ^= by;
            self.model.is_tampered = true;
        }
    }

    pub(super) fn inject(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.link.extend(bytes);
            self.model.is_tampered = true;
        }
    }

    pub(super) fn receive(&mut self, now: Time, input: &mut [u8], peer: &mut Self) {
        self.note_input(now, input);
        let had_round_trip = self.connection.round_trip().is_some();
        for seen in receive(&mut self.connection, &mut self.collector, now, input) {
            self.came(&seen, peer);
        }
        self.held += std::mem::take(&mut self.collector.held);
        assert!(!had_round_trip || self.connection.round_trip().is_some(), "it is forgotten");
        self.check();
    }

    /// Receives as a driver does that lends its output buffer, and sends each message back.
    pub(super) fn echo(&mut self, now: Time, input: &mut [u8], peer: &mut Self) {
        self.note_input(now, input);
        let mut output = Some(Box::<Output>::default());
        if let Some(output) = &mut output {
            output.lend(input);
        }
        self.measured(|connection| connection.sender().exchange_output(&mut output));
        assert!(output.is_none(), "output was left in the connection");
        let mut at = 0;
        while at < input.len() {
            let before = memory::live();
            let received = self.connection.receive(now, &mut input[at..]);
            self.held += memory::live() - before;
            at += received.consumed;
            let message = match &received.event {
                Some(Event::Message(message)) => Some(*message),
                _ => None,
            };
            let before = memory::live();
            let sent = message.map(|message| received.sender.send(message));
            self.held += memory::live() - before;
            let seen = received.event.and_then(|event| self.collector.take(event));
            let Some(seen) = seen else { continue };
            self.came(&seen, peer);
            if let (Some(Ok(())), Seen::Message(kind, bytes)) = (sent, seen) {
                peer.expect_message(kind, bytes, 1);
            }
        }
        self.measured(|connection| connection.sender().exchange_output(&mut output));
        let Some(mut output) = output else { panic!("the lent output is gone") };
        let before = peer.link.len();
        output.slices(input).for_each(|slice| peer.link.extend(slice));
        assert_eq!(peer.link.len() - before, output.len());
        // It does not belong to the connection, but its memory was counted there.
        let held = memory::live();
        output.clear(0);
        self.held += memory::live() - held;
        self.check();
    }

    pub(super) fn handle_timeout(&mut self, now: Time, peer: &mut Self) {
        let due = self.connection.poll_timeout();
        let queued = self.queued_bytes();
        let was_closed = self.connection.is_closed();
        let event = self.measured(|connection| connection.handle_timeout(now));
        let has_queued = self.queued_bytes() > queued;
        let is_closed = self.connection.is_closed();
        let is_due = due.is_some_and(|due| due <= now);
        let has_acted = event.is_some() || has_queued || is_closed != was_closed;
        assert!(is_due || !has_acted, "acted before it was due");
        match event {
            Some(Event::Failed(error)) => {
                let millis = self.config.idle_timeout.as_millis();
                assert_eq!(error, ProtocolError::IdleTimeout { millis });
                assert!(now.since(self.received_at) >= self.config.idle_timeout);
                self.model.is_ended = true;
                self.failed(&error, peer);
            }
            Some(event) => panic!("{event:?} out of nothing"),
            None if has_queued => peer.model.expect_control(true, &now.as_millis().to_be_bytes()),
            None if is_closed && !was_closed => {
                assert!(self.model.is_closing);
                self.model.is_ended = true;
            }
            None => {}
        }
        let next = self.connection.poll_timeout();
        assert_eq!(next.is_none(), is_closed);
        // The wait for the peer's close frame begins here, and may be over at once.
        let is_over = self.model.is_closing && self.config.close_timeout.is_zero();
        assert!(is_over || next.is_none_or(|next| next > now), "due again at once");
        self.check();
    }

    pub(super) fn progressed(&mut self, now: Time) {
        self.measured(|connection| connection.progressed(now));
        self.received_at = now;
    }

    /// A message is on its way.
    pub(super) fn expect_message(&mut self, kind: MessageKind, bytes: Vec<u8>, fragments: u32) {
        self.note_limits(bytes.len(), bytes.len(), fragments);
        self.model.expect(Seen::Message(kind, bytes));
    }

    /// So much of a message is on its way; none of its frames has a longer payload than this.
    pub(super) fn note_limits(&mut self, bytes: usize, frame_bytes: usize, fragments: u32) {
        let frame_bytes = match self.deflates {
            true => wire_bytes_max(frame_bytes, true),
            false => frame_bytes,
        };
        self.model.may_fail |= bytes as u64 > self.config.message_bytes_max
            || frame_bytes as u64 > self.config.frame_bytes_max
            || fragments > self.config.fragments_max;
    }

    pub(super) fn check_all_came(&self) {
        self.model.check_all_came();
    }

    fn note_input(&mut self, now: Time, input: &[u8]) {
        if !input.is_empty() {
            self.received_at = now;
            self.received_bytes += input.len();
        }
    }

    /// Something came, and maybe it is answered.
    fn came(&mut self, seen: &Seen, peer: &mut Self) {
        self.model.came(seen);
        match seen {
            Seen::Message(_, bytes) => {
                assert!(bytes.len() as u64 <= self.config.message_bytes_max);
            }
            Seen::Ping(payload) if !self.model.is_closing => {
                peer.model.expect_control(false, payload);
            }
            Seen::Close(frame) if !self.model.is_closing => {
                let answer = frame.as_ref().map(|frame| CloseFrame::new(frame.code, ""));
                peer.model.expect_close(answer);
                self.model.is_closing = true;
            }
            Seen::Failed(error) => self.failed(error, peer),
            Seen::Ping(_) | Seen::Pong(_) | Seen::Close(_) => {}
        }
    }

    fn failed(&mut self, error: &ProtocolError, peer: &mut Self) {
        if !self.model.is_closing {
            let frame = CloseFrame::new(error.close_code(), &error.to_string());
            peer.model.expect_close(Some(frame));
            self.model.is_closing = true;
        }
    }

    fn check(&mut self) {
        assert_eq!(self.connection.is_closed(), self.model.is_ended);
        let is_closing = self.measured(|connection| connection.sender().is_closing());
        assert_eq!(is_closing, self.model.is_closing);
    }

    /// Most that it may hold.
    fn bound(&mut self) -> usize {
        self.queued_bytes();
        // Room for the queued bytes, for as many that are written and not yet removed, and for spare capacity.
        let output = 4 * self.queued_bytes_max;
        let is_collected = !self.takes_pieces || self.deflates;
        let input = if !(is_collected && self.connection.is_amid_message()) {
            0
        } else {
            // A first megabyte of a frame is believed.
            let came = if self.deflates { usize::MAX } else { self.received_bytes + (1 << 20) };
            2 * usize::try_from(self.config.message_bytes_max).unwrap_or(usize::MAX).min(came)
        };
        let codecs = if self.deflates { CODECS_BYTES_MAX } else { 0 };
        output + input + codecs + CONNECTION_BYTES_MAX
    }
}

/// The most bytes that a connection allocates besides: its boxed parts, a partial control frame, and the least
/// capacity of vectors.
const CONNECTION_BYTES_MAX: usize = 8 << 10;
/// Two compressors and two inflaters, one pair its own and one for the thread, and a buffer.
const CODECS_BYTES_MAX: usize = 2 * (270 << 10) + 2 * (48 << 10) + (64 << 10);

/// A frame with this payload takes at most this many bytes: a header, and what compression costs
/// where it is of no use.
fn wire_bytes_max(payload_bytes: usize, deflates: bool) -> usize {
    let compression = if deflates { payload_bytes / 8 + 16 } else { 0 };
    payload_bytes + anemone_proto::HEADER_BYTES_MAX + compression
}

/// Together, since they share the codecs of the thread.
pub(super) fn check_memory(ends: &mut [End; 2]) {
    // First, since that has the last message forgotten.
    let bound: usize = ends.iter_mut().map(End::bound).sum();
    let held: isize = ends.iter().map(|end| end.held).sum();
    assert!(held <= bound as isize, "{held} bytes held, at most {bound} expected");
}
