//! The state that the connections of one thread share.

use std::any::Any;
use std::cell::RefCell;
use std::io;
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anemone_ws::reactor::Reactor;
use tokio::sync::mpsc;

use crate::alarms::Alarms;
use crate::clients::connections::http::HttpConnections;
use crate::clients::permits::ConnectionPermit;
use crate::essential::Essentials;
use crate::peer::Peer;
use crate::read::fan::Fan;
use crate::site::Site;

/// The part of the server for one thread.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) site: Arc<Site>,
    pub(crate) reactor: Reactor,
    pub(crate) essentials: Essentials,
    pub(crate) fan: Fan,
    pub(crate) alarms: Alarms,
    /// The connections of the HTTP server.
    pub(crate) http: Rc<HttpConnections>,
    /// The states of transports on this thread.
    states: RefCell<Vec<Box<dyn Any>>>,
    guests: mpsc::UnboundedSender<Guest>,
}

/// A connection for a task of its own. Permits limit their number.
#[derive(Debug)]
pub(crate) struct Guest {
    /// Must be non-blocking.
    pub(crate) stream: TcpStream,
    pub(crate) peer: Peer,
    /// The bytes that were read from it already.
    pub(crate) first: Vec<u8>,
    pub(crate) permit: ConnectionPermit,
}

impl Local {
    /// Starts the thread's loop. Connections that leave the loop come out of the receiver, and must be served by
    /// tasks.
    pub(crate) fn start(site: Arc<Site>) -> io::Result<(Self, mpsc::UnboundedReceiver<Guest>)> {
        let reactor = Reactor::start(site.memory.clone())?;
        let (guests, admitted) = mpsc::unbounded_channel();
        let essentials = Essentials::default();
        let (fan, alarms) = (Fan::new(essentials.clone()), Alarms::default());
        let ringing = alarms.clone();
        essentials.spawn(async move { ringing.ring().await });
        // Only one thread runs it: several would go through the ages at the same time.
        if !site.has_relief.swap(true, Ordering::Relaxed) {
            let relief = site.memory.clone();
            essentials.spawn(async move { relief.relieve().await });
        }
        let http = Rc::<HttpConnections>::default();
        essentials.spawn(site.surveyors.join(reactor.clone(), Rc::clone(&http)));
        let states = RefCell::default();
        Ok((Self { site, reactor, essentials, fan, alarms, http, states, guests }, admitted))
    }

    /// Returns the state of a transport on this thread, by its type. The first call creates it.
    pub(crate) fn state<T: Clone + 'static>(&self, create: impl FnOnce() -> T) -> T {
        let found = self.states.borrow().iter().find_map(|state| state.downcast_ref().cloned());
        found.unwrap_or_else(|| {
            let created = create();
            self.states.borrow_mut().push(Box::new(created.clone()));
            created
        })
    }

    /// Passes a connection to a task of its own.
    pub(crate) fn admit(&self, guest: Guest) {
        // Fails after the server has stopped, when nobody is served any more.
        let _ = self.guests.send(guest);
    }
}
