//! Suggestions for a wrong command line.

use clap::CommandFactory as _;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::Args;
use crate::config::closest;

/// Adds a suggestion to an error, if there is an obvious one. `words` are those of the command line.
pub(crate) fn with_tip(mut error: clap::Error, words: &[String]) -> clap::Error {
    if let Some(tip) = of_lab(&error) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
        return error;
    }
    let unknown = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(unknown))) => unknown.clone(),
        _ => return error,
    };
    let secret = secret(words, &unknown);
    if secret.is_some() {
        // A flag of similar letters has nothing to do with it.
        error.remove(ContextKind::SuggestedArg);
    }
    let has_near = error.get(ContextKind::SuggestedArg).is_some();
    let near = || near(words, &unknown).filter(|_| !has_near);
    if let Some(tip) = secret.or_else(|| tip(words, &unknown)).or_else(near) {
        let tips = ContextValue::StyledStrs(vec![StyledStr::from(tip)]);
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

/// Returns the experiment of the lab that was meant, where the word `lab` is missing.
fn of_lab(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let command = Args::command();
    let lab = command.find_subcommand("lab")?;
    let mut experiments = lab.get_positionals().flat_map(clap::Arg::get_possible_values);
    let is_one = experiments.any(|experiment| experiment.matches(name, false));
    is_one.then(|| format!("did you mean anemone lab {name}?"))
}

/// Returns the flag of the command that was probably meant, where clap finds none.
fn near(words: &[String], unknown: &str) -> Option<String> {
    let name = unknown.strip_prefix("--")?;
    let command = Args::command();
    let command = words.iter().find_map(|word| command.find_subcommand(word))?;
    let flags = command.get_arguments().filter_map(clap::Arg::get_long);
    closest(name, flags).map(|flag| format!("did you mean --{flag}?"))
}

/// The flags of other programs for a token.
const TOKENS: [&str; 4] = ["--token", "--bearer", "--api-key", "--auth-token"];
/// The flags of other programs for a user and a password.
const PASSWORDS: [&str; 8] = [
    "--password",
    "--pass",
    "--user",
    "--username",
    "--auth",
    "--basic-auth",
    "--credential",
    "-u",
];

const NO_USERS: &str = "the server has no users and no passwords: everybody who reaches its port may read; let a proxy in \
                        front ask who they are (docs/DEPLOY.md, \"Who may read\")";
const TOKEN_FIELD: &str = "a token goes into a header field: -H 'Authorization: Bearer TOKEN'";
const PASSWORD_FIELD: &str = "a password goes into a header field: -H \"Authorization: Basic $(printf %s NAME:PASSWORD | base64)\"";

/// Returns a suggestion for those who want to say who may read, or who they are.
fn secret(words: &[String], unknown: &str) -> Option<String> {
    let field = match unknown {
        _ if TOKENS.contains(&unknown) => TOKEN_FIELD,
        _ if PASSWORDS.contains(&unknown) => PASSWORD_FIELD,
        _ => return None,
    };
    let command = Args::command();
    let command = words.iter().skip(1).find_map(|word| command.find_subcommand(word))?;
    let has = |name| command.get_arguments().any(|flag| flag.get_long() == Some(name));
    match (has("header"), has("listen")) {
        (true, _) => Some(field.to_owned()),
        (_, true) => Some(NO_USERS.to_owned()),
        _ => None,
    }
}

/// Returns a suggestion for `serve` and `check`, which have most flags and no arguments.
fn tip(words: &[String], unknown: &str) -> Option<String> {
    let command = words.iter().position(|word| ["serve", "check"].contains(&word.as_str()))?;
    let words = &words[command..];
    let name = words.first()?;
    if ["--port", "-p"].contains(&unknown) {
        let value = words.iter().position(|word| word == unknown).and_then(|at| words.get(at + 1));
        let joined = words.iter().find_map(|word| word.strip_prefix("--port="));
        let port = value.map(String::as_str).or(joined).and_then(|port| port.parse::<u16>().ok());
        return Some(format!(
            "the port is part of --listen: --listen 127.0.0.1:{}",
            port.unwrap_or(8080)
        ));
    }
    let at = words.iter().position(|word| word == unknown)?;
    let rest: Vec<&str> =
        words[at..].iter().map(String::as_str).take_while(|word| !word.starts_with("--")).collect();
    let before = ["--exec", "--run"].map(|flag| Some((flag, value_before(words, at, flag)?)));
    if let Some((flag, value)) = before.into_iter().flatten().next() {
        let (name, program) = value.split_once('=')?;
        let line = quoted(&[&[program], &rest[..]].concat());
        return Some(format!("put the command in quotes: {flag} {name}={line}"));
    }
    match at {
        _ if unknown.starts_with('-') => None,
        1 if unknown.ends_with(".toml") => {
            Some(format!("give a configuration file with --config: {name} --config {unknown}"))
        }
        1 => Some(format!(
            "to publish the lines of a command, give it with the topic's name: {name} --exec NAME={}",
            quoted(&rest)
        )),
        _ => None,
    }
}

/// Returns the value of this flag right before this word.
fn value_before<'a>(words: &'a [String], at: usize, flag: &str) -> Option<&'a str> {
    let before = words.get(at.checked_sub(1)?)?;
    let joined = before.strip_prefix(flag).and_then(|rest| rest.strip_prefix('='));
    joined.or_else(|| (words.get(at.checked_sub(2)?)? == flag).then_some(before))
}

