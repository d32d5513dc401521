//! The state that the handles of a loop share with it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;

use anemone_proto::{CloseFrame, Time};
use tokio::sync::Notify;

use super::protocol::Protocol;
use super::waker::Bell;
use crate::{Memory, Wanted};

/// The state through which the handles tell the loop something.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) adopted: RefCell<VecDeque<Adopted>>,
    /// Listening sockets on their way into the loop.
    pub(super) listening: RefCell<Vec<(TcpListener, Accept)>>,
    /// Set once: nobody is accepted any more.
    pub(super) is_deaf: Cell<bool>,
    /// The memory in which counts what its sockets hold.
    pub(super) memory: Memory,
    /// Those who are to let go of it, until the loop has seen to that.
    pub(super) wanted: Cell<Option<Wanted>>,
    pub(super) bell: Rc<Bell>,
    /// Set once: every connection is to be closed with this.
    pub(super) farewell: RefCell<Option<CloseFrame>>,
    /// Connections adopted and not over.
    pub(super) connections: Cell<usize>,
    pub(super) ended: Notify,
    /// The loop has panicked.
    pub(super) failed: Notify,
}

/// The function that takes those who come.
pub(super) type Accept = Box<dyn FnMut(TcpStream)>;

/// A connection on its way into the loop.
pub(super) struct Adopted {
    pub(super) stream: TcpStream,
    /// The bytes that came with the handshake.
    pub(super) first: Vec<u8>,
    /// Made in the loop, which has the clock.
    pub(super) protocol: Box<dyn FnOnce(Time) -> Box<dyn Protocol>>,
}
