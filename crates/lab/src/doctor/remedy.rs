//! The settings that mend what is found, for the programs that stand in front of servers.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// What can be wrong on the way to a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Defect {
    /// A stream is held back until there is enough of it.
    Buffered,
    /// A quiet connection is cut.
    Idle,
    /// No WebSocket is let through.
    Upgrade,
    /// A WebSocket loses its subprotocol.
    Subprotocol,
    /// Answers are kept, and given again.
    Cached,
    /// HTTP/2 lets few streams through at once.
    Streams,
    /// Each request needs a connection of its own.
    KeepAlive,
    /// The server is asked for a host that is not its own.
    Host,
    /// The server does not take its own pages for its own.
    Origin,
    /// Few connections are let through at once.
    Connections,
}

/// A setting of a program.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Remedy {
    pub(super) program: String,
    pub(super) setting: String,
}

/// A program that may stand in front of a server.
#[derive(Debug, Deserialize)]
struct Program {
    name: String,
    /// What its answers have in the fields `Server` or `Via`; empty if they have nothing there.
    mark: String,
}

/// The programs, and the settings that mend each defect. The Lab page has the same file.
#[derive(Debug, Deserialize)]
struct Known {
    programs: Vec<Program>,
    settings: BTreeMap<String, Vec<Remedy>>,
}

const SERVER: &str = "Anemone";

static KNOWN: LazyLock<Option<Known>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../web/page/lab/remedies.json")).ok()
});

impl Defect {
    fn name(self) -> &'static str {
        match self {
            Self::Buffered => "buffered",
            Self::Idle => "idle",
            Self::Upgrade => "upgrade",
            Self::Subprotocol => "subprotocol",
            Self::Cached => "cached",
            Self::Streams => "streams",
            Self::KeepAlive => "keep-alive",
            Self::Host => "host",
            Self::Origin => "origin",
            Self::Connections => "connections",
        }
    }
}

/// Returns the name of the program that gave an answer, if its fields say so.
pub(super) fn program(fields: &str) -> Option<&'static str> {
    let fields = fields.to_ascii_lowercase();
    let is_known = |one: &&Program| !one.mark.is_empty() && fields.contains(&one.mark);
    let found = KNOWN.as_ref()?.programs.iter().find(is_known);
    found.map(|program| program.name.as_str())
}

/// Returns the settings that mend a defect: those of the program on the way if it is known, or of all.
pub(super) fn remedies(defect: Defect, program: Option<&str>) -> Vec<Remedy> {
    let all = KNOWN.as_ref().and_then(|known| known.settings.get(defect.name()));
    let is_asked = |name: &str| program.is_none_or(|program| [program, SERVER].contains(&name));
    all.into_iter().flatten().filter(|one| is_asked(&one.program)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_program_has_its_own_setting_and_an_unknown_one_is_one_of_six() {
        assert_eq!(program("nginx/1.22.1 "), Some("nginx"));
        assert_eq!(program(" 1.1 Caddy"), Some("Caddy"));
        assert_eq!(program("Apache/2.4.62 (Debian) "), Some("Apache"));
        assert_eq!(
            (program("awselb/2.0"), program("cloudflare")),
            (Some("AWS ALB"), Some("Cloudflare"))
        );
        assert_eq!(program(" "), None);
        let named = remedies(Defect::Idle, Some("nginx"));
        assert_eq!(
            named.iter().map(|one| one.program.as_str()).collect::<Vec<_>>(),
            ["nginx", "Anemone"]
        );
        assert_eq!(remedies(Defect::Upgrade, None).len(), 6);
        assert_eq!(remedies(Defect::Origin, None).len(), 7);
    }
}
