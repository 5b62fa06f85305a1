//! The switch as its driver sees it: packets and time go in, packets and the time of the next event come out.

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
use crate::table::{EntryState, Note};
use control::Names;
use p4lang::ir::Program;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Maximum number of packets that a Tofino's generator makes per call of [`Switch::handle_timeout`]; the next call makes the
/// others. More would delay packets that arrive meanwhile, and would all be sent together.
const GENERATED_LIMIT: usize = 256;

/// A packet to be sent. Returning its buffer with [`Switch::recycle`] avoids allocations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit {
    /// Number of the egress port.
    pub port: u32,
    /// Bytes of the frame, without FCS.
    pub bytes: Vec<u8>,
}

/// An object other than a table entry to which a client of the control plane attaches a note (data that it can read back).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Noted {
    /// The default entry of the table with this index.
    Default(usize),
    /// The multicast group with this id.
    Group(u32),
    /// The clone session with this id.
    Session(u32),
}

/// A switch that runs a program, driven by its caller: no clock, no I/O, no threads.
#[derive(Debug)]
pub struct Switch {
    pub(crate) core: Core,
    pub(crate) names: Arc<Names>,
    pub(crate) registers: Arc<[Info]>,
    pub(crate) undo: Option<Vec<control::Undo>>,
    pub(crate) notes: BTreeMap<Noted, Note>,
    /// Indices of the tables whose entries may have idle timeouts.
    pub(crate) idle_tables: Vec<usize>,
    /// Idle entries that the caller has not yet fetched, each with the index of its table.
    pub(crate) idle: VecDeque<(usize, EntryState)>,
    pub(crate) idle_lost: u64,
    pub(crate) program: Arc<Program>,
    pub(crate) arch: Arc<Loaded>,
}

impl Switch {
    /// The program's executable code, one instruction per line, for performance analysis.
    pub fn listing(&self) -> String {
        use std::fmt::Write;
        let mut out = String::new();
        for (at, op) in self.arch.code().ops.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{at:6} {op:?}");
        }
        out
    }

    /// The program that the switch runs.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Processes a frame that arrives now at a port; a packet-out of the controller if `port` is the CPU port.
    pub fn handle_packet(&mut self, now_ns: u64, port: u32, frame: &[u8]) {
        self.handle_arrival(now_ns, now_ns, port, frame);
    }

    /// Processes a frame that arrived at `arrived_ns` and has waited since. Programs see `arrived_ns` as the time of arrival,
    /// which a switch's port records (PSA's `ingress_timestamp`, v1model's `ingress_global_timestamp`, TNA's
    /// `ingress_mac_tstamp`). All other times are `now_ns`.
    pub fn handle_arrival(&mut self, now_ns: u64, arrived_ns: u64, port: u32, frame: &[u8]) {
        self.core.stats.received += 1;
        self.core.start_event(now_ns);
        self.core.arrived_ns = arrived_ns.min(now_ns);
        let traced = self.traced(port, frame);
        self.arch.receive(&mut self.core, now_ns, port, frame);
        self.drain(now_ns);
        if let Some(before) = traced {
            self.trace_verdict(before);
        }
    }

    /// Processes packets that are due to leave the recirculation link and the egress queues, makes generated packets, and finds
    /// idle entries.
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
        // Packets that join the link meanwhile leave it later.
        for _ in 0..self.core.recirculating() {
            let Some(job) = self.core.recirculated(now_ns) else {
                break;
            };
            self.core.start_event(now_ns);
            self.go_on(now_ns, job, None);
        }
        // After those of the link, which may join the queues.
        while let Some((job, waited)) = self.core.queues.pop(now_ns) {
            self.core.allow_passes();
            self.go_on(now_ns, job, Some(&waited));
        }
    }

    /// Processes a waiting packet and all passes that it causes; traces it if requested. `waited`: data on its wait in a queue.
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
            self.trace_verdict(before);
        }
    }

    fn drain(&mut self, now_ns: u64) {
        while let Some(job) = self.core.work.pop_front() {
            self.arch.run(&mut self.core, now_ns, &job);
            self.core.finished(job);
        }
    }

    /// Reports the length of a pipe's queue, in cells, to the ghost controls of a T2NA program, as the traffic manager does
    /// when a packet joins or leaves a queue; `queue` is the queue's number within the pipe. No effect on other programs.
    pub fn report_queue(&mut self, now_ns: u64, pipe: u32, queue: u64, cells: u64) {
        self.core.start_event(now_ns);
        self.arch
            .report_queue(&mut self.core, now_ns, (pipe, queue), cells);
    }

    /// Time at which [`Switch::handle_timeout`] has work to do, in nanoseconds; `None` if nothing waits.
    pub fn poll_timeout(&self) -> Option<u64> {
        let times = [
            self.core.next_recirculated_ns(),
            self.core.tofino.generator.next_ns(),
            self.core.queues.next_ns(),
            self.next_idle_ns(),
        ];
        times.into_iter().flatten().min()
    }

    /// The next packet to be sent; a packet-in for the controller if its port is the CPU port. `None` if no packet waits.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.core
            .transmits
            .pop_front()
            .map(|(port, bytes)| Transmit { port, bytes })
    }

    /// Takes back the buffer of a sent packet for reuse.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        self.core.recycle(bytes);
    }

    /// The next digest message; `None` if no message waits.
    pub fn poll_digest(&mut self) -> Option<DigestMessage> {
        self.core.state.digests.waiting.pop_front()
    }

    /// Number of digest messages lost because the caller did not fetch them in time.
    pub fn digests_lost(&self) -> u64 {
        self.core.state.digests.lost
    }

    /// Packet statistics since the program was loaded.
    pub fn stats(&self) -> &Stats {
        &self.core.stats
    }

    /// Number of packets on the recirculation link.
    pub fn recirculating(&self) -> usize {
        self.core.recirculating()
    }

    /// Number of packets that wait on the recirculation link or in the egress queues.
    pub fn waiting(&self) -> usize {
        self.core.recirculating() + self.core.queues.waiting()
    }

    /// Replaces the set of existing ports.
    pub fn set_ports(&mut self, ports: Ports) {
        self.core.config.ports = ports;
    }

    /// The configuration of the switch.
    pub fn config(&self) -> &Config {
        &self.core.config
    }

    /// The states, tables and actions that packets met since the last call, if [`Config::trace`] is set.
    pub fn take_trace(&mut self) -> Vec<Mark> {
        let marks = self.core.trace.drain(..);
        marks
            .filter_map(|i| self.arch.code().marks.get(i as usize).cloned())
            .collect()
    }

    /// Descriptions of the differences between the executors since the last call, with [`crate::Executor::Both`]: the block,
    /// the packet, and the first difference.
    pub fn take_differences(&mut self) -> Vec<String> {
        std::mem::take(&mut self.core.differences)
    }

    /// Number of instructions of the loaded code, and number of slots of its frame.
    pub fn code_size(&self) -> (usize, usize) {
        let code = self.arch.code();
        (code.ops.len(), code.frame as usize)
    }
}
