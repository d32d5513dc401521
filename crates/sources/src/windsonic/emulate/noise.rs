//! Damages lines on purpose, as a bad cable does.

use fastrand::Rng;

/// The number of bytes that are added to an overlong line. They are more than any reader should hold.
const OVERLONG_BYTES: usize = 300;

/// Damages lines at random.
#[derive(Clone, Debug)]
pub(crate) struct Noise {
    probability: f64,
    rng: Rng,
}

impl Noise {
    /// Creates the noise. Each line is damaged with this probability, 0 to 1.
    pub(crate) fn new(probability: f64, seed: u64) -> Self {
        Self { probability, rng: Rng::with_seed(seed) }
    }

    /// Returns the line as it arrives. Damage is a flipped bit, a lost byte, inserted garbage, a lost second half, or a
    /// long run of garbage instead of the line end.
    pub(crate) fn pass(&mut self, mut line: Vec<u8>) -> Vec<u8> {
        if line.is_empty() || self.rng.f64() >= self.probability {
            return line;
        }
        // The line end is not damaged, since its loss alone changes no message.
        let visible = line.trim_ascii_end().len().max(1);
        let at = self.rng.usize(..visible);
        match self.rng.u8(..5) {
            0 => line[at] ^= 1 << self.rng.u8(..8),
            1 => drop(line.remove(at)),
            2 => {
                let garbage: Vec<u8> =
                    (0..self.rng.usize(1..=8)).map(|_| self.rng.u8(..)).collect();
                line.splice(at..at, garbage);
            }
            3 => line.truncate(visible / 2),
            _ => {
                line.truncate(visible);
                line.resize(visible + OVERLONG_BYTES, b'U');
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] = b"\x02Q,229,002.74,M,00,\x0316\r\n";

    fn passed(probability: f64) -> Vec<Vec<u8>> {
        let mut noise = Noise::new(probability, 7);
        (0..1000).map(|_| noise.pass(LINE.to_vec())).collect()
    }

    #[test]
    fn with_probability_0_nothing_and_with_1_everything_is_damaged() {
        assert!(passed(0.0).iter().all(|line| line == LINE));
        assert!(passed(1.0).iter().all(|line| line != LINE));
    }

    #[test]
    fn every_kind_of_damage_occurs() {
        let lines = passed(1.0);
        let with_len = |len: usize| lines.iter().filter(|line| line.len() == len).count();
        assert!(with_len(LINE.len()) > 100, "flipped bits");
        assert!(with_len(LINE.len() - 1) > 100, "lost bytes");
        assert!(with_len(11) > 100, "halves");
        assert!(with_len(LINE.len() - 2 + OVERLONG_BYTES) > 100, "overlong lines");
        let garbage = LINE.len() + 1..=LINE.len() + 8;
        assert!(lines.iter().filter(|line| garbage.contains(&line.len())).count() > 100);
    }
}
