//! The measured server. The lab starts it, or the user names it.

use std::fmt;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::description::Description;
use super::error::{NoServer, WrongUse};
use super::far::Agent;
use super::probe::{Http, Place, Tls};
use crate::server::{Server, Service};
use crate::server_url::ServerUrl;

/// The path of the echo of an Anemone server.
const ECHO: &str = "/echo";

/// Returns true if the user's name for a server is that of a file.
pub(crate) fn is_file(server: &str) -> bool {
    !server.contains("://") && !server.starts_with("unix:")
}

#[derive(Debug)]
pub(crate) enum Target {
    Reference(Reference),
    Url {
        url: String,
        address: SocketAddr,
        host: String,
        /// The TLS configuration; `None` if the URL does not ask for TLS.
        tls: Option<Box<Tls>>,
        offer: Option<Box<Description>>,
    },
    /// A server on a second machine that an agent has started.
    Far(Box<Agent>),
}

/// The reference server, a process that the lab starts.
#[derive(Debug)]
pub(crate) struct Reference {
    server: Server,
    web: SocketAddr,
    tcp: SocketAddr,
    tcp_echo: SocketAddr,
}

impl Target {
    /// Starts this program as a server on free ports of this machine.
    pub(crate) fn start_reference() -> anyhow::Result<Self> {
        Self::start_reference_with(&[], &[])
    }

    /// Starts a reference server with further arguments and environment variables.
    pub(crate) fn start_reference_with(
        more: &[&str],
        variables: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        Self::start_reference_at([127, 0, 0, 1].into(), more, variables)
    }

    /// Starts a reference server at another address of this machine.
    pub(crate) fn start_reference_at(
        ip: IpAddr,
        more: &[&str],
        variables: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let free = &SocketAddr::new(ip, 0).to_string();
        let program = std::env::current_exe().context("finding this program")?;
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            // The settings of the user are for other servers.
            if name.as_encoded_bytes().starts_with(b"ANEMONE_") {
                command.env_remove(name);
            }
        }
        command
            .args(["serve", "--demo", "--listen", free, "--tcp", free, "--tcp-echo", free])
            .args(more)
            // The longest message of the experiments.
            .env("ANEMONE_LIMITS__ECHO__MESSAGE_BYTES_MAX", "32MiB")
            .envs(variables.iter().copied())
            .stderr(Stdio::null());
        let prints = [Service::Web, Service::Tcp, Service::TcpEcho];
        let server = Server::start(command, &prints).with_context(|| {
            format!("starting the reference server: anemone serve --demo --listen {free} shows why")
        })?;
        let address = |service| server.address(service).context("it does not say where");
        let (web, tcp) = (address(Service::Web)?, address(Service::Tcp)?);
        let tcp_echo = address(Service::TcpEcho)?;
        Ok(Self::Reference(Reference { server, web, tcp, tcp_echo }))
    }

    /// Returns the server at a URL, or the server that a file describes.
    pub(crate) fn named(server: &str) -> anyhow::Result<Self> {
        if !is_file(server) {
            let target = Self::at(server)?;
            target.check()?;
            return Ok(target);
        }
        ensure!(
            Path::new(server).exists(),
            WrongUse(format!("{server} is neither a file nor a URL such as http://{server}"))
        );
        let described = Description::read(Path::new(server))?;
        let target = Self::at(&described.url);
        let mut target = target.with_context(|| format!("{server}, url"))?;
        if let Self::Url { offer, .. } = &mut target {
            *offer = Some(Box::new(described));
        }
        target.check()?;
        Ok(target)
    }

    /// Checks that the server answers. Without a description, it must be an Anemone server.
    fn check(&self) -> anyhow::Result<()> {
        const HEALTH: &str = "/health";
        let (host, place) = (self.host(), self.place());
        let none = |fault| NoServer(format!("no server at {host}: {fault}"));
        let mut http = Http::connect(&place).map_err(none)?;
        if self.offer().is_some() {
            return Ok(());
        }
        let reply = http.call("GET", HEALTH, "", b"").map_err(none)?;
        ensure!(
            reply.status == 200,
            NoServer(format!(
                "{host} is not an Anemone server, since GET {HEALTH} has the status {}: --target FILE describes another one",
                reply.status
            ))
        );
        Ok(())
    }

    /// Returns the agent that publishes; `None` if there is no agent.
    pub(crate) fn agent(&mut self) -> Option<&mut Agent> {
        match self {
            Self::Far(agent) => Some(agent),
            _ => None,
        }
    }

    /// Returns true for a server that a lab or an agent has started. Its limits suit the experiments.
    pub(crate) fn is_own(&self) -> bool {
        !matches!(self, Self::Url { .. })
    }

    /// Returns the description of the server; `None` for an Anemone server.
    pub(crate) fn offer(&self) -> Option<&Description> {
        match self {
            Self::Url { offer, .. } => offer.as_deref(),
            _ => None,
        }
    }

    pub(crate) fn echo_socket(&self) -> anyhow::Result<String> {
        self.offered_echo_socket().context(missing("websocket in [echo]"))
    }

    /// Returns the path of the WebSocket echo; `None` if the server has none.
    pub(crate) fn offered_echo_socket(&self) -> Option<String> {
        let path = self.offer().map_or(Some(ECHO), |offer| offer.echo.websocket.as_deref());
        path.map(str::to_owned)
    }

    /// Returns the path of an echo of a `POST`'s body.
    pub(crate) fn echo_http(&self) -> anyhow::Result<String> {
        let path = self.offer().map_or(Some(ECHO), |offer| offer.echo.http.as_deref());
        path.map(str::to_owned).context(missing("http in [echo]"))
    }

    fn at(url: &str) -> anyhow::Result<Self> {
        let wrong = |why: &str| WrongUse(format!("{url}: {why}"));
        let ServerUrl { socket, is_secure, authority, host: name, port, path } =
            ServerUrl::parse(url).map_err(|not| wrong(&not.to_string()))?;
        ensure!(
            socket.is_none(),
            wrong(
                "a Unix socket has no network to measure: give an address on which the server listens, too"
            )
        );
        ensure!(path.is_empty(), wrong("a target is the URL of a server, without a path"));
        let name = name.as_str();
        let found = (name, port).to_socket_addrs();
        let found = found.map_err(|error| NoServer(format!("finding {name}: {error}")))?;
        let address = reachable(found.collect());
        let address = address.with_context(|| NoServer(format!("{name} has no address")))?;
        let mut tls = None;
        if is_secure {
            let name = name.to_owned().try_into();
            let name = name.map_err(|_| wrong("a host is a name or an address"))?;
            tls = Some(Box::new(Tls::with(name)?));
        }
        Ok(Self::Url { url: url.to_owned(), address, host: authority, tls, offer: None })
    }

    /// Returns the place of the server's web port, without a link.
    pub(crate) fn place(&self) -> Place {
        let tls = match self {
            Self::Url { tls, .. } => tls.clone(),
            _ => None,
        };
        Place { host: self.host(), tls, ..Place::new(self.web()) }
    }

    /// Returns true if the server speaks TLS.
    pub(crate) fn is_secure(&self) -> bool {
        matches!(self, Self::Url { tls: Some(_), .. })
    }

    pub(crate) fn web(&self) -> SocketAddr {
        match self {
            Self::Reference(reference) => reference.web,
            Self::Url { address, .. } => *address,
            Self::Far(agent) => agent.web,
        }
    }

    /// Returns the process id of the server; `None` if the lab has not started it.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::Reference(reference) => Some(reference.server.pid()),
            _ => None,
        }
    }

    /// Returns the server's value for the field `Host`.
    pub(crate) fn host(&self) -> String {
        match self {
            Self::Reference(reference) => reference.web.to_string(),
            Self::Url { host, .. } => host.clone(),
            Self::Far(agent) => agent.web.to_string(),
        }
    }

    pub(crate) fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Reference(reference) => Some(reference.tcp),
            Self::Url { .. } => None,
            Self::Far(agent) => Some(agent.tcp),
        }
    }

    pub(crate) fn tcp_echo(&self) -> Option<SocketAddr> {
        match self {
            Self::Reference(reference) => Some(reference.tcp_echo),
            Self::Url { .. } => None,
            Self::Far(agent) => Some(agent.tcp_echo),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reference(_) => f.write_str("a server of this program, on this machine"),
            Self::Url { url, .. } => f.write_str(url),
            Self::Far(agent) => {
                write!(f, "a server of this program, on another machine ({})", agent.machine)
            }
        }
    }
}

