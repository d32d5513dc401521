//! An installation: its version, completions, manual pages, and the words of the README.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::process::Command;

use anemone_testing::process::{command, output};
use tempfile::tempdir;

const MANIFEST: &str = include_str!("../../../../Cargo.toml");
const README: &str = include_str!("../../../../README.md");
const TOOLCHAIN: &str = include_str!("../../../../rust-toolchain.toml");

fn said(args: &[&str]) -> String {
    let output = output(command(args), "");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The text between the quotes after this.
fn quoted<'a>(text: &'a str, before: &str) -> &'a str {
    text.split_once(before).expect(before).1.split('"').nth(1).unwrap()
}

#[test]
fn the_version_is_one_line_with_the_name_of_the_command() {
    assert_eq!(said(&["--version"]), "anemone 0.1.0\n");
    assert_eq!(quoted(MANIFEST, "[workspace.package]\nversion"), "0.1.0");
}

#[test]
fn the_readme_says_which_rust_and_how_to_install() {
    let rust = quoted(MANIFEST, "rust-version");
    let channel = quoted(TOOLCHAIN, "channel");
    assert!(channel.starts_with(&format!("{rust}.")), "{channel} for {rust}");
    assert!(README.contains(&format!("Rust {rust}")), "the README says Rust {rust}");
    assert!(README.contains("    cargo install --locked --path crates/cli "));
}

#[test]
fn what_is_installed_has_no_symbols_and_what_is_measured_may_have_them() {
    let profile = |name: &str| {
        let (_, rest) = MANIFEST.split_once(&format!("[profile.{name}]\n")).expect(name);
        rest.split("\n[").next().unwrap().to_owned()
    };
    assert!(profile("release").contains("strip = \"symbols\""));
    assert!(profile("perf").contains("strip = \"none\""));
}

fn flags(command: &str) -> Vec<String> {
    let help = said(&[command, "--help"]);
    let flags = help.lines().filter_map(|line| {
        let flag = line.trim_start().split_once("--")?;
        let is_flag = flag.0.is_empty() || flag.0.starts_with('-');
        is_flag
            .then(|| format!("--{}", flag.1.split([' ', '=', ',', '[']).next().unwrap_or_default()))
    });
    flags.collect()
}

#[test]
fn completions_and_manual_pages_have_every_flag() {
    let directory = tempdir().unwrap();
    said(&["man", directory.path().to_str().unwrap()]);
    let scripts = ["bash", "zsh", "fish"].map(|shell| said(&["completions", shell]));
    for command in ["serve", "check", "sub", "pub", "topics", "windsonic"] {
        let page = directory.path().join(format!("anemone-{command}.1"));
        let page = std::fs::read_to_string(page).unwrap().replace('\\', "");
        let flags = flags(command);
        assert!(flags.len() > 3, "{command}: {flags:?}");
        for flag in flags {
            assert!(page.contains(&flag), "{flag} is not in the manual page of {command}");
            for script in &scripts {
                let name = flag.trim_start_matches('-');
                assert!(script.contains(name), "{command} {flag} cannot be completed");
            }
        }
    }
}

#[test]
fn bash_takes_its_completions() {
    let script = "source <(\"$1\" completions bash) && complete -p anemone && \
                  COMP_WORDS=(anemone sub --ou) COMP_CWORD=2 && _anemone anemone --ou sub && \
                  echo \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    bash.args(["-c", script, "bash", env!("CARGO_BIN_EXE_anemone")]);
    let output = output(bash, "");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.ends_with("\n--output\n"), "{said}");
}

#[test]
fn another_shell_is_told_which_there_are() {
    let output = output(command(&["completions", "tcsh"]), "");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("[possible values: bash, zsh, fish]"), "{said}");
}
