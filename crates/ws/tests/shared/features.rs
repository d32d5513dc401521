//! The features have the documented dependencies, and no others.
#![allow(clippy::unwrap_used)]

use std::process::Command;

/// The crates that a program has with these features of this one, procedural macros left out.
fn dependencies(features: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--package", "anemone-ws", "--prefix", "none"])
        .args(["--edges", "normal,no-proc-macro", "--target", "all", "--format", "{p}"])
        .args(["--no-default-features", "--features", features])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    tree.lines().map(|line| line.split_once(' ').unwrap().0.to_owned()).collect()
}

fn has(features: &str, name: &str) -> bool {
    dependencies(features).iter().any(|dependency| dependency == name)
}

#[test]
fn no_cryptography_comes_but_with_the_feature_that_names_it() {
    for (features, has_rustls, has_provider) in
        [("", false, false), ("tls", true, false), ("aws-lc-rs", true, true)]
    {
        assert_eq!(has(features, "rustls"), has_rustls, "{features}");
        assert_eq!(has(features, "aws-lc-rs"), has_provider, "{features}");
        assert!(!has(features, "ring"), "{features}");
    }
}
