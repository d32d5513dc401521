//! The state that the connections of one thread share.

use std::any::Any;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anemone_ws::reactor::Reactor;

use crate::alarms::Alarms;
use crate::clients::connections::http::HttpConnections;
use crate::essential::Essentials;
use crate::read::fan::Fan;
use crate::read::pages::Pages;
use crate::rounds::Rounds;
use crate::site::Site;

/// The part of the server for one thread.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) site: Arc<Site>,
    pub(crate) reactor: Reactor,
    pub(crate) essentials: Essentials,
    pub(crate) fan: Fan,
    pub(crate) alarms: Alarms,
    pub(crate) http: Rc<HttpConnections>,
    /// The rounds in which these work.
    pub(crate) http_rounds: Arc<Rounds>,
    states: RefCell<Vec<Box<dyn Any>>>,
}

impl Local {
    /// Starts the thread's loop.
    pub(crate) fn start(site: Arc<Site>) -> io::Result<Self> {
        let reactor = Reactor::start(site.memory.clone())?;
        let essentials = Essentials::default();
        let http = Rc::<HttpConnections>::default();
        let shared = http.shared();
        let fan = Fan::new(essentials.clone(), shared.state(|| Pages::new(&site.memory)));
        let alarms = Alarms::default();
        let ringing = alarms.clone();
        essentials.spawn(async move { ringing.ring().await });
        // Only one thread runs it: several would go through the ages at the same time.
        if !site.has_relief.swap(true, Ordering::Relaxed) {
            let relief = site.memory.clone();
            essentials.spawn(async move { relief.relieve().await });
        }
        let http_rounds = Arc::<Rounds>::default();
        for rounds in [&http_rounds, &shared.rounds] {
            essentials.spawn(Arc::clone(rounds).run());
        }
        let (herald, index) = (Arc::clone(&shared.herald), Arc::clone(site.hub.index()));
        essentials.spawn(herald.run(index, Arc::clone(&http_rounds)));
        essentials.spawn(site.surveyors.join(reactor.clone(), Rc::clone(&http)));
        let states = RefCell::default();
        Ok(Self { site, reactor, essentials, fan, alarms, http, http_rounds, states })
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
}
