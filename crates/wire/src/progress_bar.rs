//! A progress bar as tqdm draws it, the most usual one of Python.

use crate::ProgressLine;

impl ProgressLine {
    /// Parses a line as tqdm writes it by default: `45%|####      | 45/100 [00:01<00:01, 44.9it/s]`, maybe with `words: ` before
    /// it. The count is exact, so it tells the progress; one with units (`1.2M/3.4G`) leaves that to the percentage. Returns
    /// `None` for every other line: all these parts have to be there.
    #[must_use]
    pub fn of_bar(line: &str) -> Option<Self> {
        let (before, rest) = line.trim().split_once("%|")?;
        let (text, percent) = match before.rsplit_once(": ") {
            Some((text, percent)) => (Some(text.trim()), percent.trim_start()),
            None => (None, before),
        };
        let percent = number(percent).filter(|percent| *percent <= 100.0)?;
        let (_bar, rest) = rest.rsplit_once("| ")?;
        let (count, times) = rest.strip_suffix(']')?.split_once(" [")?;
        let (elapsed, left) = times.split_once('<')?;
        if !is_clock(elapsed) || !left.contains(", ") {
            return None;
        }
        let (part, whole) = count.trim().split_once('/')?;
        let begins_with_digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let fraction = match (number(part), number(whole)) {
            (Some(part), Some(whole)) if whole > 0.0 => part / whole,
            _ if begins_with_digit(part) && begins_with_digit(whole) => percent / 100.0,
            _ => return None,
        };
        let text = text.filter(|text| !text.is_empty()).map(str::to_owned);
        Some(Self { fraction: fraction.min(1.0), text })
    }
}

/// Parses digits, maybe with a fraction.
fn number(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| is_plain)
}

/// Returns true for `01:02`, `1:02:03` and the like.
fn is_clock(text: &str) -> bool {
    text.contains(':') && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_of_tqdm_is_progress() {
        for (line, fraction, text) in [
            (" 45%|####      | 45/100 [00:01<00:01, 44.91it/s]", 0.45, None),
            ("  0%|          | 0/3 [00:00<?, ?it/s]", 0.0, None),
            ("100%|██████████| 3/3 [00:02<00:00,  1.50it/s]", 1.0, None),
            ("train: 33%|███▎      | 1/3 [1:00:01<2:00:02, 3601.00s/it]", 1.0 / 3.0, Some("train")),
            ("a: b | c:  50%|#| 1/2 [00:01<00:01,  1.00it/s, loss=0.1]", 0.5, Some("a: b | c")),
            (" 35%|###5  | 1.20M/3.40M [00:01<00:02, 1.10MB/s]", 0.35, None),
            ("50%|#####     | 1.5/3 [00:01<00:01, 1.00it/s]", 0.5, None),
        ] {
            let bar = ProgressLine { fraction, text: text.map(str::to_owned) };
            assert_eq!(ProgressLine::of_bar(line), Some(bar), "{line}");
        }
    }

    #[test]
    fn every_other_line_is_no_bar() {
        for line in [
            "",
            "45%",
            "45%|####      |",
            "45%|####      | 45/100",
            "45%|####      | 45/100 [00:01]",
            "45%|####      | 45/100 [a<b, c]",
            "45%|####      | 45 of 100 [00:01<00:01, 1it/s]",
            "45%|####      | many/100 [00:01<00:01, 1it/s]",
            "about 45%|####      | 45/100 [00:01<00:01, 1it/s]",
            "145%|####      | 145/100 [00:01<00:01, 1it/s]",
            "45it [00:01, 44.91it/s]",
            "the disk is 45% full | 45/100 [00:01<00:01, 1it/s]",
            "-5%|#| 1/2 [00:01<00:01, 1it/s]",
        ] {
            assert_eq!(ProgressLine::of_bar(line), None, "{line}");
        }
    }
}
