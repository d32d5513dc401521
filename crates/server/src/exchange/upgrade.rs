//! WebSocket handshakes: the descriptor of a transport that answers them, and response ones.

use std::sync::Arc;

use anemone_ws::proto::handshake::HandshakeResponse;
use anemone_ws::switching_protocols;
use futures_util::future::BoxFuture;
use http::{Request, Response};

use crate::exchange::handoff::{Handoff, Reply, Successor};
use crate::exchange::read_request::ReadRequest;
use crate::limits::LimitsTable;
use crate::reply::body::{Body, full};
use crate::request::client::Client;
use crate::request::handshake::Head;
use crate::request::own_path::ReadPath;
use crate::request::path;
use crate::service::mounted::Mounted;
use crate::site::Site;
use crate::stop::Stop;
use crate::transport_name::TransportName;
use crate::{Options, Problem};

/// A transport that takes over a connection after a handshake.
#[derive(Debug)]
pub(crate) struct HandshakeTransport {
    pub(crate) name: TransportName,
    pub(crate) subprotocols: &'static [&'static str],
    pub(crate) limits: LimitsTable,
    pub(crate) route: HandshakeRoute,
}

/// The paths of a transport for handshakes.
#[derive(Debug)]
pub(crate) enum HandshakeRoute {
    /// The path of each topic and each run.
    Topic(fn(&Site, &ReadRequest, &HandshakeResponse) -> Result<Successor, Problem>),
    /// The path of each service, and all paths below it.
    Service(ServiceTakeOver),
    Path {
        path: &'static str,
        is_offered: fn(&Options) -> bool,
        take_over: fn(&Site, Client, &HandshakeResponse) -> Result<Successor, Problem>,
        post: Option<Post>,
    },
}

pub(crate) type ServiceTakeOver =
    fn(&Site, Client, &Head<'_>, &Arc<Mounted>, &HandshakeResponse) -> Result<Successor, Problem>;

pub(crate) type Post =
    for<'a> fn(Request<Body>, &'a Site, Stop) -> BoxFuture<'a, Result<Response<Body>, Problem>>;

impl HandshakeTransport {
    pub(crate) fn is_at(&self, site: &Site, path: &str) -> bool {
        match self.route {
            HandshakeRoute::Topic(_) => ReadPath::at(path).is_some(),
            HandshakeRoute::Service(_) => path::is_normal(path) && site.service(path).is_some(),
            HandshakeRoute::Path { path: own, .. } => path == own && site.offered.contains(&own),
        }
    }

    /// Returns its own path, if it has one and is offered.
    pub(crate) fn offered_path(&self, options: &Options) -> Option<&'static str> {
        match self.route {
            HandshakeRoute::Path { path, is_offered, .. } => is_offered(options).then_some(path),
            HandshakeRoute::Topic(_) | HandshakeRoute::Service(_) => None,
        }
    }

    /// Accepts a handshake, or returns the first unmet requirement. `read` is set for a topic or a run.
    pub(crate) fn accept(
        &self,
        site: &Site,
        client: Client,
        head: &Head<'_>,
        read: Option<&ReadRequest>,
    ) -> Result<Upgrade, Problem> {
        let mount = site.service(head.path);
        let subprotocols = match &mount {
            // Only its replies have positions.
            Some(mount) if !mount.is_run_service() => &[],
            _ => self.subprotocols,
        };
        let response = head.accept(subprotocols, site.limits.deflate.as_ref())?;
        let successor = match (&self.route, read) {
            (HandshakeRoute::Path { take_over, .. }, _) => take_over(site, client, &response)?,
            (HandshakeRoute::Topic(take_over), Some(read)) => take_over(site, read, &response)?,
            (HandshakeRoute::Service(take_over), _) => {
                let mount = mount.ok_or_else(|| Problem::nothing_at(head.path))?;
                take_over(site, client, head, mount, &response)?
            }
            (HandshakeRoute::Topic(_), None) => return Err(Problem::nothing_at(head.path)),
        };
        let handoff = Handoff::new(successor, self.name, self.limits, response.deflate.clone());
        Ok(Upgrade { response, handoff })
    }
}

/// An accepted handshake.
pub(crate) struct Upgrade {
    pub(crate) response: HandshakeResponse,
    pub(crate) handoff: Handoff,
}

impl From<Upgrade> for Reply {
    fn from(Upgrade { response, handoff }: Upgrade) -> Self {
        let response = switching_protocols(&response).map(|()| full(""));
        Self { handoff: Some(handoff), ..response.into() }
    }
}
