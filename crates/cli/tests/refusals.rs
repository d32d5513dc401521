//! What whoever runs the server is told of proxies that are trusted too far.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

#[allow(dead_code, reason = "other tests use the rest")]
mod support;

use std::fs::File;

use support::{Directory, SERVE, command, listening, output};

#[test]
fn a_list_of_proxies_that_has_everybody_is_warned_of() {
    let warning = "trusted_proxies has every address of IPv4: whoever reaches the server can say who they are, by which \
                   name they asked and that it was by https; name the addresses of your proxies alone";
    let everybody = ["--trusted-proxy", "128.0.0.0/1", "--trusted-proxy", "0.0.0.0/1"];
    let check = [&["check", "--listen", "127.0.0.1:0"], &everybody[..]].concat();
    let said = String::from_utf8(output(command(&check), "").stdout).unwrap();
    assert!(said.lines().any(|line| line == format!("warning: {warning}")), "{said}");
    let directory = Directory::new("everybody");
    let log = directory.path().join("log");
    for (list, is_warned) in [(&everybody[..], true), (&everybody[..2], false)] {
        let mut serve = command(SERVE);
        serve.args(list).stderr(File::create(&log).unwrap());
        drop(listening(serve));
        let said = std::fs::read_to_string(&log).unwrap();
        let is_told = said.lines().any(|line| line.contains(&format!("WARN {warning}")));
        assert_eq!(is_told, is_warned, "{said}");
    }
}
