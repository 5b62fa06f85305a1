/// The match kind of a key field: core.p4's match kinds, and those that the architectures add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchKind {
    /// The field equals the value.
    Exact,
    /// Longest prefix match.
    Lpm,
    /// Match against value and mask.
    Ternary,
    /// Match against lower and upper bound.
    Range,
    /// The field equals the value, or the entry omits it.
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

    /// Returns the kind with this P4 name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The P4 name.
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

    /// Whether entries may overlap and therefore need a priority.
    #[must_use]
    pub fn wants_priority(self) -> bool {
        matches!(self, Self::Ternary | Self::Range | Self::Optional)
    }
}
