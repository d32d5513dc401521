//! The operations on one end. Each is one byte and its arguments.

use anemone_proto::{CloseCode, CloseFrame};
use arbitrary::{Arbitrary, Result, Unstructured};

use crate::payload::{Cuts, Payload, short};

/// An operation of one end.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// 0: sends a message.
    Send(Payload),
    /// 1: sends a fragment, the last one or not.
    Fragment(Payload, bool),
    /// 2: sends a message in fragments that are cut anywhere.
    Fragments(Payload, Cuts),
    /// 3: sends a ping, whose length is in the next byte.
    Ping(Vec<u8>),
    /// 4: sends a pong, likewise.
    Pong(Vec<u8>),
    /// 5: begins the closing handshake. A code that does not exist stands for none.
    Close(Option<CloseFrame>),
    /// 6: writes so many bytes to its stream.
    Transmit(u16),
    /// 7: receives so many bytes.
    Receive(u16),
    /// 8: the peer writes all it has and this end receives it, so many bytes at a time.
    Exchange(u8),
    /// 9: a byte on its way to this end is changed.
    Corrupt { at: u16, by: u8 },
    /// 10: foreign bytes get on their way to this end.
    Inject(Vec<u8>),
    /// 11: time passes, for both.
    Wait(u16),
    /// 12: looks at its clock.
    HandleTimeout,
    /// 13: its stream took bytes that were stuck.
    Progressed,
    /// 14: receives so many bytes and sends each message back.
    Echo(u16),
}

impl<'a> Arbitrary<'a> for Op {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.arbitrary::<u8>()? % 15 {
            0 => Self::Send(u.arbitrary()?),
            1 => {
                let flags: u8 = u.arbitrary()?;
                let payload: Payload = u.arbitrary()?;
                // Each fragment is valid text by itself here.
                let is_text = flags & 2 != 0 && str::from_utf8(&payload.bytes).is_ok();
                Self::Fragment(Payload { is_text, ..payload }, flags & 1 != 0)
            }
            2 => {
                let cuts = u.arbitrary()?;
                Self::Fragments(u.arbitrary()?, cuts)
            }
            3 => Self::Ping(control(u)?),
            4 => Self::Pong(control(u)?),
            5 => {
                let code = CloseCode::new(u.arbitrary()?);
                let reason = String::from_utf8_lossy(short(u)?).into_owned();
                Self::Close(code.map(|code| CloseFrame::new(code, &reason)))
            }
            6 => Self::Transmit(u.arbitrary()?),
            7 => Self::Receive(u.arbitrary()?),
            8 => Self::Exchange(u.arbitrary()?),
            9 => Self::Corrupt { at: u.arbitrary()?, by: u.arbitrary()? },
            10 => Self::Inject(short(u)?.to_vec()),
            11 => Self::Wait(u.arbitrary()?),
            12 => Self::HandleTimeout,
            13 => Self::Progressed,
            _ => Self::Echo(u.arbitrary()?),
        })
    }
}

/// Up to 127 bytes, two more than allowed.
fn control(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let [len, byte]: [u8; 2] = u.arbitrary()?;
    Ok(vec![byte; usize::from(len % 128)])
}
