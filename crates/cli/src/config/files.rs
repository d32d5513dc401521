//! `[[static]]`: directories whose files are served.

use anemone_server::{StaticDir, StaticPath};

use super::Config;
use super::document::Node;
use super::fault::{ConfigError, Faults};
use super::place::{Located, Place};
use super::table::Table;
use super::values::{parsed, path};
use crate::pages;

/// Reads a directory; `None` after an error.
pub(super) fn read(mut table: Table<'_>) -> Option<Located<StaticDir>> {
    let t = &mut table;
    let dir = t.required("dir", "the directory to serve files from, such as \"www\"", path);
    let at = t.optional("path", path_of_files);
    let cache_control = t.value("cache_control", Default::default(), parsed);
    table.finish();
    let dir = dir?;
    let path = at.map_or_else(StaticPath::root, |at| at.value);
    let place = dir.place;
    Some(Located::new(StaticDir { path, dir: dir.value, cache_control }, place))
}

/// Parses a path for files. The paths of the built-in page's scripts and styles are reserved.
fn path_of_files(node: &Node) -> Result<StaticPath, String> {
    let path: StaticPath = parsed(node)?;
    if path != StaticPath::root() && pages::is_below(path.as_str()) {
        return Err(format!(
            "{path} contains files of the built-in page, which would then be hidden: choose another path"
        ));
    }
    Ok(path)
}

/// Checks that no two directories have the same path.
pub(super) fn validate(config: &Config, faults: &Faults) {
    for (index, dir) in config.files.iter().enumerate() {
        let earlier = &config.files[..index];
        if let Some(first) = earlier.iter().find(|first| first.path == dir.path) {
            let fault = format!(
                "static.path: {} already serves the files of {} ({})",
                dir.path,
                first.dir.display(),
                first.place
            );
            faults.add(&dir.place, fault);
        }
    }
}

/// Checks the directories: each must exist, and contain nothing private. Returns warnings about likely mistakes.
///
/// # Errors
/// The first error.
pub(crate) fn check(config: &Config) -> Result<Vec<String>, ConfigError> {
    let wrong = |dir: &Located<StaticDir>, fault: &dyn std::fmt::Display| {
        let key = if matches!(dir.place, Place::Flag(_)) { "" } else { "static.dir: " };
        ConfigError::never(dir.place.clone(), format!("{key}{fault}"))
    };
    let private = [
        ("the private key of TLS", config.tls.key.as_deref()),
        ("the data directory", config.data.dir.as_deref()),
        ("the configuration", config.file.as_ref()),
    ];
    let mut warnings = Vec::new();
    for dir in &config.files {
        dir.check()
            .map_err(|error| wrong(dir, &format_args!("{:#}", anyhow::Error::new(error))))?;
        for (what, path) in private {
            if let Some(path) = path.filter(|path| dir.holds(path)) {
                let (dir_shown, path) = (dir.dir.display(), path.display());
                let fault = format_args!(
                    "{dir_shown} contains {what}, {path}, and would serve it to everyone: move one of them elsewhere"
                );
                return Err(wrong(dir, &fault));
            }
        }
        let warned = dir.warnings().into_iter();
        warnings.extend(warned.map(|warning| format!("{}: static: {warning}", dir.place)));
        warnings.extend(hidden(config, dir));
    }
    Ok(warnings)
}

/// Returns the entries of this directory that are never served, because another directory has their path.
fn hidden(config: &Config, dir: &Located<StaticDir>) -> impl Iterator<Item = String> {
    let below = |other: &Located<StaticDir>| {
        let rest = other.path.as_str().strip_prefix(dir.path.as_str())?.trim_end_matches('/');
        let hidden = dir.dir.join(rest);
        (!rest.is_empty() && hidden.symlink_metadata().is_ok()).then(|| {
            let (place, hidden, by) = (&dir.place, hidden.display(), other.dir.display());
            format!(
                "{place}: static: {hidden} is never served: {} serves the files of {by}",
                other.path
            )
        })
    };
    config.files.iter().filter_map(below)
}
