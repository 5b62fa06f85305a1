//! Builds the testbed of a run: the scenario's network, with switches that run the plan's programs, and no fault armed.

use testbeds::bed::{self, Bed};
use testbeds::capture::{Filter, Limits};
use testbeds::host::Process;

use super::conditions::Conditions;
use super::switch_process::{self, LaunchError, SwitchProcesses};
use crate::experiment::Planned;
use crate::experiment::fleet::Fleet;
use crate::target::Kind;

/// The network of a run, with switches that run the plan's programs.
pub struct Testbed<'a> {
    /// The scenario of the run, with its plan.
    pub planned: &'a Planned,
    /// Sessions with the switches.
    pub fleet: Fleet,
    /// Processes of the switches. Dropped after the sessions, because a switch that exits waits for its sessions to end.
    pub switches: SwitchProcesses,
    /// Whether the P4 programs of the switches see the same time stamps of frames as the captures.
    pub shares_stamps: bool,
    /// The network. Dropped last, because the switches' ports are in it.
    pub bed: Bed,
}

impl<'a> Testbed<'a> {
    /// Builds the network and starts its switches. Calls `started` with each switch's process before a session with it begins.
    pub fn up(
        planned: &'a Planned,
        conditions: Conditions<'_>,
        started: &mut dyn FnMut(&str, &mut Process),
    ) -> Result<Testbed<'a>, LaunchError> {
        let is_training = planned.training().is_some();
        let options = bed::Options {
            wiring: conditions.wiring,
            kernel_ip: !is_training,
            bundles: conditions.switches.kind == Kind::Embedded,
            filter: Filter::Everything,
            limits: Limits::WHOLE_FRAMES,
        };
        let topology = &planned.scenario.topology;
        let bed = match conditions.between {
            Some(between) => Bed::between(topology, between.interfaces, &options),
            None => Bed::up(topology, &options)?,
        };
        tracing::info!(
            hosts = topology.hosts.len(),
            links = topology.links.len(),
            "network is up"
        );
        let (fleet, switches) = switch_process::start_all(&bed, planned, conditions, started)?;
        Ok(Testbed {
            planned,
            fleet,
            switches: SwitchProcesses(switches),
            shares_stamps: conditions.switches.kind == Kind::Embedded && bed.shares_stamps(),
            bed,
        })
    }
}
