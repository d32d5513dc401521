//! The names of this machine.
//!
//! A server that listens everywhere is opened by them from the machines around. Nobody elsewhere can point them at another
//! address: the first is this machine's own, and names that end in `.local` are only looked up on the local network (RFC
//! 6762).

use rustix::system::uname;

/// Returns the host name as the system has it, its first label, and that label with `.local`.
pub(crate) fn names() -> Vec<String> {
    match uname().nodename().to_str() {
        Ok(name) => names_of(name),
        Err(_) => Vec::new(),
    }
}

fn names_of(host_name: &str) -> Vec<String> {
    let host_name = host_name.to_ascii_lowercase();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let label = host_name.split('.').next().unwrap_or_default();
    // A number alone would be an address.
    let is_number = label.bytes().all(|byte| byte.is_ascii_digit());
    if is_number || !host_name.bytes().all(is_name) {
        return Vec::new();
    }
    let mut names = vec![host_name.clone(), label.to_owned(), format!("{label}.local")];
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_its_name_and_the_one_of_the_local_network() {
        for (host_name, names) in [
            ("box", &["box", "box.local"][..]),
            ("Box", &["box", "box.local"]),
            ("box.local", &["box.local", "box", "box.local"]),
            ("box.lan.example", &["box.lan.example", "box", "box.local"]),
            ("my-pi_4", &["my-pi_4", "my-pi_4.local"]),
            ("", &[]),
            ("(none)", &[]),
            ("127.0.0.1", &[]),
            (".example", &[]),
            ("a b", &[]),
        ] {
            assert_eq!(names_of(host_name), names, "{host_name}");
        }
    }
}
