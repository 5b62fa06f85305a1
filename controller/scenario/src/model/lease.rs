//! The lease: how long faults stay armed on a switch that its controller no longer reaches.

use serde::Serialize;

use crate::diagnostic::Span;
use crate::units::show_duration;

/// The shortest period, in nanoseconds, in which a controller reliably refreshes a lease: it checks and writes to each switch.
pub const SHORTEST_REFRESH_NS: u64 = 50_000_000;

/// The lease that a scenario file asks for, or the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseRequest {
    /// The lease; `None`: there is none, and faults stay armed until the user disarms them.
    pub lease: Option<Lease>,
    /// Position of `lease` in the file; `None` if the file does not have it.
    pub span: Option<Span>,
}

impl Default for LeaseRequest {
    fn default() -> LeaseRequest {
        LeaseRequest {
            lease: Some(Lease::default()),
            span: None,
        }
    }
}

/// A lease: the switches end all faults if the controller does not refresh the lease in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Lease {
    /// Time from a refresh until the switches end the faults, in nanoseconds.
    pub for_ns: u64,
    /// Period in which the controller refreshes the lease, in nanoseconds.
    pub refresh_ns: u64,
}

impl Default for Lease {
    fn default() -> Lease {
        Lease::with_duration(Lease::DEFAULT_NS)
    }
}

impl Lease {
    /// Duration of the lease if the file declares none, in nanoseconds.
    pub const DEFAULT_NS: u64 = 2_000_000_000;

    /// A lease of this duration, in nanoseconds, which the controller refreshes four times per duration.
    #[must_use]
    pub fn with_duration(for_ns: u64) -> Lease {
        Lease {
            for_ns,
            refresh_ns: (for_ns / 4).max(SHORTEST_REFRESH_NS),
        }
    }
}

/// Whether a plan's faults end without the controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Leased {
    /// The switches end the faults when this lease runs out after the last refresh.
    For(Lease),
    /// The faults do not end by themselves: the file turns the lease off.
    Off,
    /// The faults do not end by themselves, because the target does not support a lease; the text says why.
    Cannot(&'static str),
}

impl Leased {
    /// The lease in force; `None` if the faults do not end by themselves.
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
                "faults end {} after the controller's last refresh; it refreshes every {}",
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
