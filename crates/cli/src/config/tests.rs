//! Configurations with typical contents and errors, and their messages.

mod edges;
mod errors;
mod example;
mod precedence;
mod reading;
mod runs;

use super::document::Node;
use super::env::Variables;
use super::fault::Faults;
use super::place::SourceFile as File;
use super::sources::StderrTo;

use super::*;
use crate::args;

/// The configuration of this file and these variables, without any flag.
fn read(text: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    read_with(text, variables, &args::Serve::default())
}

fn read_with(
    text: &str,
    variables: &[(&str, &str)],
    flags: &args::Serve,
) -> Result<Config, ConfigError> {
    let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let node = Node::parse(File::new("a.toml", text))?;
    Config::of(Some(node), &Variables::of(variables), flags)
}

fn faults(text: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let error = read(text, variables).expect_err(text);
    error.to_string().lines().map(str::to_owned).collect()
}

/// A configuration, to be compared line by line.
fn debug(config: &Config) -> String {
    format!("{config:#?}")
}

#[track_caller]
fn assert_same(one: &Config, other: &Config) {
    let (one, other) = (debug(one), debug(other));
    let differ = one.lines().zip(other.lines()).find(|(one, other)| one != other);
    assert!(one == other, "{differ:?}");
}
