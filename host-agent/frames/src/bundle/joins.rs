//! Protocols of bundles.

/// Protocols whose bundles the peer takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Joins {
    /// UDP over IPv4 and IPv6.
    pub udp: bool,
    /// TCP over IPv4 and IPv6.
    pub tcp: bool,
}

impl Joins {
    /// All protocols.
    pub const ALL: Joins = Joins {
        udp: true,
        tcp: true,
    };

    /// The protocols of both sets.
    #[must_use]
    pub fn with(self, other: Joins) -> Joins {
        Joins {
            udp: self.udp || other.udp,
            tcp: self.tcp || other.tcp,
        }
    }

    /// The protocols of this set that are not in the other.
    #[must_use]
    pub fn without(self, other: Joins) -> Joins {
        Joins {
            udp: self.udp && !other.udp,
            tcp: self.tcp && !other.tcp,
        }
    }
}
