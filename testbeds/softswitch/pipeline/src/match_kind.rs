//! How a key field matches.

/// `match_kind`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `exact`
    Exact,
    /// `lpm`
    Lpm,
    /// `ternary`
    Ternary,
    /// `range`
    Range,
    /// `optional`
    Optional,
}

impl Kind {
    /// From its P4 name.
    pub fn named(name: &str) -> Option<Kind> {
        Some(match name {
            // The partition of an algorithmic TCAM is part of what must be equal.
            "exact" | "atcam_partition_index" => Kind::Exact,
            "lpm" => Kind::Lpm,
            "ternary" => Kind::Ternary,
            "range" => Kind::Range,
            "optional" => Kind::Optional,
            _ => return None,
        })
    }

    /// Its P4 name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Exact => "exact",
            Kind::Lpm => "lpm",
            Kind::Ternary => "ternary",
            Kind::Range => "range",
            Kind::Optional => "optional",
        }
    }

    /// Entries may overlap, so that they want a priority.
    pub fn wants_priority(self) -> bool {
        matches!(self, Kind::Ternary | Kind::Range | Kind::Optional)
    }
}
