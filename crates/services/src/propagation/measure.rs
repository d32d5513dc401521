//! The quantities that are computed for each point.

use serde::Serialize;

/// A quantity of a coverage.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Measure {
    LossDb,
    ReceivedDbm,
    FieldDbuvM,
}

impl Measure {
    pub(super) const NAMES: [(&'static str, Self); 3] = [
        ("loss_db", Self::LossDb),
        ("received_dbm", Self::ReceivedDbm),
        ("field_dbuv_m", Self::FieldDbuvM),
    ];

    pub(super) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|name| name.1 == self).map_or("", |name| name.0)
    }
}
