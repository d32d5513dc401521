//! Exact decimal numbers, as instruments write them. The speed `002.74` is not the same as the double nearest to it.
//! Pure.

use std::fmt;

/// A decimal number as an instrument writes it, exact to six decimals.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Decimal(i64);

impl Decimal {
    /// The number of decimals that are exact.
    pub(crate) const DECIMALS: usize = 6;
    const ONE: i64 = 1_000_000;

    pub(crate) const fn millionths(millionths: i64) -> Self {
        Self(millionths)
    }

    pub(crate) const fn hundredths(hundredths: i64) -> Self {
        Self(hundredths * Self::ONE / 100)
    }

    pub(crate) const fn whole(number: u16) -> Self {
        Self(number as i64 * Self::ONE)
    }

    /// Rounds to two decimals, as the instrument does.
    pub(crate) fn round(value: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "a cast from f64 saturates")]
        let hundredths = (value * 100.0).round() as i32;
        Self::hundredths(hundredths.into())
    }

    /// Returns the nearest floating-point number.
    pub(crate) fn as_f64(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "11 digits at most, and a double holds 15")]
        let (millionths, one) = (self.0 as f64, Self::ONE as f64);
        millionths / one
    }

    pub(crate) fn as_whole(self) -> Option<i64> {
        (self.0 % Self::ONE == 0).then_some(self.0 / Self::ONE)
    }
}

impl std::ops::Neg for Decimal {
    type Output = Self;

    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl fmt::Display for Decimal {
    /// Formats the number as `002.74`, and with the flag `+` as `+002.74`. It has two decimals, or more if the number
    /// has more.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match (self.0 < 0, f.sign_plus()) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        let (value, one) = (self.0.unsigned_abs(), Self::ONE.unsigned_abs());
        let decimals = format!("{:06}", value % one);
        let (first, rest) = decimals.split_at(2);
        write!(f, "{sign}{:03}.{first}{}", value / one, rest.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_written_with_two_decimals_or_as_many_as_it_has() {
        for (millionths, text, signed) in [
            (2_740_000, "002.74", "+002.74"),
            (0, "000.00", "+000.00"),
            (-50_000, "-000.05", "-000.05"),
            (4_125_000, "004.125", "+004.125"),
            (11_811_020_001, "11811.020001", "+11811.020001"),
        ] {
            let number = Decimal::millionths(millionths);
            assert_eq!((number.to_string(), format!("{number:+}")), (text.into(), signed.into()));
        }
    }

    #[test]
    fn as_a_double_it_is_the_one_nearest_to_its_text() {
        for text in ["002.74", "311.67", "004.125", "11811.02", "000.05"] {
            let number: f64 = text.parse().unwrap();
            #[expect(clippy::cast_possible_truncation, reason = "far below the limit")]
            let decimal = Decimal::millionths((number * 1e6).round() as i64);
            assert_eq!((decimal.to_string().as_str(), decimal.as_f64()), (text, number));
        }
    }
}
