//! `anemone man`: writes the manual pages, for packages.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};

use crate::args::Args;
use crate::exit::{BY_SIGNAL, Exit};

const VERSION: &str = concat!("anemone ", env!("CARGO_PKG_VERSION"));

/// Writes a page for `anemone` and one for each command, such as `anemone-sub.1`.
pub(crate) fn run(directory: &Path) -> anyhow::Result<()> {
    let pages = || -> io::Result<()> {
        fs::create_dir_all(directory)?;
        let mut anemone = Args::command();
        anemone.build();
        let commands = anemone.get_subcommands().filter(|command| !command.is_hide_set());
        let is_page = |command: &&Command| command.get_name() != "help";
        for command in commands.filter(is_page).chain([&anemone]) {
            let man = Man::new(command.clone()).source(VERSION);
            fs::write(directory.join(man.get_filename()), page(&man, command)?)?;
        }
        Ok(())
    };
    pages().with_context(|| format!("cannot write manual pages into {}", directory.display()))
}

fn page(man: &Man, command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    synopsis(command).to_writer(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    exit_status().to_writer(&mut page)?;
    Ok(page)
}

/// Returns the synopsis: each option with its value, which `Man` omits.
fn synopsis(command: &Command) -> Roff {
    let mut words = vec![bold(command.get_bin_name().unwrap_or(command.get_name()))];
    for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
        let names = argument.get_value_names().unwrap_or_default();
        let value: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        let takes_value = argument.get_action().takes_values();
        let (open, close) = if argument.is_required_set() { (" ", "") } else { (" [", "]") };
        words.push(roman(open));
        let flag = argument.get_long().map(|long| format!("--{long}"));
        let is_flag = flag.is_some();
        words.extend(flag.map(bold));
        if takes_value {
            let joint = match (is_flag, argument.is_require_equals_set()) {
                (true, true) => "[=",
                (true, false) => " ",
                (false, _) => "",
            };
            words.extend([roman(joint), italic(value.join(" "))]);
            words.extend((joint == "[=").then(|| roman("]")));
        }
        words.push(roman(close));
    }
    if command.has_subcommands() {
        words.extend([roman(" "), italic("COMMAND")]);
    }
    let mut section = Roff::new();
    section.control("SH", ["SYNOPSIS"]).text(words);
    section
}

/// Returns the table of exit statuses as a section. In the help text it has lines, which roff would join.
fn exit_status() -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["EXIT STATUS"]);
    let rows = Exit::ALL.iter().map(|exit| ((*exit as u8).to_string(), exit.meaning()));
    for (status, meaning) in rows.chain([(BY_SIGNAL.0.to_owned(), BY_SIGNAL.1)]) {
        section.control("TP", []).text([bold(status)]).text([roman(meaning)]);
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_the_exit_statuses() {
        let directory = tempfile::tempdir().unwrap();
        run(&directory.path().join("new")).unwrap();
        let page = |name: &str| {
            fs::read_to_string(directory.path().join("new").join(name)).expect("a page")
        };
        for name in ["anemone", "anemone-serve", "anemone-check", "anemone-sub", "anemone-pub"] {
            let page = page(&format!("{name}.1"));
            let (_, statuses) = page.split_once(".SH \"EXIT STATUS\"").expect(&page);
            assert!(
                statuses.contains("\\fB5\\fR\nsub: the topic was deleted; run: "),
                "{statuses}"
            );
        }
        for (name, part) in [
            ("anemone-sub", r" [\fB\-\-via\fR \fIVIA\fR] [\fB\-\-after\fR \fIPOSITION\fR]"),
            ("anemone-sub", r" \fIURL\fR"),
            ("anemone-pub", r" [\fIDATA\fR]"),
            ("anemone-serve", r" [\fB\-\-log\-requests\fR[=\fIWHICH\fR]]"),
            ("anemone-serve", r" [\fB\-\-exec\fR \fITOPIC=COMMAND\fR]"),
            ("anemone-serve", r" [\fB\-\-run\fR \fINAME=COMMAND\fR]"),
            ("anemone", r" \fICOMMAND\fR"),
        ] {
            let page = page(&format!("{name}.1"));
            let synopsis = page.split(".SH").find(|section| section.starts_with(" SYNOPSIS"));
            assert!(synopsis.expect(&page).contains(part), "{page}");
        }
        let pages = fs::read_dir(directory.path().join("new")).unwrap().count();
        assert_eq!(pages, 14);
    }
}
