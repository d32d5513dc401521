//! One connection for many calls. One task reads and writes it.
//!
//! A reply waits until its call takes it. When the waiting replies of a call exceed `waiting_bytes_max`, the task stops
//! reading, and the server must wait.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anemone_wire::multiplexed::{Id, Message, Reply};
use anemone_wire::{Position, UnixTime};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use super::open_calls::{OpenCalls, Ticket};
use super::socket::Socket;
use crate::Error;
use crate::sent::Sent;

/// The time that a connection is kept without a call. A server ends a quiet TCP connection after 60 s.
const IDLE: Duration = Duration::from_secs(30);

/// A handle of the connection. The connection ends when its last handle is dropped.
#[derive(Clone)]
pub(super) struct Connection {
    shared: Arc<Shared>,
    commands: UnboundedSender<Command>,
}

#[derive(Default)]
struct Shared(Mutex<State>);

#[derive(Default)]
struct State {
    calls: OpenCalls<Arc<Slot>>,
    end: Option<Arc<Error>>,
}

/// The task's side of a call.
struct Slot {
    arrived: UnboundedSender<Arrived>,
    /// The bytes of replies that may still wait for the call.
    room: Arc<Semaphore>,
    room_bytes: u32,
    sent: Arc<Sent>,
}

/// The caller's side of a call.
pub(super) struct OpenCall {
    connection: Connection,
    ticket: Ticket,
    arrived: UnboundedReceiver<Arrived>,
    is_over: bool,
}

pub(super) struct Arrived {
    pub(super) status: u16,
    pub(super) is_final: bool,
    pub(super) position: Option<Position>,
    pub(super) time: Option<UnixTime>,
    pub(super) fields: HeaderMap,
    pub(super) payload: Bytes,
    _room: OwnedSemaphorePermit,
}

enum Command {
    Request(Ticket, Bytes),
    Cancel(Ticket),
}

impl Connection {
    pub(super) fn start(socket: Socket) -> Self {
        let (commands, received) = unbounded_channel();
        let shared = Arc::<Shared>::default();
        tokio::spawn(run(socket, received, Arc::clone(&shared)));
        Self { shared, commands }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.shared.lock().end.is_some()
    }

    /// Begins a call. `to_message` makes the request from the call's id. Returns `None` if the connection has ended.
    pub(super) fn begin(
        &self,
        waiting_bytes_max: usize,
        sent: Arc<Sent>,
        to_message: impl FnOnce(Id) -> Bytes,
    ) -> Option<OpenCall> {
        let (sender, arrived) = unbounded_channel();
        let room_bytes = u32::try_from(waiting_bytes_max).unwrap_or(u32::MAX).max(1);
        let room = Arc::new(Semaphore::new(room_bytes as usize));
        let mut state = self.shared.lock();
        if state.end.is_some() {
            return None;
        }
        let ticket = state.calls.open(Arc::new(Slot { arrived: sender, room, room_bytes, sent }));
        drop(state);
        // If the task has ended, the call is told.
        let _ = self.commands.send(Command::Request(ticket, to_message(ticket.id)));
        Some(OpenCall { connection: self.clone(), ticket, arrived, is_over: false })
    }
}

impl OpenCall {
    /// Returns the next reply.
    ///
    /// # Errors
    /// The connection ended before the final status.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Result<Arrived, Error> {
        match self.arrived.recv().await {
            Some(arrived) => {
                self.is_over |= arrived.is_final;
                Ok(arrived)
            }
            None => {
                self.is_over = true;
                let end = self.connection.shared.lock().end.clone();
                Err(end.map_or(Error::Ended, Error::Shared))
            }
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if !self.is_over {
            // If the task has ended, so has the call.
            let _ = self.connection.commands.send(Command::Cancel(self.ticket));
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the message of a command; `None` if the call is already over.
    fn message(&self, command: Command) -> Option<Bytes> {
        let state = self.lock();
        match command {
            Command::Request(ticket, message) => {
                state.calls.of(ticket)?.sent.set(true);
                Some(message)
            }
            Command::Cancel(ticket) => {
                state.calls.of(ticket)?;
                Some(Message::Cancel(ticket.id).to_bytes().into())
            }
        }
    }

    /// Passes a reply to its call, and waits until the call has room for it.
    async fn deliver(&self, message: Bytes) -> Result<(), Error> {
        let (id, reply) = Reply::parse(&message)?;
        let Some(id) = id else {
            // It is about the connection.
            return if reply.is_final() { Err(Error::of_reply(&reply)) } else { Ok(()) };
        };
        let Some(slot) = self.lock().calls.get(id).map(Arc::clone) else { return Ok(()) };
        let arrived = Arrived {
            status: reply.status,
            is_final: reply.is_final(),
            position: reply.position,
            time: reply.time,
            fields: fields(&reply),
            payload: message.slice_ref(reply.payload),
            _room: room(&slot, message.len()).await?,
        };
        if arrived.is_final {
            self.lock().calls.close(id);
        }
        // A caller that has gone has cancelled its call.
        let _ = slot.arrived.send(arrived);
        Ok(())
    }

    fn end_if_idle(&self) -> bool {
        let mut state = self.lock();
        if state.calls.is_empty() {
            state.end = Some(Arc::new(Error::Ended));
        }
        state.end.is_some()
    }

    fn end(&self, error: Error) {
        let mut state = self.lock();
        state.end.get_or_insert_with(|| Arc::new(error));
        state.calls.clear();
    }
}

/// Waits until there is room for a message of this length. A message longer than the whole room takes the whole room.
async fn room(slot: &Slot, len: usize) -> Result<OwnedSemaphorePermit, Error> {
    /// The approximate memory of a reply besides its bytes.
    const REPLY_COST: usize = 128;
    let wanted = u32::try_from(len.saturating_add(REPLY_COST)).unwrap_or(u32::MAX);
    let room = Arc::clone(&slot.room).acquire_many_owned(wanted.min(slot.room_bytes)).await;
    // The semaphore is never closed.
    room.map_err(|_| Error::Ended)
}

fn fields(reply: &Reply<'_>) -> HeaderMap {
    let field = |(name, value): (&str, Cow<'_, [u8]>)| {
        Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_bytes(&value).ok()?))
    };
    reply.fields.iter().filter_map(field).collect()
}

async fn run(mut socket: Socket, commands: UnboundedReceiver<Command>, shared: Arc<Shared>) {
    match drive(&mut socket, commands, &shared).await {
        Ok(()) => {
            shared.end(Error::Ended);
            socket.close().await;
        }
        Err(error) => shared.end(error),
    }
}

/// Drives the connection until its last handle and call are gone, or until it has been quiet without a call for
/// [`IDLE`].
async fn drive(
    socket: &mut Socket,
    mut commands: UnboundedReceiver<Command>,
    shared: &Shared,
) -> Result<(), Error> {
    loop {
        let has_room = socket.has_room();
        tokio::select! {
            command = commands.recv(), if has_room => match command {
                Some(command) => {
                    if let Some(message) = shared.message(command) {
                        socket.queue(message);
                    }
                }
                None => return Ok(()),
            },
            message = socket.turn() => {
                if let Some(message) = message? {
                    shared.deliver(message).await?;
                }
            }
            () = sleep(IDLE) => {
                if shared.end_if_idle() {
                    return Ok(());
                }
            }
        }
    }
}
