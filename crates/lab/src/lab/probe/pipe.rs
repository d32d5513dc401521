//! Reads and writes the bytes of one TCP connection, with TLS or without. One thread may write while another one reads.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::net::{RecvFlags, recv};
use tokio_rustls::rustls::{self, ClientConnection};

use super::{Fault, Place, Stall, Tls};
use crate::tcp_info::Traffic;

const READ_BYTES: usize = 64 << 10;
/// The most bytes that are encrypted at once. They make a few records (RFC 8446 section 5.1).
const PIECE_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Pipe {
    socket: TcpStream,
    /// The TLS connection; `None` without TLS. Only the writing thread sends records, so they keep their order.
    tls: Option<Mutex<ClientConnection>>,
}

impl Pipe {
    /// Connects, and completes the TLS handshake if the place uses TLS.
    pub(super) fn connect(place: &Place) -> Result<Self, Fault> {
        let socket = place.connect()?;
        let tls = place.tls.as_ref().map(|tls| shake_hands(&socket, tls, place.patience));
        let tls = tls.transpose()?;
        Ok(Self { socket, tls: tls.map(Mutex::new) })
    }

    /// Sends some of the bytes, and returns their number. With TLS it sends complete records, so it may wait for
    /// several times the patience.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let Some(mut tls) = self.tls() else { return (&self.socket).write(bytes) };
        let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
        tls.writer().write_all(piece)?;
        let mut records = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut records)?;
        }
        // The thread that reads needs it while this one waits.
        drop(tls);
        (&self.socket).write_all(&records)?;
        Ok(piece.len())
    }

    pub(super) fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(len) => bytes = &bytes[len..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits for bytes, reads once, and appends them. Returns their number, which is 0 at the end of the connection.
    /// Returns `None` if no data has come, for example only a part of a record.
    pub(super) fn read(&self, buffer: &mut Vec<u8>) -> io::Result<Option<usize>> {
        let Some(mut tls) = self.tls() else {
            buffer.reserve(READ_BYTES);
            let (len, _) = recv(&self.socket, spare_capacity(buffer), RecvFlags::empty())?;
            return Ok(Some(len));
        };
        let waiting = decrypted(&mut tls, buffer)?;
        // The thread that writes needs it while this one waits.
        drop(tls);
        if waiting.is_some() {
            return Ok(waiting);
        }
        let mut records = vec![0; READ_BYTES];
        let len = (&self.socket).read(&mut records)?;
        let mut records = &records[..len];
        let Some(mut tls) = self.tls() else { return Ok(None) };
        let mut read = if len == 0 { Some(0) } else { None };
        while !records.is_empty() {
            // After the peer's last record nothing more is taken.
            if tls.read_tls(&mut records)? == 0 {
                break;
            }
            tls.process_new_packets().map_err(invalid)?;
            let more = decrypted(&mut tls, buffer)?;
            read = read.map_or(more, |read| Some(read + more.unwrap_or(0)));
        }
        Ok(read)
    }

    /// Tells the peer that nothing more will be sent.
    pub(super) fn end(&self) -> io::Result<()> {
        let mut told = Ok(());
        if let Some(mut tls) = self.tls() {
            tls.send_close_notify();
            while tls.wants_write() && told.is_ok() {
                told = tls.write_tls(&mut &self.socket).map(drop);
            }
        }
        // In any case, or the peer waits for more.
        let ended = self.socket.shutdown(Shutdown::Write);
        told.and(ended)
    }

    /// Waits for the peer's FIN, which follows its last record. Does not wait longer if the peer continues to send.
    pub(super) fn wait_for_end(&self) {
        let mut rest = [0; 1024];
        if self.tls.is_some() && matches!((&self.socket).read(&mut rest), Ok(1..)) {
            // An alert at most; nobody reads more.
            let _ = (&self.socket).read(&mut rest);
        }
    }

    /// Ends both directions. Wakes a thread that waits to write.
    pub(super) fn close(&self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Both)
    }

    /// Returns the traffic of the connection. Without TLS, its bytes are the given ones. With TLS, they are those that
    /// the kernel has counted, with records and handshake.
    pub(super) fn traffic(&self, sent_bytes: u64, received_bytes: u64) -> io::Result<Traffic> {
        match &self.tls {
            None => Traffic::of(&self.socket, sent_bytes, received_bytes),
            Some(_) => Traffic::by_kernel(&self.socket),
        }
    }

    fn tls(&self) -> Option<MutexGuard<'_, ClientConnection>> {
        let tls = self.tls.as_ref()?;
        Some(tls.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn shake_hands(
    mut socket: &TcpStream,
    tls: &Tls,
    patience: Duration,
) -> Result<ClientConnection, Fault> {
    let wrong = |error: rustls::Error| Fault::Wrong(format!("no TLS: {error}"));
    let mut connection = tls.begin().map_err(wrong)?;
    let deadline = Instant::now() + patience;
    while connection.is_handshaking() || connection.wants_write() {
        if Instant::now() > deadline {
            return Err(Fault::Stalled(Stall::Silent(patience)));
        }
        let moved = match connection.wants_write() {
            true => connection.write_tls(&mut socket),
            false => connection.read_tls(&mut socket),
        };
        match moved {
            Ok(0) => return Err(Fault::Closed),
            Ok(_) => connection.process_new_packets().map(drop).map_err(wrong)?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Fault::of_io(error, patience)),
        }
    }
    Ok(connection)
}

