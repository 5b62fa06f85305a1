//! The switch as its driver sees it: packets and time in, packets and deadlines out.

pub(crate) mod control;
pub(crate) mod image;
pub(crate) mod reconcile;
mod tofino;
mod tracing;

use crate::arch::Loaded;
use crate::arch::core::Core;
use crate::config::{Config, Ports};
use crate::externs::register::Info;
use crate::job::Job;
use crate::op::Mark;
use crate::queues::Waited;
use crate::state::DigestMessage;
use crate::stats::Stats;
use crate::table::EntryState;
use control::Names;
use p4lang::ir::Program;
use std::collections::VecDeque;
use std::sync::Arc;

/// Packets that a Tofino's generator makes at one call of [`Switch::handle_timeout`]; the rest is due at once. More would hold
/// up what arrives meanwhile, and wait to be sent all together.
const GENERATED_LIMIT: usize = 256;

/// A packet to be sent. Hand the buffer back with [`Switch::recycle`] to avoid allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit {
    /// To there.
    pub port: u32,
    /// The frame without FCS.
    pub bytes: Vec<u8>,
}

/// A loaded program, driven by its caller: no clock, no I/O, no threads.
#[derive(Debug)]
pub struct Switch {
    pub(crate) core: Core,
    pub(crate) names: Arc<Names>,
    pub(crate) registers: Arc<[Info]>,
    pub(crate) undo: Option<Vec<control::Undo>>,
    pub(crate) notes: std::collections::BTreeMap<control::Noted, crate::table::Note>,
    /// Tables whose entries may have idle timeouts.
    pub(crate) idle_tables: Vec<usize>,
    /// Idle entries not yet fetched, by table.
    pub(crate) idle: VecDeque<(usize, EntryState)>,
    pub(crate) idle_lost: u64,
    pub(crate) program: Arc<Program>,
    pub(crate) arch: Arc<Loaded>,
}

