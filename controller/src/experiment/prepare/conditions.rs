//! The settings of an experiment that do not come from its scenario.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use testbeds::bed::Wiring;

use super::recorded::Record;
use crate::experiment::Switches;

/// The settings of an experiment that do not come from its scenario.
#[derive(Debug, Clone, Copy)]
pub struct Conditions<'a> {
    /// How links are implemented: as veth pairs, or as sockets.
    pub wiring: Wiring,
    /// Folder with files that replace the built-in P4 text; `None` to use the built-in text.
    pub p4src: Option<&'a Path>,
    /// Kind of the switches, and the tools that they need.
    pub switches: &'a Switches,
    /// Which ports of the switches are recorded.
    pub record: Record,
    /// Folder of the run, which receives captures, logs and the output of commands; `None` to keep nothing.
    pub out: Option<&'a Path>,
    /// The two existing interfaces of a wire scenario; weir creates no links there.
    pub between: Option<WireEnds<'a>>,
    /// Path of the `weir` program that runs agents, clients and switches.
    pub weir: &'a Path,
}

impl Conditions<'_> {
    /// Path of the running `weir` program itself.
    pub const ITSELF: &'static str = "/proc/self/exe";
}

/// The two interfaces of a wire, and when the wire ends.
#[derive(Debug, Clone, Copy)]
pub struct WireEnds<'a> {
    /// The interfaces, in the order of the sides that the scenario names.
    pub interfaces: [&'a str; 2],
    /// Duration of the wire; `None` if it lasts until `stop` is set.
    pub length: Option<Duration>,
    /// Flag that a signal sets to end the wire.
    pub stop: &'static AtomicBool,
}
