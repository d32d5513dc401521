//! New lists. The same distribution, size and seed give the same list everywhere.

use super::action::{Distribution, to_u32};

/// The values of a list with few values.
const FEW: u32 = 8;

/// In a nearly sorted list, one pair of this many elements has changed places.
const SORTED_PER_SWAP: usize = 20;

/// Makes a list whose values are from 1 to its size, which the caller has checked.
pub(super) fn make(distribution: Distribution, size: usize, seed: u64) -> Vec<u32> {
    let most = to_u32(size);
    let mut random = Random(seed);
    let mut list: Vec<u32> = (1..=most).collect();
    match distribution {
        Distribution::Sorted => {}
        Distribution::Reversed => list.reverse(),
        // Fisher and Yates.
        Distribution::Random => {
            for last in (1..size).rev() {
                list.swap(last, random.below(to_u32(last) + 1) as usize);
            }
        }
        Distribution::NearlySorted => {
            for _ in 0..size.div_ceil(SORTED_PER_SWAP) {
                let [first, second] = [(); 2].map(|()| random.below(most) as usize);
                list.swap(first, second);
            }
        }
        Distribution::FewUnique => {
            let few = FEW.min(most);
            list.fill_with(|| (random.below(few) + 1) * (most / few));
        }
    }
    list
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, and the same in every language.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number below a limit: the high 32 bits of 64, scaled.
    fn below(&mut self, limit: u32) -> u32 {
        let high = self.next() >> 32;
        ((high * u64::from(limit)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_its_published_numbers() {
        let mut random = Random(1_234_567);
        let numbers = [(); 3].map(|()| random.next());
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn a_list_has_its_distribution_and_the_same_seed_gives_it_again() {
        use Distribution::{FewUnique, NearlySorted, Random, Reversed, Sorted};
        let sorted: Vec<u32> = (1..=1_000).collect();
        for distribution in [Random, Sorted, Reversed, NearlySorted, FewUnique] {
            let list = make(distribution, 1_000, 7);
            assert_eq!(list, make(distribution, 1_000, 7));
            let is_seeded = matches!(distribution, Random | NearlySorted | FewUnique);
            assert_eq!(list != make(distribution, 1_000, 8), is_seeded, "{distribution:?}");
            assert!(list.iter().all(|value| (1..=1_000).contains(value)));
            let in_place = list.iter().zip(&sorted).filter(|(value, place)| value == place).count();
            let mut values = list.clone();
            values.sort_unstable();
            values.dedup();
            let expected = if distribution == FewUnique { 8 } else { 1_000 };
            assert_eq!(values.len(), expected, "{distribution:?}");
            match distribution {
                Sorted => assert_eq!(in_place, 1_000),
                NearlySorted => assert!((900..1_000).contains(&in_place), "{in_place}"),
                _ => assert!(in_place < 20, "{distribution:?}: {in_place}"),
            }
        }
    }

    #[test]
    fn the_smallest_lists_can_be_made() {
        use Distribution::{FewUnique, NearlySorted, Random, Reversed, Sorted};
        for distribution in [Random, Sorted, Reversed, NearlySorted, FewUnique] {
            assert_eq!(make(distribution, 1, 3), [1]);
            assert_eq!(make(distribution, 2, 3).len(), 2);
        }
    }
}