/// Appends decrypted bytes, and returns their number. It is 0 after the peer's last bytes. Returns `None` if there are
/// none yet.
fn decrypted(tls: &mut ClientConnection, buffer: &mut Vec<u8>) -> io::Result<Option<usize>> {
    let old = buffer.len();
    let is_end = match tls.reader().read_to_end(buffer) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        Err(error) => return Err(error),
    };
    let len = buffer.len() - old;
    Ok((is_end || len > 0).then_some(len))
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::{Arc, mpsc};
    use std::thread;

    use rcgen::CertifiedKey;
    use tokio_rustls::rustls::crypto::aws_lc_rs;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;
    use tokio_rustls::rustls::{ServerConfig, ServerConnection, Stream as TlsStream};

    use super::*;
    use crate::lab::probe::Stream;

    /// Starts a server that makes the handshake with one client and then calls `serve`.
    fn server(serve: impl FnOnce(ServerConnection, TcpStream) + Send + 'static) -> Place {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut connection = ServerConnection::new(Arc::new(config)).unwrap();
            while connection.is_handshaking() || connection.wants_write() {
                connection.complete_io(&mut socket).unwrap();
            }
            serve(connection, socket);
        });
        let tls = Tls::with("localhost".try_into().unwrap()).unwrap();
        Place { tls: Some(Box::new(tls)), ..Place::new(address) }
    }

    /// Returns the records that contain this data.
    fn records(connection: &mut ServerConnection, data: &[u8]) -> Vec<u8> {
        connection.writer().write_all(data).unwrap();
        let mut records = Vec::new();
        while connection.wants_write() {
            connection.write_tls(&mut records).unwrap();
        }
        records
    }

    /// Reads until there are `len` bytes, or until the connection ends.
    fn read(pipe: &Pipe, len: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < len && pipe.read(&mut all).unwrap() != Some(0) {}
        all
    }

    #[test]
    fn a_record_that_comes_byte_by_byte_is_read_also_after_a_time_out() {
        let (go_on, wait) = mpsc::channel();
        let place = server(move |mut connection, mut socket| {
            socket.set_nodelay(true).unwrap();
            let records = records(&mut connection, b"hello");
            let (before, after) = records.split_at(records.len() / 2);
            before.iter().for_each(|byte| socket.write_all(&[*byte]).unwrap());
            wait.recv().unwrap();
            after.iter().for_each(|byte| socket.write_all(&[*byte]).unwrap());
        });
        let pipe = Pipe::connect(&place).unwrap();
        pipe.socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let mut data = Vec::new();
        let error = std::iter::repeat_with(|| pipe.read(&mut data)).find_map(Result::err).unwrap();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert!(data.is_empty());
        go_on.send(()).unwrap();
        pipe.socket.set_read_timeout(Some(place.patience)).unwrap();
        assert_eq!(read(&pipe, 6), b"hello", "and then the end");
    }

    #[test]
    fn what_comes_after_the_last_record_is_no_data() {
        let place = server(|mut connection, mut socket| {
            let mut all = records(&mut connection, b"end");
            connection.send_close_notify();
            while connection.wants_write() {
                connection.write_tls(&mut all).unwrap();
            }
            all.extend_from_slice(&[0; 16 << 10]);
            // The client may go before all is there.
            let _ = socket.write_all(&all);
        });
        let pipe = Pipe::connect(&place).unwrap();
        assert_eq!(read(&pipe, 4), b"end");
        assert_eq!(pipe.read(&mut Vec::new()).unwrap(), Some(0));
        // The server may have gone.
        let _ = pipe.end();
        pipe.wait_for_end();
    }

    #[test]
    fn bytes_that_are_no_records_are_a_wrong_reply() {
        let place = server(|_, mut socket| socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap());
        let error = Stream::connect(&place).and_then(|mut stream| stream.fill_to(1)).unwrap_err();
        assert!(matches!(error, Fault::Wrong(_)), "{error}");
    }

    #[test]
    fn millions_of_bytes_go_in_both_directions_at_once() {
        let place = server(|mut connection, mut socket| {
            let mut stream = TlsStream::new(&mut connection, &mut socket);
            let mut bytes = vec![0; 100_000];
            while let Ok(len @ 1..) = stream.read(&mut bytes) {
                if stream.write_all(&bytes[..len]).is_err() {
                    break;
                }
            }
        });
        let mut stream = Stream::connect(&place).unwrap();
        let sent: Vec<u8> = (0..8_000_000_u32).map(|number| (number / 7) as u8).collect();
        stream.exchange(&sent, sent.len()).unwrap();
        assert!(stream.take(sent.len()) == sent);
        let traffic = stream.finish().unwrap();
        // Records and the handshake are in it.
        assert!(traffic.sent_bytes > sent.len() as u64, "{traffic:?}");
        assert!(traffic.sent_bytes < sent.len() as u64 / 100 * 101, "{traffic:?}");
    }
}
