//! The state of the switch that the control plane's commands access between two iterations of the packet loop.

use super::engine::{Engine, elapsed_ns};
use super::port::PortCounters;
use super::priority::Priority;
use crate::dataplane::Dataplane;
use frames::side_by_side;
use pipeline::ReconcileError;
use std::collections::BTreeMap;
use std::time::Instant;

/// Packet statistics of the switch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Number of frames received, over all ports.
    pub rx_frames: u64,
    /// Number of frames sent, over all ports.
    pub tx_frames: u64,
    /// Number of packets sent to the control plane.
    pub packets_in: u64,
    /// Number of packets received from the control plane.
    pub packets_out: u64,
    /// Number of frames dropped in the switch, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Maximum delay, in nanoseconds, with which a packet that the program held (recirculating or queued) was processed.
    pub latest_ns: u64,
}

/// The packet loop's state, as commands of the control plane access it.
pub struct Core {
    engine: Engine,
    saved: Option<Dataplane>,
    cpu_port: u32,
    origin: Instant,
    packets_out: u64,
    /// Number of frames dropped by earlier programs, and of packets-out that arrived without a program, by reason.
    past_drops: BTreeMap<String, u64>,
    priority: Priority,
    stopped: bool,
}

impl Core {
    pub(super) fn new(engine: Engine, cpu_port: u32, origin: Instant) -> Self {
        Self {
            engine,
            saved: None,
            cpu_port,
            origin,
            packets_out: 0,
            past_drops: BTreeMap::new(),
            priority: Priority::Ordinary,
            stopped: false,
        }
    }

    /// Records the scheduling priority of the packet thread.
    pub(super) fn set_priority(&mut self, priority: Priority) {
        self.priority = priority;
    }

    /// The scheduling priority of the packet thread.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// The packet loop's ports, running program and counters.
    pub(super) fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Closes all ports: no frame arrives or leaves any more.
    pub(super) fn close_ports(&mut self) {
        let ports = std::mem::take(&mut self.engine.ports);
        side_by_side(ports, drop);
    }

    /// Notifies the running program of the ports that have failed since the last call.
    pub(super) fn report_failed_ports(&mut self) {
        for port in std::mem::take(&mut self.engine.failed) {
            self.report_port(port, false);
        }
    }

    /// Handles a carrier change of the interface with this index: the port attached to it goes down or comes up.
    pub fn set_carrier(&mut self, interface: u32, carrier: bool) {
        let ports = self.engine.ports.iter_mut();
        let mut changed = Vec::new();
        for port in ports.filter(|port| port.io.interface() == Some(interface)) {
            let was_up = port.is_up();
            port.carrier = carrier;
            if port.is_up() != was_up {
                changed.push(port.counters.port);
            }
        }
        for port in changed {
            tracing::info!(port, "{}", if carrier { "up" } else { "no carrier" });
            self.report_port(port, carrier);
        }
    }

    /// Notifies the running program that a port is up or down; a saved program learns it when it starts.
    fn report_port(&mut self, port: u32, up: bool) {
        let now = elapsed_ns(self.origin);
        if let Some(program) = &mut self.engine.program {
            program.switch_mut().set_port_up(port, up);
            if !up {
                program.switch_mut().port_down(now, port);
            }
        }
    }

    /// The current time in nanoseconds, as programs see it.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        elapsed_ns(self.origin)
    }

    /// The program that the control plane writes to: the saved one if there is one, else the running one, else `None`.
    pub fn target(&mut self) -> Option<&mut Dataplane> {
        let running = self.engine.program.as_mut();
        self.saved.as_mut().or(running)
    }

    /// The current time in nanoseconds, and the state of the program that [`Self::target`] returns; `None`: there is none.
    pub fn control(&mut self) -> Option<(u64, &mut pipeline::Switch)> {
        let now = elapsed_ns(self.origin);
        Some((now, self.target()?.switch_mut()))
    }

    /// The current time in nanoseconds, and the state of the running program; `None`: there is none.
    pub fn running(&mut self) -> Option<(u64, &mut pipeline::Switch)> {
        let now = elapsed_ns(self.origin);
        Some((now, self.engine.program.as_mut()?.switch_mut()))
    }

    /// Saves a program that [`Self::commit`] will run.
    pub fn save(&mut self, program: Dataplane) {
        self.saved = Some(program);
    }

    /// Replaces the running program by the saved one; false if no program is saved.
    pub fn commit(&mut self) -> bool {
        let Some(mut program) = self.saved.take() else {
            return false;
        };
        program.switch_mut().start(elapsed_ns(self.origin));
        self.replace(program);
        true
    }

    /// Runs a program that takes over the state of the running one, if there is one; a saved program is discarded. On
    /// an error, which names the incompatible object, the running and the saved program stay as they are.
    pub fn reconcile(&mut self, mut program: Dataplane) -> Result<(), ReconcileError> {
        if let Some((now, running)) = self.running() {
            program.switch_mut().reconcile(now, running)?;
        }
        self.saved = None;
        self.replace(program);
        Ok(())
    }

    fn replace(&mut self, mut program: Dataplane) {
        for port in self.engine.ports.iter().filter(|port| !port.is_up()) {
            program.switch_mut().set_port_up(port.counters.port, false);
        }
        // Packets held by the old program (recirculating frames) are dropped.
        let old = self.engine.program.iter();
        for (reason, frames) in old.flat_map(|program| program.drops()) {
            *self.past_drops.entry(reason).or_default() += frames;
        }
        self.engine.program = Some(program);
    }

    /// Passes a frame to the running program as if it had arrived on the CPU port.
    pub fn packet_out(&mut self, frame: &[u8]) {
        self.packets_out += 1;
        let now = elapsed_ns(self.origin);
        match &mut self.engine.program {
            Some(program) => program.handle_packet(now, self.cpu_port, frame),
            None => self.engine.drops.no_pipeline += 1,
        }
    }

    /// Counters of all ports, in order of port number.
    #[must_use]
    pub fn port_counters(&mut self) -> Vec<PortCounters> {
        let ports = self.engine.ports.iter_mut();
        ports.map(|port| port.read_counters().clone()).collect()
    }

    /// Packet statistics of the switch from its start until now.
    #[must_use]
    pub fn statistics(&mut self) -> Statistics {
        let mut statistics = Statistics {
            packets_out: self.packets_out,
            drops: self.past_drops.clone(),
            ..Statistics::default()
        };
        let mut overflow = 0;
        for counters in self.port_counters() {
            statistics.rx_frames += counters.rx_frames;
            statistics.tx_frames += counters.tx_frames;
            overflow += counters.rx_lost_frames;
        }
        let mut add = |reason: &str, frames| {
            if frames > 0 {
                *statistics.drops.entry(reason.to_owned()).or_default() += frames;
            }
        };
        add("receive queue full", overflow);
        statistics.packets_in = self.engine.packets_in;
        statistics.latest_ns = self.engine.latest_ns;
        let drops = &self.engine.drops;
        add("no pipeline", drops.no_pipeline);
        add("no such port", drops.no_such_port);
        add("control plane too slow", drops.control_plane_too_slow);
        let lost = drops.notifications_lost;
        add("notification lost: control plane too slow", lost);
        let programs = self.engine.program.iter();
        for (reason, frames) in programs.flat_map(|program| program.drops()) {
            add(&reason, frames);
        }
        statistics
    }

    /// Stops the packet loop after this command.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.stopped
    }
}
