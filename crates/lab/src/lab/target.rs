//! The measured server: one that the lab starts by itself, or one of the user's.

use std::fmt;
use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context as _, bail};

use super::description::Description;
use super::far::Agent;

/// The path of an Anemone server's echo.
const ECHO: &str = "/echo";

/// Returns true if a server is named by a file.
pub(crate) fn is_file(server: &str) -> bool {
    !server.contains("://")
}

/// The measured server.
#[derive(Debug)]
pub(crate) enum Target {
    Reference(Reference),
    Url {
        url: String,
        address: SocketAddr,
        host: String,
        offer: Option<Box<Description>>,
    },
    /// One that an agent has started on a second machine.
    Far(Box<Agent>),
}

/// The reference server, a process of its own; it is killed when dropped.
#[derive(Debug)]
pub(crate) struct Reference {
    child: Child,
    /// Kept open, so that the server can print.
    _output: BufReader<ChildStdout>,
    web: SocketAddr,
    tcp: SocketAddr,
    tcp_echo: SocketAddr,
}

impl Target {
    /// Starts this very program as a server on free ports of this machine.
    pub(crate) fn start_reference() -> anyhow::Result<Self> {
        Self::start_reference_with(&[], &[])
    }

    /// The same with more arguments, and with variables of its environment.
    pub(crate) fn start_reference_with(
        more: &[&str],
        variables: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        Self::start_reference_at([127, 0, 0, 1].into(), more, variables)
    }

    /// The same at another address of this machine.
    pub(crate) fn start_reference_at(
        ip: IpAddr,
        more: &[&str],
        variables: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let free = &SocketAddr::new(ip, 0).to_string();
        let program = std::env::current_exe().context("finding this program")?;
        let mut child = Command::new(program)
            .args(["serve", "--demo", "--listen", free, "--tcp", free, "--tcp-echo", free])
            .args(more)
            // The longest message of the experiments, and the settings of nobody else.
            .env("ANEMONE_LIMITS__ECHO__MESSAGE_BYTES_MAX", "32MiB")
            .env_remove("ANEMONE_CONFIG")
            .envs(variables.iter().copied())
            // Ctrl-C at a terminal is for the lab, which still measures for a moment.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("starting the reference server")?;
        let output = child.stdout.take().context("the reference server has no output")?;
        let mut output = BufReader::new(output);
        let (mut web, mut tcp, mut tcp_echo) = (None, None, None);
        loop {
            if let (Some(web), Some(tcp), Some(tcp_echo)) = (web, tcp, tcp_echo) {
                return Ok(Self::Reference(Reference {
                    child,
                    _output: output,
                    web,
                    tcp,
                    tcp_echo,
                }));
            }
            let mut line = String::new();
            if output.read_line(&mut line)? == 0 {
                let _ = child.kill();
                bail!("the reference server ended before it said where it listens");
            }
            let line = line.trim();
            let after = |words: &str| line.strip_prefix(words).and_then(|rest| rest.parse().ok());
            web = web.or_else(|| after("listening on http://"));
            web = web.or_else(|| after("listening on https://"));
            tcp = tcp.or_else(|| after("tcp on "));
            tcp_echo = tcp_echo.or_else(|| after("tcp echo on "));
        }
    }

    /// Finds the server of a URL, or the one that a file describes.
    pub(crate) fn named(server: &str) -> anyhow::Result<Self> {
        if !is_file(server) {
            return Self::at(server);
        }
        if !Path::new(server).exists() {
            bail!("{server} is no file, and no URL such as http://{server}");
        }
        let described = Description::read(Path::new(server))?;
        let mut target = Self::at(&described.url)?;
        if let Self::Url { offer, .. } = &mut target {
            *offer = Some(Box::new(described));
        }
        Ok(target)
    }

    /// Returns the agent that publishes, if there is one.
    pub(crate) fn agent(&mut self) -> Option<&mut Agent> {
        match self {
            Self::Far(agent) => Some(agent),
            _ => None,
        }
    }

    /// Returns what the server offers if a file describes it. Otherwise it is an Anemone server.
    pub(crate) fn offer(&self) -> Option<&Description> {
        match self {
            Self::Url { offer, .. } => offer.as_deref(),
            _ => None,
        }
    }

    /// Returns the path of the WebSocket echo.
    pub(crate) fn echo_socket(&self) -> anyhow::Result<String> {
        let path = self.offer().map_or(Some(ECHO), |offer| offer.echo.websocket.as_deref());
        path.map(str::to_owned).context("the file has no websocket in [echo]")
    }

    /// Returns the path that sends back the body of a `POST`.
    pub(crate) fn echo_http(&self) -> anyhow::Result<String> {
        let path = self.offer().map_or(Some(ECHO), |offer| offer.echo.http.as_deref());
        path.map(str::to_owned).context("the file has no http in [echo]")
    }

    /// Finds the server of a URL.
    fn at(url: &str) -> anyhow::Result<Self> {
        let rest = url.strip_prefix("http://").with_context(|| {
            format!("{url}: a target is a URL such as http://host:8080; TLS is not measured yet")
        })?;
        let host = rest.trim_end_matches('/').to_owned();
        if host.contains('/') {
            bail!("{url}: a target is the URL of a server, without a path");
        }
        let name = if host.rsplit(':').next().is_some_and(|port| port.parse::<u16>().is_ok()) {
            host.clone()
        } else {
            format!("{host}:80")
        };
        let found = name.to_socket_addrs().with_context(|| format!("finding {host}"))?.next();
        let address = found.with_context(|| format!("{host} has no address"))?;
        Ok(Self::Url { url: url.to_owned(), address, host, offer: None })
    }

    pub(crate) fn web(&self) -> SocketAddr {
        match self {
            Self::Reference(reference) => reference.web,
            Self::Url { address, .. } => *address,
            Self::Far(agent) => agent.web,
        }
    }

    /// Returns the process of the server, if it is one that the lab has started.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::Reference(reference) => Some(reference.child.id()),
            _ => None,
        }
    }

    /// Returns the value of the field `Host`.
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

impl Drop for Reference {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_the_url_of_a_server() {
        let target = Target::at("http://127.0.0.1:8080/").unwrap();
        assert_eq!((target.web().port(), target.host()), (8080, "127.0.0.1:8080".to_owned()));
        assert_eq!(Target::at("http://127.0.0.1").unwrap().web().port(), 80);
        for wrong in ["https://127.0.0.1", "127.0.0.1:80", "http://127.0.0.1/path", "http://"] {
            assert!(Target::at(wrong).is_err(), "{wrong}");
        }
    }
}
