//! The kinds of surroundings that the empirical models tell apart.

/// The surroundings of the mobile.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Environment {
    /// The centre of a large city.
    UrbanLarge,
    /// A small or medium city.
    Urban,
    /// A suburb.
    Suburban,
    /// Open country, without trees or houses in the way.
    Open,
}

impl Environment {
    /// Each with its name in requests.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("urban-large", Self::UrbanLarge),
        ("urban", Self::Urban),
        ("suburban", Self::Suburban),
        ("open", Self::Open),
    ];
}
