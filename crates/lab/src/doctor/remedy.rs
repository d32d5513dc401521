//! The settings that mend what is found, for the programs that stand in front of servers.

use serde::Serialize;

/// What can be wrong on the way to a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fault {
    /// A stream is held back until there is enough of it.
    Buffered,
    /// A quiet connection is cut.
    Idle,
    /// No WebSocket is let through.
    Upgrade,
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
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(super) struct Remedy {
    pub(super) program: &'static str,
    pub(super) setting: &'static str,
}

/// The programs, each with what their answers have in the fields `Server` or `Via`. HAProxy says nothing there.
const PROGRAMS: [(&str, &str); 6] = [
    ("nginx", "nginx"),
    ("HAProxy", ""),
    ("Caddy", "caddy"),
    ("Apache", "apache"),
    ("AWS ALB", "awselb"),
    ("Cloudflare", "cloudflare"),
];

/// The settings in the order of [`PROGRAMS`], and at the end that of the server.
const fn settings(fault: Fault) -> [&'static str; 7] {
    match fault {
        Fault::Buffered => [
            "proxy_buffering off; proxy_http_version 1.1; and no proxy_ignore_headers X-Accel-Buffering;",
            "option http-no-delay, and no compression of text/event-stream and application/x-ndjson",
            "reverse_proxy { flush_interval -1 }",
            "ProxyPass / http://… flushpackets=on, and no mod_deflate for streams",
            "targets of the type instance or ip: those of the type lambda are buffered",
            "Network > Response Buffering: off",
            "",
        ],
        Fault::Idle => [
            "proxy_read_timeout 60s; proxy_send_timeout 60s;",
            "timeout client 60s, timeout server 60s, timeout tunnel 1h",
            "reverse_proxy { transport http { read_timeout 60s } }, and no stream_timeout",
            "ProxyTimeout 60, or timeout=60 at ProxyPass",
            "idle_timeout.timeout_seconds = 60 or more",
            "nothing to set: its limit is 100 s; look at what is behind it",
            "or let the server speak sooner: [limits] heartbeat, websocket.ping_interval and wait_proxied below the time-out",
        ],
        Fault::Upgrade => [
            "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection \"upgrade\";",
            "it passes upgrades by itself in mode http: remove what deletes or denies the field Upgrade",
            "it passes upgrades by itself: remove header_up -Upgrade and header_up -Connection",
            "ProxyPass / http://… upgrade=websocket, from 2.4.47 on",
            "a target group of the protocol version HTTP1: HTTP2 and gRPC pass no WebSocket",
            "Network > WebSockets: on",
            "",
        ],
        Fault::KeepAlive => [
            "keepalive_timeout 75s; and keepalive_requests of 1000 or more",
            "option http-keep-alive instead of option httpclose, and timeout http-keep-alive 10s",
            "servers { timeouts { idle 5m } }",
            "KeepAlive On",
            "client_keep_alive.seconds = 3600",
            "nothing to set: it keeps connections; look at what is before it",
            "",
        ],
        Fault::Origin => [
            "proxy_set_header Host $http_host; proxy_set_header X-Forwarded-Proto $scheme;",
            "http-request set-header X-Forwarded-Proto https, and nothing that sets Host",
            "nothing that sets Host: no header_up Host",
            "ProxyPreserveHost On, and RequestHeader set X-Forwarded-Proto https",
            "routing.http.preserve_host_header.enabled = true",
            "no Origin Rule that overrides the Host header",
            "or tell the server: serve --allow-origin with the origin of the pages, and --trusted-proxy with the address of the proxy",
        ],
        Fault::Host => [
            "proxy_set_header Host $http_host;",
            "nothing that sets Host",
            "nothing that sets Host: no header_up Host",
            "ProxyPreserveHost On",
            "routing.http.preserve_host_header.enabled = true",
            "no Origin Rule that overrides the Host header",
            "or tell the server: serve --allow-host with the host that it is asked for",
        ],
        Fault::Connections => [
            "a greater limit_conn, or none",
            "a greater maxconn at global, frontend and server",
            "nothing to set: look at what is behind it",
            "a greater MaxRequestWorkers: each stream needs one",
            "nothing to set: look at what is behind it",
            "nothing to set: look at what is behind it",
            "or the server's own limit: [limits] connections_per_address_max, and --trusted-proxy, so that the proxy's clients count one by one",
        ],
    }
}

/// Returns the name of the program that gave an answer, if its fields say so.
pub(super) fn program(fields: &str) -> Option<&'static str> {
    let fields = fields.to_ascii_lowercase();
    let known = |(_, mark): &&(&str, &str)| !mark.is_empty() && fields.contains(mark);
    PROGRAMS.iter().find(known).map(|(name, _)| *name)
}

/// Returns the settings that mend a fault: those of the program on the way if it is known, or of all.
pub(super) fn remedies(fault: Fault, program: Option<&str>) -> Vec<Remedy> {
    let all = PROGRAMS.iter().map(|(name, _)| *name).chain(["Anemone"]).zip(settings(fault));
    let is_asked = |name: &str| program.is_none_or(|program| name == program || name == "Anemone");
    all.filter(|(name, setting)| is_asked(name) && !setting.is_empty())
        .map(|(program, setting)| Remedy { program, setting })
        .collect()
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
        let named = remedies(Fault::Idle, Some("nginx"));
        assert_eq!(named.iter().map(|one| one.program).collect::<Vec<_>>(), ["nginx", "Anemone"]);
        assert_eq!(remedies(Fault::Upgrade, None).len(), 6);
        assert_eq!(remedies(Fault::Origin, None).len(), 7);
    }
}
