//! The words of a computation's document: distributions, criteria and algorithms.

/// A word of the document, of a fixed set.
pub(super) trait Word: Copy + 'static {
    const ALL: &'static [(&'static str, Self)];
}

/// The order and the values of a new list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Distribution {
    Random,
    Sorted,
    Reversed,
    NearlySorted,
    FewUnique,
}

impl Word for Distribution {
    const ALL: &'static [(&'static str, Self)] = &[
        ("random", Self::Random),
        ("sorted", Self::Sorted),
        ("reversed", Self::Reversed),
        ("nearly-sorted", Self::NearlySorted),
        ("few-unique", Self::FewUnique),
    ];
}

/// The order that a sort makes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Criterion {
    Ascending,
    Descending,
    ByLastDigit,
    ByDigitSum,
}

impl Word for Criterion {
    const ALL: &'static [(&'static str, Self)] = &[
        ("ascending", Self::Ascending),
        ("descending", Self::Descending),
        ("by-last-digit", Self::ByLastDigit),
        ("by-digit-sum", Self::ByDigitSum),
    ];
}

impl Criterion {
    /// Returns the number by which a value is sorted, ascending. The values of a list are from 1 to its length.
    pub(super) fn key(self, value: u32, len: usize) -> u32 {
        match self {
            Self::Ascending => value,
            Self::Descending => to_u32(len).saturating_sub(value),
            Self::ByLastDigit => value % 10,
            Self::ByDigitSum => {
                std::iter::successors(Some(value), |rest| (*rest >= 10).then_some(rest / 10))
                    .map(|rest| rest % 10)
                    .sum()
            }
        }
    }

    /// Returns the largest key that a value of a list of this length may have.
    pub(super) fn key_max(self, len: usize) -> u32 {
        match self {
            Self::Ascending | Self::Descending => to_u32(len),
            Self::ByLastDigit => 9,
            Self::ByDigitSum => 9 * digits(to_u32(len)),
        }
    }
}

/// The length of a list is far below the limit of the type.
pub(super) fn to_u32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

pub(super) fn digits(value: u32) -> u32 {
    value.checked_ilog10().unwrap_or_default() + 1
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Algorithm {
    Quick,
    Merge,
    Heap,
    Shell,
    Insertion,
    Selection,
    Bubble,
    Cocktail,
    Comb,
    Radix,
    Tim,
}

impl Word for Algorithm {
    const ALL: &'static [(&'static str, Self)] = &[
        ("quick", Self::Quick),
        ("merge", Self::Merge),
        ("heap", Self::Heap),
        ("shell", Self::Shell),
        ("insertion", Self::Insertion),
        ("selection", Self::Selection),
        ("bubble", Self::Bubble),
        ("cocktail", Self::Cocktail),
        ("comb", Self::Comb),
        ("radix", Self::Radix),
        ("tim", Self::Tim),
    ];
}

impl Algorithm {
    /// Returns true if its time grows with the square of the length.
    pub(super) fn is_quadratic(self) -> bool {
        matches!(self, Self::Insertion | Self::Selection | Self::Bubble | Self::Cocktail)
    }
}
