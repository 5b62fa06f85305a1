//! The lease: for how long faults hold on a switch that hears no more of its controller.

use serde::Serialize;

use crate::diagnostic::Span;
use crate::units::show_duration;

/// What a controller that lives can be relied on to do in time: look after its switches, and write to each.
pub const SHORTEST_REFRESH_NS: u64 = 50_000_000;

/// The lease that a file asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// None: faults hold until somebody disarms them.
    pub lease: Option<Lease>,
    /// Where the file says so, if it does.
    pub span: Option<Span>,
}

impl Default for Asked {
    fn default() -> Asked {
        Asked {
            lease: Some(Lease::default()),
            span: None,
        }
    }
}

/// Faults end so long after the last refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Lease {
    /// How long one refresh holds.
    pub for_ns: u64,
    /// From one refresh to the next.
    pub refresh_ns: u64,
}

impl Default for Lease {
    fn default() -> Lease {
        Lease::of(2_000_000_000)
    }
}

impl Lease {
    /// Refreshed four times as often as it has to be.
    #[must_use]
    pub fn of(for_ns: u64) -> Lease {
        Lease {
            for_ns,
            refresh_ns: (for_ns / 4).max(SHORTEST_REFRESH_NS),
        }
    }
}

/// Whether faults end by themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Leased {
    /// They do, so long after the controller's last word.
    For(Lease),
    /// The file says that they do not.
    Off,
    /// The target has no means for it.
    Cannot(&'static str),
}

impl Leased {
    /// The lease, if there is one.
    #[must_use]
    pub fn lease(&self) -> Option<Lease> {
        match self {
            Leased::For(lease) => Some(*lease),
            Leased::Off | Leased::Cannot(_) => None,
        }
    }
}

impl std::fmt::Display for Leased {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Leased::For(Lease { for_ns, refresh_ns }) => write!(
                f,
                "faults end {} after the controller's last word, which comes every {}",
                show_duration(*for_ns),
                show_duration(*refresh_ns)
            ),
            Leased::Off => f.write_str("no lease: faults hold until they are disarmed"),
            Leased::Cannot(why) => {
                write!(f, "no lease, {why}: faults hold until they are disarmed")
            }
        }
    }
}
