//! RFC 6455 sections 5 and 7 for one end that only receives, without extensions, all bytes at once.

/// The expected result of received bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Expected {
    /// A whole message.
    Message {
        /// True if its first frame has opcode 1.
        is_text: bool,
        /// Its payload.
        bytes: Vec<u8>,
    },
    /// A ping.
    Ping(Vec<u8>),
    /// A pong.
    Pong(Vec<u8>),
    /// A close frame and its code, if it has one.
    Close(Option<(u16, String)>),
    /// A violation, and the close code it fails with.
    Failed(u16),
}

/// The limits of the receiver.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Payload of one frame.
    pub frame_bytes: u64,
    /// Payload of one message.
    pub message_bytes: u64,
    /// Fragments of one message.
    pub fragments: u32,
}

struct Frame {
    fin: bool,
    rsv1: bool,
    opcode: u8,
    key: Option<[u8; 4]>,
    len: u64,
}

struct Message {
    is_text: bool,
    bytes: Vec<u8>,
    fragments: u32,
}

/// Everything that `bytes` hold, up to the first close frame or violation.
#[must_use]
pub fn receive(is_server: bool, limits: Limits, bytes: &[u8]) -> Vec<Expected> {
    let mut seen = Vec::new();
    if let Err(code) = read(is_server, limits, bytes, &mut seen) {
        seen.push(Expected::Failed(code));
    }
    seen
}

fn read(
    is_server: bool,
    limits: Limits,
    mut rest: &[u8],
    seen: &mut Vec<Expected>,
) -> Result<(), u16> {
    let mut message: Option<Message> = None;
    while let Some((frame, header_len)) = header(rest)? {
        if frame.rsv1 || frame.key.is_some() != is_server {
            return Err(1002);
        }
        rest = &rest[header_len..];
        let len = usize::try_from(frame.len).unwrap_or(usize::MAX).min(rest.len());
        let is_whole = len as u64 == frame.len;
        let mut payload = rest[..len].to_vec();
        rest = &rest[len..];
        super::mask(frame.key.unwrap_or_default(), &mut payload);
        if frame.opcode >= 8 {
            if !is_whole {
                return Ok(());
            }
            let event = control(frame.opcode, payload)?;
            let is_last = matches!(event, Expected::Close(_));
            seen.push(event);
            if is_last {
                return Ok(());
            }
            continue;
        }
        if frame.len > limits.frame_bytes {
            return Err(1009);
        }
        let mut current = match (message.take(), frame.opcode) {
            (None, 0) | (Some(_), 1 | 2) => return Err(1002),
            (None, opcode) => Message { is_text: opcode == 1, bytes: Vec::new(), fragments: 1 },
            (Some(begun), _) if begun.fragments >= limits.fragments => return Err(1008),
            (Some(begun), _) => Message { fragments: begun.fragments + 1, ..begun },
        };
        if (current.bytes.len() as u64).saturating_add(frame.len) > limits.message_bytes {
            return Err(1009);
        }
        current.bytes.extend(payload);
        let is_over = frame.fin && is_whole;
        if let (true, Err(error)) = (current.is_text, str::from_utf8(&current.bytes))
            && (is_over || error.error_len().is_some())
        {
            return Err(1007);
        }
        if is_over {
            let Message { is_text, bytes, .. } = current;
            seen.push(Expected::Message { is_text, bytes });
        } else {
            message = Some(current);
        }
    }
    Ok(())
}

/// Section 5.2. `None` while bytes are missing and those that are there can still become a header.
fn header(bytes: &[u8]) -> Result<Option<(Frame, usize)>, u16> {
    let Some(&first) = bytes.first() else { return Ok(None) };
    let (fin, opcode) = (first & 0x80 != 0, first & 0x0f);
    let is_known = matches!(opcode, 0 | 1 | 2 | 8 | 9 | 10);
    if first & 0x30 != 0 || !is_known || (opcode >= 8 && !fin) {
        return Err(1002);
    }
    let Some(&second) = bytes.get(1) else { return Ok(None) };
    let short = second & 0x7f;
    if opcode >= 8 && short > 125 {
        return Err(1002);
    }
    let len_bytes = match short {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let Some(extended) = bytes.get(2..2 + len_bytes) else { return Ok(None) };
    let extended = extended.iter().fold(0, |len, &byte| len << 8 | u64::from(byte));
    let (len, is_least) = match short {
        126 => (extended, extended > 125),
        127 => (extended, extended > 0xffff && extended < 1 << 63),
        len => (u64::from(len), true),
    };
    if !is_least {
        return Err(1002);
    }
    let mut header_len = 2 + len_bytes;
    let mut key = None;
    if second & 0x80 != 0 {
        let Some(&[a, b, c, d]) = bytes.get(header_len..header_len + 4) else { return Ok(None) };
        key = Some([a, b, c, d]);
        header_len += 4;
    }
    Ok(Some((Frame { fin, rsv1: first & 0x40 != 0, opcode, key, len }, header_len)))
}

/// Section 5.5.
fn control(opcode: u8, payload: Vec<u8>) -> Result<Expected, u16> {
    if opcode == 9 {
        return Ok(Expected::Ping(payload));
    }
    if opcode == 10 {
        return Ok(Expected::Pong(payload));
    }
    let [high, low, reason @ ..] = &payload[..] else {
        return if payload.is_empty() { Ok(Expected::Close(None)) } else { Err(1002) };
    };
    let code = u16::from(*high) << 8 | u16::from(*low);
    // Section 7.4 and the registry.
    let is_allowed = (1000..5000).contains(&code)
        && !matches!(code, 1004..=1006)
        && !(1015..3000).contains(&code);
    if !is_allowed {
        return Err(1002);
    }
    let reason = str::from_utf8(reason).map_err(|_| 1007_u16)?;
    Ok(Expected::Close(Some((code, reason.to_owned()))))
}