impl Switch {
    /// The executable form, an instruction a line, for those who look into its speed.
    pub fn listing(&self) -> String {
        use std::fmt::Write;
        let mut out = String::new();
        for (at, op) in self.arch.code().ops.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{at:6} {op:?}");
        }
        out
    }

    /// The program that runs.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// A frame has arrived; packet-out if `port` is the CPU port.
    pub fn handle_packet(&mut self, now_ns: u64, port: u32, frame: &[u8]) {
        self.handle_arrival(now_ns, now_ns, port, frame);
    }

    /// A frame that arrived at `arrived_ns`, and waited for its turn. Programs see the former as the time of arrival (PSA's
    /// `ingress_timestamp`, v1model's `ingress_global_timestamp`, TNA's `ingress_mac_tstamp`), which a port of a switch stamps;
    /// everything else happens now.
    pub fn handle_arrival(&mut self, now_ns: u64, arrived_ns: u64, port: u32, frame: &[u8]) {
        self.core.stats.received += 1;
        self.core.start_event(now_ns);
        self.core.arrived_ns = arrived_ns.min(now_ns);
        let traced = self.traced(port, frame);
        self.arch.receive(&mut self.core, now_ns, port, frame);
        self.drain(now_ns);
        if let Some(before) = traced {
            self.tell_verdict(before);
        }
    }

    /// Lets packets leave the recirculation link and the egress queues whose time has come, and finds entries that are
    /// idle.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        self.expire(now_ns);
        for _ in 0..GENERATED_LIMIT {
            let core = &mut self.core;
            let Some((due_ns, job)) = core.tofino.generator.due(&mut core.stats, now_ns) else {
                break;
            };
            self.core.start_event(due_ns);
            self.core.stats.made += 1;
            self.go_on(due_ns, job, None);
        }
        // Those that join the link meanwhile leave it later.
        for _ in 0..self.core.recirculating() {
            let Some(job) = self.core.recirculated(now_ns) else {
                break;
            };
            self.core.start_event(now_ns);
            self.go_on(now_ns, job, None);
        }
        // After those of the link, which join the queues.
        while let Some((job, waited)) = self.core.queues.pop(now_ns) {
            self.core.allow_passes();
            self.go_on(now_ns, job, Some(&waited));
        }
    }

    /// A packet goes on, from where it was or from the queue that it has waited in, until nothing of it is left to do; tells
    /// of it if somebody looks.
    fn go_on(&mut self, now_ns: u64, job: Job, waited: Option<&Waited>) {
        let traced = match waited {
            Some(_) => self.traced_on(job.port, &job.bytes),
            None => self.traced(job.port, &job.bytes),
        };
        match waited {
            Some(waited) => self.arch.leave_queue(&mut self.core, now_ns, &job, waited),
            None => self.arch.run(&mut self.core, now_ns, &job),
        }
        self.core.finished(job);
        self.drain(now_ns);
        if let Some(before) = traced {
            self.tell_verdict(before);
        }
    }

    fn drain(&mut self, now_ns: u64) {
        while let Some(job) = self.core.work.pop_front() {
            self.arch.run(&mut self.core, now_ns, &job);
            self.core.finished(job);
        }
    }

    /// The traffic manager reports to the ghost controls of a T2NA program that a queue of a pipe holds so many cells, as it
    /// does by itself when a packet joins a queue or leaves it; `queue` is the number in the pipe. Nothing for other programs.
    pub fn report_queue(&mut self, now_ns: u64, pipe: u32, queue: u64, cells: u64) {
        self.core.start_event(now_ns);
        self.arch
            .report_queue(&mut self.core, now_ns, (pipe, queue), cells);
    }

    /// When [`Switch::handle_timeout`] has something to do.
    pub fn poll_timeout(&self) -> Option<u64> {
        let times = [
            self.core.next_recirculated_ns(),
            self.core.tofino.generator.next_ns(),
            self.core.queues.next_ns(),
            self.next_idle_ns(),
        ];
        times.into_iter().flatten().min()
    }

    /// The next packet to be sent; packet-in if its port is the CPU port.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.core
            .transmits
            .pop_front()
            .map(|(port, bytes)| Transmit { port, bytes })
    }

    /// Takes a sent packet's buffer back.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        self.core.recycle(bytes);
    }

    /// The next digest message.
    pub fn poll_digest(&mut self) -> Option<DigestMessage> {
        self.core.state.digests.waiting.pop_front()
    }

    /// Digest messages lost because nobody fetched them.
    pub fn digests_lost(&self) -> u64 {
        self.core.state.digests.lost
    }

    /// What became of packets so far.
    pub fn stats(&self) -> &Stats {
        &self.core.stats
    }

    /// Packets that wait on the recirculation link.
    pub fn recirculating(&self) -> usize {
        self.core.recirculating()
    }

    /// Packets that wait: on the recirculation link and in the egress queues.
    pub fn waiting(&self) -> usize {
        self.core.recirculating() + self.core.queues.waiting()
    }

    /// Changes which ports exist.
    pub fn set_ports(&mut self, ports: Ports) {
        self.core.config.ports = ports;
    }

    /// How it is run.
    pub fn config(&self) -> &Config {
        &self.core.config
    }

    /// What packets met since the last call, if [`Config::trace`] is set.
    pub fn take_trace(&mut self) -> Vec<Mark> {
        let marks = self.core.trace.drain(..);
        marks
            .filter_map(|i| self.arch.code().marks.get(i as usize).cloned())
            .collect()
    }

    /// Where the executors gave different results since the last call, with [`crate::Executor::Both`]: the block, the packet,
    /// and the first difference.
    pub fn take_differences(&mut self) -> Vec<String> {
        std::mem::take(&mut self.core.differences)
    }

    /// Instructions and slots of the loaded code, for the curious.
    pub fn code_size(&self) -> (usize, usize) {
        let code = self.arch.code();
        (code.ops.len(), code.frame as usize)
    }
}
