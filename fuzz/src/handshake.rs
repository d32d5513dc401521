//! The opening handshake: raw bytes and made-up heads to either side, and both sides with each other.
//! Another parser checks accepted ones field by field; correct ones must be accepted.
//!
//! Input: what to do (1 byte), then as each function says.

use anemone_proto::handshake::{
    Answered, ClientHandshake, Established, FIELDS_MAX, HANDSHAKE_BYTES_MAX, Nonce,
    ServerHandshake, accept_key,
};
use arbitrary::{Result, Unstructured};

use crate::negotiated::{deflate_config, negotiate};
use crate::payload::{Cuts, pieces, short};

/// Runs one input; panics on a fault.
pub fn run(data: &[u8]) {
    let mut u = Unstructured::new(data);
    // An error is an input that ends early, and so ends the run.
    let _ = match u.arbitrary::<u8>().map(|what| what % 5) {
        Ok(0) => raw_request(&mut u),
        Ok(1) => raw_response(&mut u),
        Ok(2) => made_up_request(&mut u),
        Ok(3) => made_up_response(&mut u),
        Ok(_) => both_ends(&mut u),
        Err(error) => Err(error),
    };
}

const NONCE: Nonce = Nonce(*b"the sample nonce");
const OFFERED: [&str; 2] = ["chat", "superchat"];
const SUPPORTED: [&str; 3] = ["superchat", "chat", "v2.chat"];

/// Names of fields that a head may get.
const NAMES: [&str; 8] = [
    "Host",
    "Upgrade",
    "Connection",
    "Sec-WebSocket-Key",
    "Sec-WebSocket-Version",
    "Sec-WebSocket-Protocol",
    "Sec-WebSocket-Extensions",
    "Sec-WebSocket-Accept",
];

/// Values of fields that a head may get.
const VALUES: [&str; 16] = [
    "localhost:8080",
    "websocket",
    "Upgrade",
    "keep-alive, Upgrade",
    "dGhlIHNhbXBsZSBub25jZQ==",
    "13",
    "chat, superchat",
    "permessage-deflate",
    "permessage-deflate; client_max_window_bits",
    "permessage-deflate; server_max_window_bits=10; server_no_context_takeover",
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
    "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
    "h2c, WebSocket",
    "",
    "chat",
    "x-other; a=\"b\", permessage-deflate",
];

/// Flags (1 byte: bit 0 deflate), cuts, and all else is the request.
fn raw_request(u: &mut Unstructured<'_>) -> Result<()> {
    let (flags, cuts): (u8, Cuts) = (u.arbitrary()?, u.arbitrary()?);
    request(u.bytes(u.len())?, &cuts, flags & 1 != 0);
    Ok(())
}

/// Flags (1 byte: bit 0 deflate), cuts, and all else is the response.
fn raw_response(u: &mut Unstructured<'_>) -> Result<()> {
    let (flags, cuts): (u8, Cuts) = (u.arbitrary()?, u.arbitrary()?);
    response(u.bytes(u.len())?, &cuts, flags & 1 != 0);
    Ok(())
}

/// Flags (1 byte: bit 0 deflate, bits 1 and 2 the request line), cuts, fields.
fn made_up_request(u: &mut Unstructured<'_>) -> Result<()> {
    let (flags, cuts): (u8, Cuts) = (u.arbitrary()?, u.arbitrary()?);
    let line = [
        "GET /chat?room=1 HTTP/1.1",
        "POST / HTTP/1.1",
        "GET / HTTP/1.0",
        "GET http://localhost/ HTTP/1.1",
    ][usize::from(flags >> 1 & 3)];
    let bytes = head(line, u)?;
    request(&bytes, &cuts, flags & 1 != 0);
    Ok(())
}

/// Flags (1 byte: bit 0 deflate, bits 1 and 2 the status line), cuts, fields.
fn made_up_response(u: &mut Unstructured<'_>) -> Result<()> {
    let (flags, cuts): (u8, Cuts) = (u.arbitrary()?, u.arbitrary()?);
    let line = [
        "HTTP/1.1 101 Switching Protocols",
        "HTTP/1.1 101 ",
        "HTTP/1.1 200 OK",
        "HTTP/1.0 101 Switching Protocols",
    ][usize::from(flags >> 1 & 3)];
    let bytes = head(line, u)?;
    response(&bytes, &cuts, flags & 1 != 0);
    Ok(())
}

