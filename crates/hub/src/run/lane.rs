//! The lanes of runs: one for works that compute, and one for light works, which sleep nearly all the time. Each lane has
//! slots and a queue of its own, so that a run waits only for others of its lane. Pure.

/// The part of the time for which a light work computes at most: one in so many.
pub(crate) const LIGHT_ONE_IN: u32 = 16;

/// The most slots for light works: each is a thread.
const LIGHT_SLOTS_MAX: usize = 256;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RunLane {
    Computing,
    /// The lane of light works, which sleep nearly all the time.
    Light,
}

impl RunLane {
    pub(crate) const ALL: [Self; 2] = [Self::Computing, Self::Light];

    /// Returns the number of its slots. All light works together compute at most as much as there are slots for those that
    /// compute.
    pub(crate) fn slots(self, running_max: usize) -> usize {
        match self {
            Self::Computing => running_max,
            Self::Light => running_max.saturating_mul(LIGHT_ONE_IN as usize).min(LIGHT_SLOTS_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Returns the words of a text, without the marks of its comments and with one space between two words.
    fn words(path: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = fs::read_to_string(root.join(path)).unwrap();
        let words = text.split_whitespace().filter(|word| !["#", "///"].contains(word));
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_texts_tell_how_many_slots_light_works_have() {
        let slots =
            format!("{LIGHT_ONE_IN} times as many slots of their own, at most {LIGHT_SLOTS_MAX}");
        for path in [
            "anemone.toml",
            "crates/hub/src/run/limits.rs",
            "docs/COMPUTATIONS.md",
            "docs/OPERATE.md",
            "docs/PROTOCOL.md",
        ] {
            assert!(words(path).contains(&slots), "{path}");
        }
        for path in ["docs/COMPUTATIONS.md", "docs/PROTOCOL.md"] {
            let share = format!("at most a {LIGHT_ONE_IN}th of a processor");
            assert!(words(path).contains(&share), "{path}");
        }
    }

    #[test]
    fn light_works_have_so_many_times_the_slots_up_to_a_limit() {
        let slots = |running_max| RunLane::ALL.map(|lane| lane.slots(running_max));
        assert_eq!(slots(1), [1, 16]);
        assert_eq!(slots(16), [16, 256]);
        assert_eq!(slots(usize::MAX), [usize::MAX, 256]);
    }
}
