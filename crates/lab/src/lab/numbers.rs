//! Formats numbers for people, with groups of thousands and a real minus sign.

/// Formats a figure with three significant digits. Digits before the point are never left out.
pub(crate) fn figure(value: f64) -> String {
    fixed(value, decimals(value))
}

/// Returns the number of decimals with which a value has three significant digits.
fn decimals(value: f64) -> usize {
    // A number that is rounded up to 1, 10 or 100 gets a digit more before the point.
    match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        _ => 3,
    }
}

/// Formats a number with this many decimals.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    let digits = format!("{:.decimals$}", value.abs());
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let is_zero = !digits.contains(|digit| matches!(digit, '1'..='9'));
    let sign = if value < 0.0 && !is_zero { "−" } else { "" };
    format!("{sign}{}{rest}", grouped(whole))
}

/// Formats a number with this many decimals, and always with its sign.
pub(crate) fn signed(value: f64, decimals: usize) -> String {
    let text = fixed(value, decimals);
    if text.starts_with('−') { text } else { format!("+{text}") }
}

/// Formats a count of things.
pub(crate) fn count(number: u64) -> String {
    grouped(&number.to_string())
}

/// Formats a time as date, hour and minute in UTC. `ms` are milliseconds since the Unix epoch.
pub(crate) fn date(ms: u64) -> String {
    let (minutes, days) = (ms / 60_000 % (24 * 60), ms / 86_400_000);
    // Years begin in March, so that a leap day is the last of its year, and there are as many days in each 400 of them.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month_of_year) = (day - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    let year = era * 400 + year + u64::from(month >= 10);
    format!("{year}-{month_of_year:02}-{day:02} {:02}:{:02}", minutes / 60, minutes % 60)
}

/// Puts a comma before every third digit from the right.
fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_date_of_the_calendar() {
        for (seconds, shown) in [
            (0, "1970-01-01 00:00"),
            (951_782_399, "2000-02-28 23:59"),
            (951_782_400, "2000-02-29 00:00"),
            (951_868_800, "2000-03-01 00:00"),
            (1_709_164_800, "2024-02-29 00:00"),
            (1_767_225_599, "2025-12-31 23:59"),
            (1_767_225_600, "2026-01-01 00:00"),
            (1_795_890_300, "2026-11-28 18:25"),
            (4_107_542_400, "2100-03-01 00:00"),
        ] {
            assert_eq!(date(seconds * 1000), shown);
        }
        // No report has it, but a file may.
        assert!(date(u64::MAX).ends_with(" 14:25"), "{}", date(u64::MAX));
    }

    #[test]
    fn figures_have_three_digits_groups_and_the_minus_sign() {
        let shown = [0.1934, 3.044, 13.67, 200.4, 1234.5, -533.0, -0.02, 1e6].map(figure);
        assert_eq!(shown, ["0.193", "3.04", "13.7", "200", "1,234", "−533", "−0.020", "1,000,000"]);
        assert_eq!([fixed(12_345.67, 1), signed(-3.2, 0)], ["12,345.7", "−3"]);
        assert_eq!([signed(3.2, 0), signed(0.0, 0)], ["+3", "+0"]);
        assert_eq!([0, 999, 1000, 12_236].map(count), ["0", "999", "1,000", "12,236"]);
        assert_eq!(figure(f64::NAN), "NaN");
        // As many digits also where rounding adds one before the point, and no sign of what is rounded to nothing.
        let shown = [0.9994, 0.9999, -9.994, -9.996, 99.94, 99.96, 999.9].map(figure);
        assert_eq!(shown, ["0.999", "1.00", "−9.99", "−10.0", "99.9", "100", "1,000"]);
        assert_eq!([figure(-0.0001), fixed(-0.4, 0), signed(-0.4, 0)], ["0.000", "0", "+0"]);
    }
}
