//! The server: a script that handles each connection as it likes.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anemone_client::Via;
use anemone_client::rustls::{ServerConfig, ServerConnection, StreamOwned};
use anemone_ws::proto::handshake::accept_key;

/// A server on loopback. Its threads wait for connections until the process ends.
pub(crate) struct Fake {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Fake {
    /// Passes each connection, and its number from 0, to `script`, in a thread of its own.
    pub(crate) fn start(
        script: impl Fn(usize, Conn) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::start_over(script, |stream| Box::new(stream))
    }

    /// The same, over TLS.
    pub(crate) fn secured(
        config: ServerConfig,
        script: impl Fn(usize, Conn) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let config = Arc::new(config);
        Self::start_over(script, move |stream| {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            Box::new(StreamOwned::new(connection, stream))
        })
    }

    fn start_over(
        script: impl Fn(usize, Conn) -> io::Result<()> + Send + Sync + 'static,
        wrap: impl Fn(TcpStream) -> Box<dyn Stream> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (count, script) = (Arc::clone(&connections), Arc::new(script));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (script, number) = (Arc::clone(&script), count.fetch_add(1, Ordering::SeqCst));
                let stream = stream.unwrap();
                stream.set_nodelay(true).unwrap();
                let stream = wrap(stream);
                // A client may be gone at any time: then this is over.
                thread::spawn(move || {
                    drop(script(number, Conn { stream, left: usize::MAX, is_patient: true }))
                });
            }
        });
        Self { address, connections }
    }

    /// The URL of its topic.
    pub(crate) fn url(&self, via: Via) -> String {
        let scheme = if via == Via::Tcp { "tcp" } else { "http" };
        format!("{scheme}://{}/topics/x", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of connections that there were.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

pub(crate) trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

/// One connection.
pub(crate) struct Conn {
    stream: Box<dyn Stream>,
    /// It is cut off after so many bytes.
    left: usize,
    /// It stays open until the client goes.
    is_patient: bool,
}

/// The request of a client.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The value of a parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let parameters = self.target.split_once('?')?.1.split('&');
        parameters
            .filter_map(|parameter| parameter.split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    }
}

impl Conn {
    /// Cuts it off after so many bytes more.
    pub(crate) fn cut_after(mut self, bytes: usize) -> Self {
        self.left = bytes;
        self
    }

    /// The next request; the end is an error.
    pub(crate) fn request(&mut self) -> io::Result<Request> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.extend(self.read::<1>()?);
        }
        let head = String::from_utf8(head).unwrap();
        let mut words = head.split(' ').map(str::to_owned);
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let mut request = Request { method, target, head, body: Vec::new() };
        let len = request.field("content-length").map_or(0, |len| len.parse().unwrap());
        request.body = vec![0; len];
        self.stream.read_exact(&mut request.body)?;
        Ok(request)
    }

    fn read<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn write(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        let bytes = bytes.as_ref();
        let len = bytes.len().min(self.left);
        self.left -= len;
        self.stream.write_all(&bytes[..len])?;
        self.stream.flush()?;
        if len == bytes.len() { Ok(()) } else { Err(io::ErrorKind::ConnectionAborted.into()) }
    }

    /// A whole answer.
    pub(crate) fn answer(&mut self, status: &str, fields: &str, body: &str) -> io::Result<()> {
        let len = body.len();
        self.write(format!("HTTP/1.1 {status}\r\ncontent-length: {len}\r\n{fields}\r\n{body}"))
    }

    /// Sends a problem, as our server does.
    pub(crate) fn problem(&mut self, status: &str, fields: &str, name: &str) -> io::Result<()> {
        let fields = format!("content-type: application/problem+json\r\n{fields}");
        self.answer(status, &fields, &problem(name))
    }

    /// Waits until the client has gone.
    pub(crate) fn wait(&mut self) -> io::Result<()> {
        while self.is_patient {
            self.read::<1>()?;
        }
        Ok(())
    }

    /// Answers a WebSocket's handshake.
    pub(crate) fn upgrade(&mut self, request: &Request) -> io::Result<()> {
        let key = accept_key(request.field("sec-websocket-key").unwrap());
        let subprotocol = request.field("sec-websocket-protocol").unwrap();
        self.write(format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {key}\r\nSec-WebSocket-Protocol: {subprotocol}\r\n\r\n"
        ))
    }

    /// Answers a WebSocket's handshake as a server that knows none of its subprotocols.
    pub(crate) fn upgrade_without_subprotocol(&mut self, request: &Request) -> io::Result<()> {
        let key = accept_key(request.field("sec-websocket-key").unwrap());
        self.write(format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {key}\r\n\r\n"
        ))
    }

    /// A text message.
    pub(crate) fn message(&mut self, text: &str) -> io::Result<()> {
        let mut frame = vec![0x81];
        match text.len() {
            len @ 0..126 => frame.push(len as u8),
            len => frame.extend([&[126][..], &(len as u16).to_be_bytes()].concat()),
        }
        frame.extend(text.as_bytes());
        self.write(frame)
    }

    /// A message after its length.
    pub(crate) fn frame(&mut self, text: &str) -> io::Result<()> {
        self.write(u32::try_from(text.len()).unwrap().to_be_bytes())?;
        self.write(text)
    }

    /// A piece of a body whose end is not known.
    pub(crate) fn chunk(&mut self, text: &str) -> io::Result<()> {
        self.write(format!("{:x}\r\n{text}\r\n", text.len()))
    }

    /// A client's message after its length.
    pub(crate) fn receive_frame(&mut self) -> io::Result<String> {
        let len = u32::from_be_bytes(self.read::<4>()?);
        let mut message = vec![0; len as usize];
        self.stream.read_exact(&mut message)?;
        Ok(String::from_utf8(message).unwrap())
    }

    /// A client's message.
    pub(crate) fn receive(&mut self) -> io::Result<String> {
        let [_, len] = self.read::<2>()?;
        let len = match len & 0x7f {
            126 => usize::from(u16::from_be_bytes(self.read::<2>()?)),
            len => usize::from(len),
        };
        let mask = self.read::<4>()?;
        let mut payload = vec![0; len];
        self.stream.read_exact(&mut payload)?;
        let unmasked = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask);
        Ok(String::from_utf8(unmasked.collect()).unwrap())
    }
}