fn quoted(words: &[&str]) -> String {
    format!("'{}'", words.join(" ").replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Args;

    #[test]
    fn the_likeliest_slips_are_told_what_to_write() {
        for (line, tip) in [
            ("serve --exec cpu=vmstat 1", "put the command in quotes: --exec cpu='vmstat 1'"),
            (
                "serve --demo --exec=cpu=vmstat -n 1 --echo",
                "put the command in quotes: --exec cpu='vmstat -n 1'",
            ),
            (
                "serve --exec a=awk '{print}'",
                r"put the command in quotes: --exec a='awk '\''{print}'\'''",
            ),
            (
                "serve vmstat 1",
                "to publish the lines of a command, give it with the topic's name: serve --exec NAME='vmstat 1'",
            ),
            ("serve --run a=python3 a.py", "put the command in quotes: --run a='python3 a.py'"),
            ("serve --port 8081", "the port is part of --listen: --listen 127.0.0.1:8081"),
            ("serve --port=8081", "the port is part of --listen: --listen 127.0.0.1:8081"),
            ("serve --demo -p 8081", "the port is part of --listen: --listen 127.0.0.1:8081"),
            ("check -p", "the port is part of --listen: --listen 127.0.0.1:8080"),
            ("serve --rnu a=b", "did you mean --run?"),
            ("advise --rate 1/min", "did you mean anemone lab advise?"),
            ("serve --token x", NO_USERS),
            ("serve --demo --password=x", NO_USERS),
            ("check --basic-auth a:b", NO_USERS),
            ("sub http://a --token x", TOKEN_FIELD),
            ("topics http://a -u a:b", PASSWORD_FIELD),
            ("check my.toml", "give a configuration file with --config: check --config my.toml"),
        ] {
            let words: Vec<String> =
                format!("anemone {line}").split(' ').map(str::to_owned).collect();
            let error = with_tip(Args::try_parse_from(&words).expect_err(line), &words);
            assert_eq!(error.exit_code(), 2, "{line}");
            let said = error.to_string();
            assert!(said.contains(&format!("\n\n  tip: {tip}\n\n")), "{line}: {said}");
            assert_eq!(said.matches("  tip: ").count(), 1, "{line}: {said}");
        }
        for line in ["serve --demo x", "sub --port", "serve --lisen a", "pub"] {
            let words: Vec<String> =
                format!("anemone {line}").split(' ').map(str::to_owned).collect();
            let error = Args::try_parse_from(&words).expect_err(line).to_string();
            let same = with_tip(Args::try_parse_from(&words).expect_err(line), &words);
            assert_eq!(same.to_string(), error);
        }
    }
}
