//! The conditions under which an experiment is carried out.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use testbeds::bed::Wiring;

use super::recorded::Record;
use crate::experiment::Switches;

/// The conditions under which an experiment is carried out.
#[derive(Debug, Clone, Copy)]
pub struct Conditions<'a> {
    /// How links are implemented.
    pub wiring: Wiring,
    /// Folder with files that replace the built-in P4 text.
    pub p4src: Option<&'a Path>,
    /// The kind of switches to run.
    pub switches: &'a Switches,
    /// How much is recorded.
    pub record: Record,
    /// Folder that also receives the output of each command of a workload.
    pub out: Option<&'a Path>,
    /// The two existing interfaces of a wire scenario; weir creates no links there.
    pub between: Option<WireEnds<'a>>,
    /// Path of the `weir` program that runs agents, clients and switches.
    pub weir: &'a Path,
}

impl Conditions<'_> {
    /// Path of the running program itself.
    pub const ITSELF: &'static str = "/proc/self/exe";
}

/// The two interfaces of a wire, and its duration.
#[derive(Debug, Clone, Copy)]
pub struct WireEnds<'a> {
    /// The interfaces, in the order of the sides that the scenario names.
    pub interfaces: [&'a str; 2],
    /// Duration of the wire; `None` until it is stopped.
    pub length: Option<Duration>,
    /// Flag that ends the wire.
    pub stop: &'static AtomicBool,
}