/// The body of a problem.
pub(crate) fn problem(name: &str) -> String {
    format!(r#"{{"type":"/problems/{name}","title":"No","status":400,"detail":"for a reason"}}"#)
}

/// The events of a topic.
#[derive(Clone, Copy)]
pub(crate) struct Log {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// The number of an event that is left out without a gap.
    pub(crate) hidden: Option<u64>,
    /// True if it ignores the requested position.
    pub(crate) is_deaf: bool,
    /// True for the topic of a run, which ends after its last event.
    pub(crate) is_run: bool,
}

/// The key of a run.
pub(crate) const KEY: &str = "0123456789abcdef0123456789abcdef";
/// The last event of a run.
pub(crate) const DONE: &str = r#"{"state":"done","result":42}"#;

impl Log {
    pub(crate) fn of(last: u64) -> Self {
        Self { first: 1, last, hidden: None, is_deaf: false, is_run: false }
    }

    /// The events of a run that has ended.
    pub(crate) fn of_run(last: u64) -> Self {
        Self { is_run: true, ..Self::of(last) }
    }

    /// As [`serve`](Self::serve), but maybe only until all events are sent.
    pub(crate) fn serve_for(&self, via: Via, conn: &mut Conn, is_patient: bool) -> io::Result<()> {
        conn.is_patient = is_patient;
        self.serve(via, conn)
    }

    /// Serves one request over this transport until the client has gone.
    pub(crate) fn serve(&self, via: Via, conn: &mut Conn) -> io::Result<()> {
        if via == Via::Tcp {
            return self.serve_tcp(conn);
        }
        loop {
            let request = conn.request()?;
            let after = self.after(request.parameter("after"));
            match (request.field("upgrade"), request.field("accept")) {
                (Some(_), _) if request.target == "/ws" => return self.serve_mux(conn, &request),
                (Some(_), _) => return self.serve_web_socket(conn, &request, after),
                (_, Some("text/event-stream")) => {
                    return self.stream(conn, "text/event-stream", after, |said| block(self, said));
                }
                (_, Some("application/x-ndjson")) => {
                    let line = |item: &Said| item.to_json(self) + "\n";
                    return self.stream(conn, "application/x-ndjson", after, line);
                }
                _ if request.parameter("wait").is_some() && after >= self.last => {
                    return conn.wait();
                }
                _ => {
                    self.answer(conn, &request)?;
                    if !conn.is_patient {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// A page.
    pub(crate) fn answer(&self, conn: &mut Conn, request: &Request) -> io::Result<()> {
        let page = self.page(self.after(request.parameter("after")));
        conn.answer("200 OK", "content-type: application/json\r\n", &page)
    }

    fn after(&self, text: Option<&str>) -> u64 {
        match text {
            _ if self.is_deaf => 0,
            Some("earliest") => self.first - 1,
            None if self.is_run => 0,
            Some("latest") | None => self.last,
            // With `~` it is where polls begin.
            Some(position) => {
                position.strip_prefix("e-").unwrap().trim_end_matches('~').parse().unwrap()
            }
        }
    }

    fn serve_web_socket(&self, conn: &mut Conn, request: &Request, after: u64) -> io::Result<()> {
        conn.upgrade(request)?;
        self.said(after).iter().try_for_each(|said| conn.message(&said.to_json(self)))?;
        conn.wait()
    }

    fn serve_mux(&self, conn: &mut Conn, request: &Request) -> io::Result<()> {
        conn.upgrade(request)?;
        let asked = conn.receive()?;
        self.mux(&asked).iter().try_for_each(|message| conn.message(message))?;
        conn.wait()
    }

    fn serve_tcp(&self, conn: &mut Conn) -> io::Result<()> {
        let asked = conn.receive_frame()?;
        for message in self.mux(&asked) {
            conn.frame(&message)?;
        }
        conn.wait()
    }

    fn mux(&self, asked: &str) -> Vec<String> {
        let [method, id, target] = asked.split(' ').collect::<Vec<_>>()[..] else { panic!() };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let expected = if self.is_run { format!("/runs/{KEY}") } else { "/topics/x".to_owned() };
        assert_eq!((method, path), ("GET", &*expected));
        let after = self.after(query.split('&').find_map(|text| text.strip_prefix("after=")));
        let message = |said: &Said| match said {
            Said::Standing(offset) => format!("100 {id} e-{offset}"),
            Said::Gap { .. } => format!("110 {id} e-{}\n{}", self.first - 1, said.to_json(self)),
            Said::Event(offset) => format!("206 {id} e-{offset}\n{}", self.data(*offset)),
            Said::End => format!("200 {id}"),
        };
        self.said(after).iter().map(message).collect()
    }

    fn stream(
        &self,
        conn: &mut Conn,
        content_type: &str,
        after: u64,
        form: impl Fn(&Said) -> String,
    ) -> io::Result<()> {
        conn.write(format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
        ))?;
        for said in self.said(after) {
            conn.chunk(&form(&said))?;
        }
        conn.wait()
    }

    pub(crate) fn page(&self, after: u64) -> String {
        let (mut gap, mut end, mut events) = (String::new(), "", Vec::new());
        for said in self.said(after) {
            match said {
                Said::Standing(_) => {}
                Said::Gap { .. } => {
                    gap = said
                        .to_json(self)
                        .strip_prefix('{')
                        .unwrap()
                        .strip_suffix('}')
                        .unwrap()
                        .to_owned()
                        + ",";
                }
                Said::End => end = r#""end":{"reason":"ended"},"#,
                Said::Event(offset) => {
                    let data = self.data(offset);
                    events.push(format!(r#"{{"offset":{offset},"time":17.5,"data":{data}}}"#));
                }
            }
        }
        let (first, next, events) = (self.first, self.last.max(after), events.join(","));
        format!(
            r#"{{"epoch":"e","first":{first},"next":"e-{next}",{gap}{end}"events":[{events}]}}"#
        )
    }

    fn said(&self, after: u64) -> Vec<Said> {
        let mut said = vec![Said::Standing(after)];
        if after + 1 < self.first {
            said.push(Said::Gap { after, first: self.first });
        }
        let offsets = self.first.max(after + 1)..=self.last;
        said.extend(offsets.filter(|offset| Some(*offset) != self.hidden).map(Said::Event));
        said.extend(self.is_run.then_some(Said::End));
        said
    }

    /// The data of an event.
    pub(crate) fn data(&self, offset: u64) -> String {
        if self.is_run && offset == self.last { DONE.to_owned() } else { data(offset) }
    }
}

enum Said {
    Standing(u64),
    Gap { after: u64, first: u64 },
    Event(u64),
    End,
}

impl Said {
    fn to_json(&self, log: &Log) -> String {
        match self {
            Self::Standing(offset) => format!(r#"{{"position":"e-{offset}"}}"#),
            Self::Gap { after, first } => format!(
                r#"{{"gap":{{"reason":"retention","after":"e-{after}","missed":{},"resume":"e-{}"}}}}"#,
                first - 1 - after,
                first - 1
            ),
            Self::Event(offset) => {
                format!(r#"{{"position":"e-{offset}","time":17.5,"data":{}}}"#, log.data(*offset))
            }
            Self::End => r#"{"end":{"reason":"ended"}}"#.to_owned(),
        }
    }
}

fn block(log: &Log, said: &Said) -> String {
    let mut out = String::new();
    let written = match said {
        Said::Standing(offset) => write!(out, "retry: 1000\nid: e-{offset}\n\n"),
        Said::Gap { first, .. } => {
            write!(out, "event: gap\nid: e-{}\ndata: {}\n\n", first - 1, said.to_json(log))
        }
        Said::Event(offset) => write!(out, "id: e-{offset}\ndata: {}\n\n:\n\n", log.data(*offset)),
        Said::End => write!(out, "event: end\ndata: {}\n\n", said.to_json(log)),
    };
    written.unwrap();
    out
}

/// An event's data: some are `null`, some are not small.
pub(crate) fn data(offset: u64) -> String {
    match offset % 4 {
        0 => "null".to_owned(),
        1 => format!(r#"{{"n":{offset}}}"#),
        2 => format!("[\"{}\"]", "é".repeat(70)),
        _ => format!("\"{offset}\\n\""),
    }
}
