/// The match kind of a table's key field: the kinds of core.p4, and those that PSA and v1model add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchKind {
    /// Exact match: the field equals the value.
    Exact,
    /// Longest prefix match (LPM).
    Lpm,
    /// Ternary match: value and mask.
    Ternary,
    /// Range match: lower and upper bound, both inclusive.
    Range,
    /// Optional match: the field equals the value, or the entry omits the field.
    Optional,
}

impl MatchKind {
    const ALL: [Self; 5] = [
        Self::Exact,
        Self::Lpm,
        Self::Ternary,
        Self::Range,
        Self::Optional,
    ];

    /// Returns the match kind with this P4 name; `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The match kind's name in P4.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Lpm => "lpm",
            Self::Ternary => "ternary",
            Self::Range => "range",
            Self::Optional => "optional",
        }
    }

    /// Whether entries of a table with such a key field may overlap and therefore need a priority.
    #[must_use]
    pub fn wants_priority(self) -> bool {
        matches!(self, Self::Ternary | Self::Range | Self::Optional)
    }
}
