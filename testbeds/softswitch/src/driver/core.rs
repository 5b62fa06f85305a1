//! What commands work on: all workers, while none of them runs.

use super::crossing::Inbox;
use super::fleet::{Fleet, Lost};
use super::port::{Port, PortCounters};
use super::worker::{Worker, elapsed_ns};
use crate::dataplane::Dataplane;
use pipeline::ReconcileError;
use std::collections::BTreeMap;
use std::sync::Arc;
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
}

/// What commands work on.
pub struct Core {
    /// The first, which the thread that runs commands works on; and, between [`Core::gather`] and [`Core::scatter`], the others.
    workers: Vec<Worker>,
    /// Where the others are. None: there are none.
    fleet: Option<Arc<Fleet>>,
    saved: Option<Dataplane>,
    cpu_port: u32,
    origin: Instant,
    packets_out: u64,
    /// Of programs that ran before, and of packets-out without one.
    past_drops: BTreeMap<String, u64>,
    /// Ports have been given to other workers.
    moved: bool,
    stopped: bool,
}

impl Core {
    pub(super) fn new(
        first: Worker,
        fleet: Option<Arc<Fleet>>,
        cpu_port: u32,
        origin: Instant,
    ) -> Self {
        Self {
            workers: vec![first],
            fleet,
            saved: None,
            cpu_port,
            origin,
            packets_out: 0,
            past_drops: BTreeMap::new(),
            moved: false,
            stopped: false,
        }
    }

    /// Takes the other workers over, before they have begun.
    pub(super) fn add(&mut self, others: impl Iterator<Item = Worker>) {
        self.workers.extend(others);
    }

    /// Of all workers, if there are several.
    pub(super) fn inboxes(&self) -> Option<Arc<[Inbox]>> {
        self.fleet.as_ref().map(|fleet| fleet.inboxes())
    }

    /// How many workers are here: all, while they are gathered.
    pub(super) fn workers(&self) -> usize {
        self.workers.len()
    }

    /// The worker of this thread.
    pub(super) fn first(&mut self) -> &mut Worker {
        &mut self.workers[0]
    }

    /// Stops all other workers between two batches and takes them over, with what they have counted.
    pub(super) fn gather(&mut self) -> Result<(), Lost> {
        let Some(fleet) = &self.fleet else {
            return Ok(());
        };
        fleet.shut(&mut self.workers)?;
        let (first, others) = self.workers.split_at_mut(1);
        if let Some(program) = &mut first[0].program {
            let siblings = others.iter_mut().filter_map(|other| other.program.as_mut());
            program
                .switch_mut()
                .recall(siblings.map(|sibling| sibling.switch_mut()));
        }
        Ok(())
    }

    /// Lets them go on.
    pub(super) fn scatter(&mut self) {
        self.tell_failed_ports();
        let Some(fleet) = &self.fleet else {
            return;
        };
        let (first, others) = self.workers.split_at_mut(1);
        if let Some(program) = &mut first[0].program {
            for sibling in others.iter_mut().filter_map(|other| other.program.as_mut()) {
                program.switch_mut().share(sibling.switch_mut());
            }
        }
        fleet.open(&mut self.workers, std::mem::take(&mut self.moved));
    }

    /// Whether the workers are to be gathered though there is no command.
    pub(super) fn wants_control(&self) -> bool {
        let first = &self.workers[0];
        let asked = first.crossing.as_ref();
        !first.failed.is_empty() || asked.is_some_and(|crossing| crossing.inbox().takes_control())
    }

    fn tell_failed_ports(&mut self) {
        for worker in 0..self.workers.len() {
            for port in std::mem::take(&mut self.workers[worker].failed) {
                self.tell_port(port, false);
            }
        }
    }

    /// The carrier of an interface is lost or back: the port in front of it goes down or comes up.
    pub fn set_carrier(&mut self, interface: u32, carrier: bool) {
        let ports = self.workers.iter_mut().flat_map(|worker| &mut worker.ports);
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
        if let Some(program) = &mut self.workers[0].program {
            program.switch_mut().set_port_up(port, up);
            if !up {
                program.switch_mut().port_down(now, port);
            }
        }
    }

    /// The program that the control plane writes to: a saved one, else the running one.
    pub fn target(&mut self) -> Option<&mut Dataplane> {
        let running = self.workers[0].program.as_mut();
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
        Some((now, self.workers[0].program.as_mut()?.switch_mut()))
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
        let ports = || self.workers.iter().flat_map(|worker| &worker.ports);
        for port in ports().filter(|port| !port.is_up()) {
            program.switch_mut().set_port_up(port.counters.port, false);
        }
        // What the old program still held (recirculating frames) ends with it.
        let old = self.workers[0].program.iter();
        for (reason, frames) in old.flat_map(|program| program.drops()) {
            *self.past_drops.entry(reason).or_default() += frames;
        }
        let mut siblings = program.take_siblings();
        let runs_everywhere = 1 + siblings.len() >= self.workers.len();
        siblings.truncate(if runs_everywhere {
            self.workers.len() - 1
        } else {
            0
        });
        let mut programs = std::iter::once(program).chain(siblings);
        for worker in &mut self.workers {
            worker.program = programs.next();
        }
        self.distribute(if runs_everywhere {
            self.workers.len()
        } else {
            1
        });
    }

    /// Gives the ports to the first `count` workers, in turn.
    pub(super) fn distribute(&mut self, count: usize) {
        let mut ports: Vec<Port> = Vec::new();
        for worker in &mut self.workers {
            // What others have sent here leaves before the port does.
            worker.take_crossed();
            worker.transmit();
            ports.append(&mut worker.ports);
        }
        ports.sort_by_key(|port| port.counters.port);
        self.moved = true;
        let numbers = ports.iter().map(|port| port.counters.port);
        let routes = numbers.enumerate().map(|(i, port)| (port, i % count));
        let routes: Arc<[(u32, usize)]> = routes.collect();
        for (position, port) in ports.into_iter().enumerate() {
            self.workers[position % count].ports.push(port);
        }
        for worker in &mut self.workers {
            worker.generation += 1;
            if let Some(crossing) = &mut worker.crossing {
                crossing.set_routes(Arc::clone(&routes));
            }
        }
    }

    /// Gives the running program a frame as if it had arrived on the CPU port.
    pub fn packet_out(&mut self, frame: &[u8]) {
        self.packets_out += 1;
        let now = elapsed_ns(self.origin);
        let first = &mut self.workers[0];
        match &mut first.program {
            Some(program) => program.handle_packet(now, self.cpu_port, frame),
            None => first.drops.no_pipeline += 1,
        }
    }

    /// In order of port number.
    #[must_use]
    pub fn port_counters(&mut self) -> Vec<PortCounters> {
        let workers = self.workers.iter_mut();
        let mut counters: Vec<PortCounters> = workers
            .flat_map(|worker| &mut worker.ports)
            .map(|port| port.read_counters().clone())
            .collect();
        counters.sort_by_key(|counters| counters.port);
        counters
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
        for worker in &self.workers {
            statistics.packets_in += worker.packets_in;
            let drops = &worker.drops;
            add("no pipeline", drops.no_pipeline);
            add("no such port", drops.no_such_port);
            add("control plane too slow", drops.control_plane_too_slow);
            let lost = drops.notifications_lost;
            add("notification lost: control plane too slow", lost);
            add("worker too slow", drops.worker_too_slow);
        }
        let programs = self.workers[0].program.iter();
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