/// Makes the error for an experiment that needs an entry of the server's description, if the description lacks it.
pub(crate) fn missing(what: &str) -> WrongUse {
    WrongUse(format!("the file has no {what}"))
}

/// Returns the first address at which something listens, or otherwise the first address. `localhost` has two addresses,
/// and many servers listen at only one.
fn reachable(addresses: Vec<SocketAddr>) -> Option<SocketAddr> {
    const LOOK: Duration = Duration::from_secs(3);
    let listens = |address: &&SocketAddr| TcpStream::connect_timeout(address, LOOK).is_ok();
    if addresses.len() < 2 {
        return addresses.first().copied();
    }
    addresses.iter().find(listens).or(addresses.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_several_addresses_is_the_one_that_listens() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listening = listener.local_addr().unwrap();
        let silent = SocketAddr::from(([127, 0, 0, 1], 1));
        assert_eq!(reachable(vec![silent, listening]), Some(listening));
        assert_eq!(reachable(vec![silent, silent]), Some(silent));
        assert_eq!(reachable(Vec::new()), None);
    }

    #[test]
    fn a_target_is_the_url_of_a_server() {
        let target = Target::at("http://127.0.0.1:8080/").unwrap();
        assert_eq!((target.web().port(), target.host()), (8080, "127.0.0.1:8080".to_owned()));
        assert_eq!(Target::at("http://127.0.0.1").unwrap().web().port(), 80);
        assert_eq!(Target::at("HTTP://127.0.0.1:8080").unwrap().web().port(), 8080);
        assert!(Target::at("http://[::1]:8080").unwrap().web().is_ipv6());
        let secure = Target::at("https://127.0.0.1").unwrap();
        assert!(secure.web().port() == 443 && secure.is_secure() && !target.is_secure());
        assert!(Target::at("https://[::1]:8443").unwrap().is_secure());
        for (wrong, words) in [
            ("ftp://127.0.0.1", "such as"),
            ("127.0.0.1:80", "such as"),
            ("http://", "such as"),
            ("http://127.0.0.1/path", "path"),
            ("http://127.0.0.1?query", "query"),
            ("http://user:secret@127.0.0.1", "user"),
            ("http://127.0.0.1:99999", "port"),
            ("http://:8080", "such as"),
        ] {
            let error = Target::at(wrong).unwrap_err();
            assert!(error.to_string().contains(words), "{wrong}: {error}");
            assert!(error.is::<WrongUse>(), "{wrong}");
        }
    }
}
