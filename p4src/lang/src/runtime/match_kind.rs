/// How a key field is matched: core.p4's match kinds, and those that the architectures add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchKind {
    /// Equal.
    Exact,
    /// Longest prefix.
    Lpm,
    /// Value and mask.
    Ternary,
    /// Low and high.
    Range,
    /// Equal, or absent.
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

    /// From its P4 name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its P4 name.
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

    /// Whether entries may overlap, so that they need a priority.
    #[must_use]
    pub fn wants_priority(self) -> bool {
        matches!(self, Self::Ternary | Self::Range | Self::Optional)
    }
}
