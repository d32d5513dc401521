//! The state that the handles of a loop share with it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;

use anemone_proto::{CloseFrame, Time};
use tokio::sync::Notify;

use super::protocol::Protocol;
use super::survey::{LoopFigures, Surveys};
use super::waker::WakeQueue;
use crate::{Memory, Release};

/// The state that handles change to tell the loop something.
#[derive(Default)]
pub(super) struct LoopState {
    pub(super) adopted: RefCell<VecDeque<Adopted>>,
    /// Listening sockets that the loop has yet to take.
    pub(super) listening: RefCell<Vec<(TcpListener, OnAccept)>>,
    /// Set once: nothing is accepted any more.
    pub(super) is_stopped: Cell<bool>,
    pub(super) memory: Memory,
    /// The connections that must release memory, until the loop has handled that.
    pub(super) release: Cell<Option<Release>>,
    pub(super) wakes: Rc<WakeQueue>,
    /// Set once: every connection is closed with this frame.
    pub(super) shutdown: RefCell<Option<CloseFrame>>,
    /// The number of adopted connections that are not over.
    pub(super) connections: Cell<usize>,
    pub(super) ended: Notify,
    /// The open questions about the connections.
    pub(super) surveys: Surveys,
    /// The figures as of the last turn.
    pub(super) figures: Cell<LoopFigures>,
    pub(super) panicked: Notify,
}

pub(super) type OnAccept = Box<dyn FnMut(TcpStream)>;

/// A connection that the loop has yet to take.
pub(super) struct Adopted {
    pub(super) stream: TcpStream,
    /// The bytes that came with the handshake.
    pub(super) first: Vec<u8>,
    /// Called in the loop, which has the clock.
    pub(super) protocol: Box<dyn FnOnce(Time) -> Box<dyn Protocol>>,
}
