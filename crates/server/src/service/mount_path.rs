//! The path of a mount.

use crate::request::own_path::OwnPath;

/// An error of a path at which no service can be mounted.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The text is not a path, or would have to be escaped in a URL.
    #[error(
        "{path:?} is not a path for a service: expected \"/\", or names of letters, digits, - . _ and ~, such as \
         \"/messages\""
    )]
    Malformed {
        /// The text, or its beginning.
        path: String,
    },
    /// The path is one of the server's own.
    #[error("no service can be mounted at {path}: /{first} is the server's own")]
    Own {
        /// The path.
        path: String,
        /// Its first name.
        first: &'static str,
    },
}

pub(super) fn check_path(path: &str) -> Result<(), MountError> {
    let malformed = || MountError::Malformed { path: path.chars().take(80).collect() };
    let names = path.strip_prefix('/').ok_or_else(malformed)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_name = |name: &str| !matches!(name, "" | "." | "..") && name.bytes().all(is_plain);
    if !names.is_empty() && !names.split('/').all(is_name) {
        return Err(malformed());
    }
    match OwnPath::at(path) {
        Some((own, _)) => Err(MountError::Own { path: path.to_owned(), first: own.name() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_spelling_and_is_not_the_servers_own() {
        for path in ["/", "/a", "/a/b.c", "/~a", "/topics2", "/.well-known"] {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
        for path in ["", "a", "//", "/a/", "/a//b", "/a%20b", "/ä", "/a?b", "/a#b", "/.", "/a/.."]
        {
            let malformed = MountError::Malformed { path: path.to_owned() };
            assert_eq!(check_path(path), Err(malformed), "{path}");
        }
        let own = check_path("/runs/mine").unwrap_err();
        let text = "no service can be mounted at /runs/mine: /runs is the server's own";
        assert_eq!(own.to_string(), text);
    }
}
