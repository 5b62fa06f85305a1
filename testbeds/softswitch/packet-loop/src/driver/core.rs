//! What commands work on, between two turns of the loop.

use super::engine::{Engine, elapsed_ns};
use super::port::PortCounters;
use super::priority::Priority;
use crate::dataplane::Dataplane;
use pipeline::ReconcileError;
use rings::side_by_side;
use std::collections::BTreeMap;
use std::time::Instant;

/// What became of the packets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Over all ports.
    pub rx_frames: u64,
    /// Over all ports.
    pub tx_frames: u64,
    /// To the control plane.
    pub packets_in: u64,
    /// From the control plane.
    pub packets_out: u64,
    /// Ended in the switch, by reason.
    pub drops: BTreeMap<String, u64>,
    /// How late the latest deadline was met of what the program holds: packets that recirculate or wait in a queue.
    pub latest_ns: u64,
}

/// What commands work on.
pub struct Core {
    engine: Engine,
    saved: Option<Dataplane>,
    cpu_port: u32,
    origin: Instant,
    packets_out: u64,
    /// Of programs that ran before, and of packets-out without one.
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

    /// Notes what the thread was given that runs this.
    pub(super) fn set_priority(&mut self, priority: Priority) {
        self.priority = priority;
    }

    /// How soon the packet thread runs when it is woken.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// What the loop works on.
    pub(super) fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Closes all ports.
    pub(super) fn close_ports(&mut self) {
        let ports = std::mem::take(&mut self.engine.ports);
        side_by_side(ports, drop);
    }

    /// Tells the program of ports that have failed.
    pub(super) fn tell_failed_ports(&mut self) {
        for port in std::mem::take(&mut self.engine.failed) {
            self.tell_port(port, false);
        }
    }

    /// The carrier of an interface is lost or back: the port in front of it goes down or comes up.
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
            self.tell_port(port, carrier);
        }
    }

    /// Tells the running program; one that is saved learns it when it runs.
    fn tell_port(&mut self, port: u32, up: bool) {
        let now = elapsed_ns(self.origin);
        if let Some(program) = &mut self.engine.program {
            program.switch_mut().set_port_up(port, up);
            if !up {
                program.switch_mut().port_down(now, port);
            }
        }
    }

    /// The time, as programs get it.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        elapsed_ns(self.origin)
    }

    /// The program that the control plane writes to: a saved one, else the running one.
    pub fn target(&mut self) -> Option<&mut Dataplane> {
        let running = self.engine.program.as_mut();
        self.saved.as_mut().or(running)
    }

    /// The time, and the state of the program that the control plane writes to.
    pub fn control(&mut self) -> Option<(u64, &mut pipeline::Switch)> {
        let now = elapsed_ns(self.origin);
        Some((now, self.target()?.switch_mut()))
    }

    /// The time, and the state of the program that packets meet.
    pub fn running(&mut self) -> Option<(u64, &mut pipeline::Switch)> {
        let now = elapsed_ns(self.origin);
        Some((now, self.engine.program.as_mut()?.switch_mut()))
    }

    /// Keeps a program for [`Self::commit`].
    pub fn save(&mut self, program: Dataplane) {
        self.saved = Some(program);
    }

    /// Runs the saved program from now on; false if there is none.
    pub fn commit(&mut self) -> bool {
        let Some(mut program) = self.saved.take() else {
            return false;
        };
        program.switch_mut().start(elapsed_ns(self.origin));
        self.replace(program);
        true
    }

    /// Runs a program that takes over the state of the one that runs, if one does; a saved one is given up. Errors: what does
    /// not fit; nothing has changed then.
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
        // What the old program still held (recirculating frames) ends with it.
        let old = self.engine.program.iter();
        for (reason, frames) in old.flat_map(|program| program.drops()) {
            *self.past_drops.entry(reason).or_default() += frames;
        }
        self.engine.program = Some(program);
    }

    /// Gives the running program a frame as if it had arrived on the CPU port.
    pub fn packet_out(&mut self, frame: &[u8]) {
        self.packets_out += 1;
        let now = elapsed_ns(self.origin);
        match &mut self.engine.program {
            Some(program) => program.handle_packet(now, self.cpu_port, frame),
            None => self.engine.drops.no_pipeline += 1,
        }
    }

    /// In order of port number.
    #[must_use]
    pub fn port_counters(&mut self) -> Vec<PortCounters> {
        let ports = self.engine.ports.iter_mut();
        ports.map(|port| port.read_counters().clone()).collect()
    }

    /// Up to now.
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

    /// Ends the loop after this command.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.stopped
    }
}
