//! Sends and receives messages over one WebSocket.

use std::time::Duration;

use anemone_ws::proto::handshake::{ClientHandshake, Nonce};
use anemone_ws::proto::{Header, MaskKey, Opcode};

use super::http::{read_head, refused, wrong};
use super::stream::AT_ONCE_BYTES;
use super::{Fault, MESSAGE_BYTES_MAX, Place, Stream, within_limit};
use crate::load::masked_and_timed;
use crate::statistics::Random;
use crate::tcp_info::Traffic;

#[derive(Debug)]
pub(crate) struct WebSocket {
    stream: Stream,
    random: Random,
}

impl WebSocket {
    /// Connects, and completes the opening handshake.
    pub(crate) fn connect(
        place: &Place,
        target: &str,
        subprotocols: &[&str],
        seed: u64,
    ) -> Result<Self, Fault> {
        let mut random = Random::new(seed);
        let mut nonce = Nonce([0; 16]);
        nonce.0.copy_from_slice(&random.bytes(16));
        let mut handshake = ClientHandshake::new(nonce, subprotocols);
        let mut stream = Stream::connect(place)?;
        stream.send(handshake.request(&place.host, target, &[]).as_bytes())?;
        let (head, status, end) =
            read_head(&mut stream, |head| (head.bytes(), head.status, head.body_end()))?;
        if status != 101 {
            return Err(refused(&mut stream, status, end.map_err(wrong)?));
        }
        handshake.receive(&head)?;
        Ok(Self { stream, random })
    }

    /// Sends a message in one frame.
    pub(crate) fn send(&mut self, opcode: Opcode, payload: &[u8]) -> Result<(), Fault> {
        let frame = self.frame(opcode, payload);
        self.stream.send(&frame)
    }

    /// Returns the frame of a message. A caller can make it before a clock starts.
    pub(crate) fn frame(&mut self, opcode: Opcode, payload: &[u8]) -> Vec<u8> {
        self.masked(opcode, payload).0
    }

    /// Returns the frame of a message, and the time that masking took.
    pub(crate) fn masked(&mut self, opcode: Opcode, payload: &[u8]) -> (Vec<u8>, Duration) {
        let mut key = MaskKey([0; 4]);
        key.0.copy_from_slice(&self.random.bytes(4));
        let header = Header { fin: true, rsv1: false, opcode, mask: None, payload_len: 0 };
        masked_and_timed(header, payload, key)
    }

    /// Sends a [`frame`](Self::frame), and waits for a message. Reads while it sends a long frame.
    pub(crate) fn exchange(&mut self, frame: &[u8]) -> Result<Vec<u8>, Fault> {
        if frame.len() <= AT_ONCE_BYTES {
            self.stream.send(frame)?;
            return self.receive()?.ok_or(Fault::Closed);
        }
        self.stream.send_beside(frame, |stream| {
            let mut message = Vec::new();
            loop {
                let (header, payload) = receive_frame(stream)?;
                match header.opcode {
                    // A pong would come between the bytes of the frame. No server waits for one so shortly.
                    Opcode::Ping | Opcode::Pong => {}
                    Opcode::Close => return Err(Fault::Closed),
                    Opcode::Continuation | Opcode::Text | Opcode::Binary => {
                        if append(&mut message, payload, header.fin)? {
                            return Ok(message);
                        }
                    }
                }
            }
        })
    }

    /// Waits for a message of one or more frames, and answers pings. Returns `None` once the server has closed. Neither
    /// a ping nor a part of the message begins the wait anew.
    pub(crate) fn receive(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        let mut message = Vec::new();
        self.stream.begin_wait();
        loop {
            let (header, payload) = receive_frame(&mut self.stream)?;
            match header.opcode {
                Opcode::Ping => {
                    let pong = self.frame(Opcode::Pong, &payload);
                    self.stream.send_aside(&pong)?;
                }
                Opcode::Pong => {}
                Opcode::Close => return Ok(None),
                Opcode::Continuation | Opcode::Text | Opcode::Binary => {
                    if append(&mut message, payload, header.fin)? {
                        return Ok(Some(message));
                    }
                }
            }
        }
    }

    pub(crate) fn finish(self) -> Result<Traffic, Fault> {
        self.stream.finish()
    }

    pub(crate) fn traffic(&self) -> Result<Traffic, Fault> {
        self.stream.traffic()
    }
}

/// Appends the payload of a frame to its message. Does not copy the first payload. Returns `is_last`.
fn append(message: &mut Vec<u8>, payload: Vec<u8>, is_last: bool) -> Result<bool, Fault> {
    if message.is_empty() {
        *message = payload;
    } else {
        message.extend_from_slice(&payload);
    }
    within_limit(message.len())?;
    Ok(is_last)
}

fn receive_frame(stream: &mut Stream) -> Result<(Header, Vec<u8>), Fault> {
    loop {
        if let Some((header, header_bytes)) = Header::decode(stream.bytes())? {
            if header.mask.is_some() {
                // RFC 6455 section 5.1.
                return Err(Fault::Wrong("the server sent a masked frame".to_owned()));
            }
            if header.payload_len > MESSAGE_BYTES_MAX as u64 {
                return Err(Fault::Wrong(format!("a frame of {} bytes came", header.payload_len)));
            }
            stream.fill_to(header_bytes + header.payload_len as usize)?;
            stream.take(header_bytes);
            if header.opcode.is_control() {
                stream.count_as_heartbeat(header_bytes + header.payload_len as usize);
            }
            return Ok((header, stream.take(header.payload_len as usize)));
        }
        stream.fill()?;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Returns the message that a client receives from a server that sends these bytes.
    fn received(bytes: &[u8]) -> Result<Vec<u8>, Fault> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = Stream::connect(&Place::new(listener.local_addr().unwrap())).unwrap();
        listener.accept().unwrap().0.write_all(bytes).unwrap();
        receive_frame(&mut stream).map(|(_, payload)| payload)
    }

    #[test]
    fn a_server_never_masks_its_frames() {
        // RFC 6455 section 5.1
        assert_eq!(received(b"\x82\x01a").unwrap(), b"a");
        let fault = received(b"\x82\x81\0\0\0\0a").unwrap_err();
        assert_eq!(fault.to_string(), "the server sent a masked frame");
    }

    #[test]
    fn a_refusal_is_told_without_the_sizes_of_its_chunks() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = Place::new(listener.local_addr().unwrap());
        let refused =
            b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nnope\r\n0\r\n\r\n";
        let server = thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            stream.write_all(refused).unwrap();
        });
        let fault = WebSocket::connect(&place, "/", &[], 1).unwrap_err();
        assert_eq!(fault.to_string(), "the server answered with status 404: nope");
        server.join().unwrap();
    }
}