/// A head and the first bytes after it. Each field: its name (1 byte, 255 ends the head), and its value
/// (1 byte, above 127 followed by its own).
fn head(line: &str, u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut bytes = format!("{line}\r\n").into_bytes();
    while !u.is_empty() {
        let name: u8 = u.arbitrary()?;
        if name == 255 {
            break;
        }
        let (name, is_lower) = (usize::from(name & 0x7f), name & 0x80 != 0);
        let name = NAMES.get(name).map_or("X-Other".to_owned(), |&name| match is_lower {
            true => name.to_ascii_lowercase(),
            false => name.to_owned(),
        });
        let value: u8 = u.arbitrary()?;
        let value = match VALUES.get(usize::from(value)) {
            Some(value) => value.as_bytes(),
            None if value < 128 => b"x",
            None => short(u)?,
        };
        bytes.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    bytes.extend(b"\r\n");
    bytes.extend(u.bytes(u.len())?);
    Ok(bytes)
}

fn request(bytes: &[u8], cuts: &Cuts, deflates: bool) {
    let server = || match deflates {
        true => ServerHandshake::default().with_deflate(Default::default()),
        false => ServerHandshake::default(),
    };
    let whole = server().receive(bytes, &SUPPORTED);
    let mut cut = Ok(None);
    let mut in_pieces = server();
    let mut after = Vec::new();
    for piece in pieces(bytes, &cuts.of(bytes.len())) {
        match &cut {
            Ok(None) => cut = in_pieces.receive(piece, &SUPPORTED),
            Ok(Some(_)) => after.extend_from_slice(piece),
            Err(_) => {}
        }
    }
    if let Ok(Some(answered)) = &mut cut {
        answered.rest.extend(after);
    }
    // The first limit to be exceeded can depend on the pieces.
    assert_eq!(whole.clone().map_err(|_| ()), cut.map_err(|_| ()));
    let head = Head::read(bytes);
    match whole {
        Ok(Some(answered)) => accepted(bytes, &answered, deflates),
        Ok(None) => assert!(head.is_none_or(|head| !head.is_plain)),
        Err(error) => {
            let refusal = ServerHandshake::refusal(&error);
            let Some(read) = Head::read(refusal.as_bytes()) else { panic!("{refusal}") };
            assert!(read.line.starts_with(&format!("HTTP/1.1 {} ", error.status())), "{refusal}");
            assert!(read.is_plain, "{refusal}");
            let len = read.only("content-length").and_then(|len| len.parse().ok());
            assert_eq!(len, Some(refusal.len() - read.len), "{refusal}");
            let is_right =
                head.is_some_and(|head| head.is_plain && head.may_open() && head.extends_plainly());
            assert!(!is_right, "refused with {error}: {}", bytes.escape_ascii());
        }
    }
}

/// Checks RFC 6455 section 4.2.1, and the response (4.2.2).
fn accepted(bytes: &[u8], answered: &Answered, deflates: bool) {
    let Some(head) = Head::read(bytes) else { panic!("accepted without an end of the head") };
    assert!(head.len <= HANDSHAKE_BYTES_MAX && head.fields.len() <= FIELDS_MAX);
    assert!(head.may_open(), "accepted: {}", bytes.escape_ascii());
    assert_eq!(answered.rest, bytes[head.len..]);
    let parts: Vec<&str> = head.line.split(' ').collect();
    assert_eq!(parts[1], answered.target);

    let accepted = &answered.response;
    let offered = head.members("sec-websocket-protocol");
    let chosen = offered.iter().find(|name| SUPPORTED.contains(&name.as_str()));
    assert_eq!(accepted.subprotocol.as_ref(), chosen);
    let offers = head.members("sec-websocket-extensions");
    let may_deflate = offers.iter().any(|offer| offer.starts_with("permessage-deflate"));
    assert!(accepted.deflate.is_none() || deflates && may_deflate);

    let Some(key) = head.only("sec-websocket-key") else { panic!("no key") };
    let Some(nonce) = nonce(key) else { panic!("{key} is not the base64 form of 16 bytes") };
    assert_eq!(nonce.key(), key);
    let offered: Vec<&str> = offered.iter().map(String::as_str).collect();
    let response = accepted.head();
    let mut client = ClientHandshake::new(nonce, &offered);
    let with_deflate = accepted.deflate.is_some();
    if with_deflate {
        // Keeps everything open, so that any answer to any offer but one fits.
        client = client.with_deflate(anemone_proto::DeflateConfig {
            own_context_takeover: true,
            peer_context_takeover: true,
            ..Default::default()
        });
    }
    match client.receive(response.as_bytes()) {
        Ok(Some(Established { subprotocol, deflate, rest })) => {
            assert_eq!((subprotocol, rest), (accepted.subprotocol.clone(), Vec::new()));
            assert_eq!(deflate.is_some(), with_deflate);
        }
        other => panic!("our own response is not accepted: {other:?}\n{response}"),
    }
}

fn response(bytes: &[u8], cuts: &Cuts, deflates: bool) {
    let client = || match deflates {
        true => ClientHandshake::new(NONCE, &OFFERED).with_deflate(Default::default()),
        false => ClientHandshake::new(NONCE, &OFFERED),
    };
    let whole = client().receive(bytes);
    let mut cut = Ok(None);
    let mut in_pieces = client();
    let mut after = Vec::new();
    for piece in pieces(bytes, &cuts.of(bytes.len())) {
        match &cut {
            Ok(None) => cut = in_pieces.receive(piece),
            Ok(Some(_)) => after.extend_from_slice(piece),
            Err(_) => {}
        }
    }
    if let Ok(Some(established)) = &mut cut {
        established.rest.extend(after);
    }
    assert_eq!(whole.clone().map_err(|_| ()), cut.map_err(|_| ()));
    let head = Head::read(bytes);
    match whole {
        Ok(Some(established)) => {
            let Some(head) = head else { panic!("accepted without an end of the head") };
            assert!(head.len <= HANDSHAKE_BYTES_MAX && head.fields.len() <= FIELDS_MAX);
            assert!(head.establishes(), "accepted: {}", bytes.escape_ascii());
            assert_eq!(established.rest, bytes[head.len..]);
            let chosen = head.members("sec-websocket-protocol");
            assert_eq!(established.subprotocol.as_ref(), chosen.first());
            let extensions = head.members("sec-websocket-extensions");
            assert_eq!(extensions.len(), usize::from(established.deflate.is_some()));
            assert!(established.deflate.is_none() || deflates);
        }
        Ok(None) => assert!(head.is_none_or(|head| !head.is_plain)),
        Err(error) => {
            let is_right = head.is_some_and(|head| {
                head.is_plain
                    && head.establishes()
                    && head.members("sec-websocket-extensions").is_empty()
            });
            assert!(!is_right, "refused with {error}: {}", bytes.escape_ascii());
        }
    }
}

/// Both configurations (2 bytes each), flags (1 byte: bits 0 and 1 who wants to compress, bit 2
/// subprotocols), the nonce (16 bytes), cuts, the first frames.
fn both_ends(u: &mut Unstructured<'_>) -> Result<()> {
    let (for_client, for_server) = (deflate_config(u)?, deflate_config(u)?);
    let flags: u8 = u.arbitrary()?;
    let (nonce, cuts): (_, Cuts) = (Nonce(u.arbitrary()?), u.arbitrary()?);
    let frames = short(u)?;
    let offered = if flags & 4 == 0 { &[][..] } else { &OFFERED };
    let mut client = ClientHandshake::new(nonce, offered);
    let mut server = ServerHandshake::default();
    if flags & 1 != 0 {
        client = client.with_deflate(for_client.clone());
    }
    if flags & 2 != 0 {
        server = server.with_deflate(for_server.clone());
    }
    let request = client.request("localhost", "/", &[("Origin", "http://localhost")]);
    let mut answered = None;
    for piece in pieces(request.as_bytes(), &cuts.of(request.len())) {
        if answered.is_some() {
            assert!(piece.is_empty(), "answered before the end");
            break;
        }
        match server.receive(piece, &SUPPORTED) {
            Ok(answer) => answered = answer,
            Err(error) => panic!("our own request is refused: {error}\n{request}"),
        }
    }
    let Some(Answered { response: accepted, rest, target }) = answered else {
        panic!("not whole: {request}")
    };
    assert_eq!((target.as_str(), rest.len()), ("/", 0));
    assert_eq!(accepted.accept, accept_key(&nonce.key()));

    let response = [accepted.head().as_bytes(), frames].concat();
    let mut established: Option<Established> = None;
    for piece in pieces(&response, &cuts.of(response.len())) {
        match &mut established {
            Some(Established { rest, .. }) => rest.extend_from_slice(piece),
            None => match client.receive(piece) {
                Ok(answer) => established = answer,
                Err(error) => panic!("our own response is refused: {error}"),
            },
        }
    }
    let Some(established) = established else { panic!("not whole: {response:?}") };
    assert_eq!(established.rest, frames);
    assert_eq!(established.subprotocol, accepted.subprotocol);
    assert_eq!(established.subprotocol.is_some(), !offered.is_empty());
    assert_eq!(established.deflate.is_some(), flags & 3 == 3);
    assert_eq!(accepted.deflate.is_some(), flags & 3 == 3);
    negotiate(&for_client, &for_server);
    Ok(())
}

/// The head of a request or response, read as simply as possible.
struct Head {
    line: String,
    /// Names in lower case, and values.
    fields: Vec<(String, String)>,
    /// With the empty line.
    len: usize,
    /// There is nothing in it about which parsers may differ.
    is_plain: bool,
}

impl Head {
    /// `None` when there is no empty line.
    fn read(bytes: &[u8]) -> Option<Self> {
        // Empty lines before the first are skipped (RFC 9112 section 2.2).
        let mut at = bytes.iter().take_while(|byte| b"\r\n".contains(byte)).count();
        let mut is_plain = at == 0;
        let mut lines = Vec::new();
        loop {
            let len = bytes[at..].iter().position(|&byte| byte == b'\n')?;
            let line = &bytes[at..at + len];
            at += len + 1;
            is_plain &= line.last() == Some(&b'\r');
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                break;
            }
            is_plain &= line.iter().all(|byte| (b' '..=b'~').contains(byte));
            lines.push(String::from_utf8_lossy(line).into_owned());
        }
        let mut lines = lines.into_iter();
        let line = lines.next()?;
        let mut fields = Vec::new();
        for field in lines {
            let (name, value) = field.split_once(':').unwrap_or((&field, ""));
            is_plain &= !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && field.contains(':');
            fields.push((name.to_ascii_lowercase(), value.trim_ascii().to_owned()));
        }
        is_plain &= at <= HANDSHAKE_BYTES_MAX && fields.len() <= FIELDS_MAX;
        Some(Self { line, fields, len: at, is_plain })
    }

    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |field| field.0 == name).map(|field| field.1.as_str())
    }

    /// The value of a field that must stand exactly once.
    fn only<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        let mut values = self.values(name);
        values.next().filter(|_| values.next().is_none())
    }

    fn members(&self, name: &str) -> Vec<String> {
        let members = self.values(name).flat_map(|value| value.split(','));
        members
            .map(|member| member.trim_ascii().to_owned())
            .filter(|name| !name.is_empty())
            .collect()
    }

    fn names(&self, name: &str, member: &str) -> bool {
        self.members(name).iter().any(|name| name.eq_ignore_ascii_case(member))
    }

    /// Returns true if its extensions are known to be valid, without parsing them.
    fn extends_plainly(&self) -> bool {
        self.values("sec-websocket-extensions").all(|value| VALUES[7..11].contains(&value))
    }

    /// RFC 6455 section 4.2.1, all but extensions.
    fn may_open(&self) -> bool {
        let subprotocols = self.members("sec-websocket-protocol");
        let are_tokens = subprotocols.iter().all(|name| {
            name.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
        });
        let are_different =
            (1..subprotocols.len()).all(|at| !subprotocols[..at].contains(&subprotocols[at]));
        let [method, target, version] = self.line.split(' ').collect::<Vec<_>>()[..] else {
            return false;
        };
        method == "GET"
            && !target.is_empty()
            && version == "HTTP/1.1"
            && self.only("host").is_some()
            && self.names("upgrade", "websocket")
            && self.names("connection", "upgrade")
            && self.only("sec-websocket-version") == Some("13")
            && self.only("sec-websocket-key").is_some_and(|key| nonce(key).is_some())
            && are_tokens
            && are_different
    }

    /// Section 4.1, all but extensions.
    fn establishes(&self) -> bool {
        let chosen = self.members("sec-websocket-protocol");
        let mut status = self.line.split(' ');
        // That the version is 1.1 is not among a client's checks.
        status.next().is_some_and(|version| matches!(version, "HTTP/1.1" | "HTTP/1.0"))
            && status.next() == Some("101")
            && self.names("upgrade", "websocket")
            && self.names("connection", "upgrade")
            && self.only("sec-websocket-accept") == Some(&accept_key(&NONCE.key()))
            && chosen.len() <= 1
            && chosen.iter().all(|name| OFFERED.contains(&name.as_str()))
    }
}

/// The 16 bytes of a key (RFC 4648 section 4, with the padding bits zero).
fn nonce(key: &str) -> Option<Nonce> {
    let digits = key.strip_suffix("==").filter(|digits| digits.len() == 22)?;
    let mut bits: u128 = 0;
    for (at, digit) in digits.bytes().enumerate() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = if at < 21 {
            bits << 6 | u128::from(value)
        } else if value & 0x0f == 0 {
            bits << 2 | u128::from(value >> 4)
        } else {
            return None;
        };
    }
    Some(Nonce(bits.to_be_bytes()))
}
