//! The place of a setting.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct SourceFile {
    /// The name that the user gave.
    path: PathBuf,
    text: String,
}

impl SourceFile {
    pub(crate) fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the directory of the file, to which paths in it are relative. Empty for the working directory.
    pub(crate) fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Returns the line of this byte, counted from 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.before(offset).matches('\n').count() + 1
    }

    /// Returns the column of this byte, in characters from 1.
    fn column(&self, offset: usize) -> usize {
        let line = self.before(offset).rsplit('\n').next().unwrap_or_default();
        line.chars().count() + 1
    }

    fn before(&self, offset: usize) -> &str {
        self.text.get(..offset).unwrap_or(&self.text)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) enum Place {
    /// None: the default.
    #[default]
    Default,
    File(Arc<SourceFile>, usize),
    Variable(String),
    /// The command line.
    Flag(&'static str),
}

impl Place {
    /// Orders places: those in a file by their position, before all others.
    pub(crate) fn order(&self) -> usize {
        match self {
            Self::File(_, offset) => *offset,
            Self::Default | Self::Variable(_) | Self::Flag(_) => usize::MAX,
        }
    }

    pub(crate) fn source(&self) -> Option<&SourceFile> {
        match self {
            Self::File(source, _) => Some(source),
            Self::Default | Self::Variable(_) | Self::Flag(_) => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("the default"),
            Self::File(source, offset) => {
                let (line, column) = (source.line(*offset), source.column(*offset));
                write!(f, "{}:{line}:{column}", source.path.display())
            }
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A value with its place.
#[derive(Clone)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
}

impl<T> Located<T> {
    pub(crate) fn new(value: T, place: Place) -> Self {
        Self { value, place }
    }

    pub(crate) fn by_default(value: T) -> Self {
        Self::new(value, Place::Default)
    }
}

impl<T> Deref for Located<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Formats only the value: two configurations with the same values are the same.
impl<T: fmt::Debug> fmt::Debug for Located<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_file_is_shown_as_editors_count() {
        let source = Arc::new(SourceFile::new("a/b.toml", "x\nüy = 1\n"));
        for (offset, shown) in [(0, "1:1"), (1, "1:2"), (2, "2:1"), (4, "2:2"), (99, "3:1")] {
            let place = Place::File(Arc::clone(&source), offset);
            assert_eq!(place.to_string(), format!("a/b.toml:{shown}"));
        }
    }

    #[test]
    fn paths_in_a_file_are_relative_to_where_it_is() {
        assert_eq!(SourceFile::new("/etc/anemone.toml", "").directory(), Path::new("/etc"));
        assert_eq!(SourceFile::new("anemone.toml", "").directory(), Path::new(""));
    }
}
