//! The Tofino Native Architecture, of Tofino 1 (TNA) and Tofino 2 (T2NA).
//!
//! ```text
//!            ┌────────────── resubmit (once, 8 bytes for the port's metadata) ─┐
//! port ──────┴→ ingress parser → ingress → deparser ─┬─→ digest                │
//! generator ─↗                                       ├─→ mirror: as it came in ┴──┐
//!                                                    ↓                            ↓
//!             traffic manager: unicast, groups A and B, copy to CPU, mirror sessions ←─┐
//!                   ↓ each by itself                                                   │
//!             egress parser → egress → deparser ─┬─→ mirror: as it leaves ─────────────┘
//!                                                └─→ port; a port in loopback: ingress again
//! ```
//!
//! A port number consists of a pipe (2 bits) and a port within it (7 bits). If `Switch` has one pipeline, every pipe runs
//! it with its own registers, counters and meters; tables are shared.

mod admission;
pub(crate) mod externs;
mod ghost;
mod half;
mod layout;
mod multicast;
mod once;
pub(crate) mod reference;
mod requests;

use crate::arch::block::BlockRun;
use crate::arch::core::Core;
use crate::arch::tofino::{Chip, Pipes};
use crate::compile::Compiler;
use crate::error::LoadError;
use crate::externs::capture;
use crate::job::{Job, Path};
use crate::op::bindings::Block;
use crate::op::{Code, Slot};
use crate::port_numbers::PIPES;
use crate::stats::DropReason;
use ghost::Report;
use half::Half;
use layout::{EgressHeader, Pipeline};
use multicast::EgressCopy;
use p4lang::ir::{Arch, Package, PackageArg, Program};
use requests::TnaIngress;

/// Length of a frame's check sequence in bytes. Packets here have none, but counters and length fields include it. It is
/// subtracted from the number of bytes in front of a packet that do not count, which is never smaller.
const FCS_BYTES: usize = 4;
/// Bit of `parser_err` for a `select` without a matching case.
const NO_MATCH: u64 = 0x0001;

/// Length of the port metadata in front of a packet in ingress, in bytes.
pub(crate) fn port_metadata_bytes(program: &Program) -> u32 {
    if program.arch == Arch::T2na { 24 } else { 8 }
}

/// Maximum length of the data that a program may attach to a resubmitted packet, in bytes.
pub(crate) fn resubmit_limit(program: &Program) -> u32 {
    if program.arch == Arch::T2na { 16 } else { 8 }
}

#[derive(Debug)]
pub(crate) struct Tna {
    pub(crate) code: Code,
    pipelines: Vec<Pipeline>,
    /// For each pipe, the index of the pipeline that it runs; `None` if it runs none.
    of_pipe: [Option<usize>; PIPES as usize],
    /// Length of the port metadata in front of a packet, in bytes.
    port_metadata: usize,
    /// For each parser error, its bits in `parser_err`.
    parser_err: Vec<u64>,
    egress_header: EgressHeader,
    /// Slots that the architecture sets to 0 before each parser: parser counters, and data of residual checksums.
    cleared: Vec<Slot>,
    tofino2: bool,
}

/// A packet that enters ingress from a port, the generator or a resubmission.
struct Arrival<'a> {
    port: u32,
    /// For a resubmitted packet: the data that the first pass attached.
    resubmitted: Option<&'a [u8]>,
    bytes: &'a [u8],
    passes: u32,
}

impl Tna {
    /// Compiles the pipelines of all pipes.
    pub(crate) fn load(compiler: &mut Compiler<'_>) -> Result<Tna, LoadError> {
        let program = compiler.program;
        let kept = compiler.alloc(layout::KEPT)?;
        compiler.tofino.kept = (kept..kept + layout::KEPT).rev().collect();
        let mut pipelines = Vec::new();
        let mut of_pipe = [None; PIPES as usize];
        for (name, arg) in &program.main.args {
            let PackageArg::Package(package) = arg else {
                continue;
            };
            let pipe = name.strip_prefix("pipe").and_then(|n| n.parse().ok());
            let pipe = pipe.unwrap_or(pipelines.len());
            if let Some(place) = of_pipe.get_mut(pipe) {
                *place = Some(pipelines.len());
            }
            pipelines.push(Pipeline::load(compiler, package)?);
        }
        match pipelines.len() {
            0 => return Err(LoadError::Shape("Switch needs a Pipeline".into())),
            1 => of_pipe = [Some(0); PIPES as usize],
            _ => {}
        }
        compiler.state.pass.executed = vec![0; compiler.bindings.executed_twice.len()];
        let counters = compiler.tofino.cleared.iter().copied();
        let cleared = counters.chain(kept..kept + layout::KEPT).collect();
        let bit = |name: &String| match name.as_str() {
            "NoError" => 0,
            "NoMatch" => NO_MATCH,
            "PacketTooShort" | "HeaderTooShort" => match program.arch {
                // Its extractors also report a missing source.
                Arch::Tna => 0x0022,
                _ => 0x0002,
            },
            "CounterRange" => 0x0004,
            "ParserTimeout" => 0x0010,
            _ => 0x0020,
        };
        Ok(Tna {
            code: Code::default(),
            pipelines,
            of_pipe,
            port_metadata: port_metadata_bytes(program) as usize,
            parser_err: program.errors.iter().map(bit).collect(),
            egress_header: EgressHeader::from_program(program),
            cleared,
            tofino2: program.arch == Arch::T2na,
        })
    }

    /// The initial settings of the Tofino, with separate cells for each pipe if one pipeline runs in all.
    pub(crate) fn chip(&self, core: &Core) -> Chip {
        let pipes = if self.pipelines.len() == 1 {
            Pipes::replicated(&core.state)
        } else {
            Pipes::default()
        };
        Chip::new(pipes, self.tofino2)
    }

    /// Processes a packet that arrives at a port.
    pub(crate) fn receive(&self, core: &mut Core, now_ns: u64, port: u32, bytes: &[u8]) {
        let arrival = Arrival {
            port,
            resubmitted: None,
            bytes,
            passes: 0,
        };
        self.ingress(core, now_ns, &arrival);
    }

    /// Processes a packet that waits for a further pass, such as a resubmitted one.
    pub(crate) fn run(&self, core: &mut Core, now_ns: u64, job: &Job) {
        match job.path {
            Path::CloneE2e => self.mirror(core, now_ns, job.class, &job.bytes, job.passes),
            Path::Resubmit => {
                let data: Vec<u8> = job.meta.iter().map(|b| *b as u8).collect();
                let arrival = Arrival {
                    port: job.port,
                    resubmitted: Some(&data),
                    bytes: &job.bytes,
                    passes: job.passes,
                };
                self.ingress(core, now_ns, &arrival);
            }
            path => {
                // The generator sees packets that come back through its own port.
                if path == Path::Recirculate
                    && crate::port_numbers::RECIRCULATION.contains(&(job.port & 0x7f))
                {
                    let pipe = job.port >> 7;
                    let generator = &mut core.tofino.generator;
                    generator.recirculated(&mut core.stats, now_ns, pipe, &job.bytes);
                }
                core.arrived_ns = now_ns;
                self.receive(core, now_ns, job.port, &job.bytes);
            }
        }
    }

    /// Runs ingress for a packet and everything that follows, including egress of the copies.
    fn ingress(&self, core: &mut Core, now_ns: u64, arrival: &Arrival<'_>) {
        let Some(pipeline) = self.pipeline(arrival.port) else {
            core.stats.drop(DropReason::InvalidPort);
            return;
        };
        let x = &pipeline.ingress;
        let front = |core: &Core, to: &mut Vec<u8>| self.ingress_front(core, arrival, to);
        match self.pass(core, now_ns, &x.half, arrival.port, front, arrival.bytes) {
            Some(out) => {
                self.after_ingress(core, now_ns, x, arrival, &out);
                core.recycle(out);
            }
            None => core.stats.drop(DropReason::Parser),
        }
    }

    fn pipeline(&self, port: u32) -> Option<&Pipeline> {
        let of_pipe = self.of_pipe.get((port >> 7) as usize).copied().flatten();
        of_pipe.map(|i| &self.pipelines[i])
    }

    /// Runs parser, control and deparser of ingress or egress; returns the deparsed packet, or `None` if the parser drops it.
    /// `front` writes the metadata bytes that precede the packet.
    fn pass(
        &self,
        core: &mut Core,
        now_ns: u64,
        x: &Half,
        port: u32,
        front: impl FnOnce(&Core, &mut Vec<u8>),
        bytes: &[u8],
    ) -> Option<Vec<u8>> {
        let mut packet = core.buffer();
        front(core, &mut packet);
        let front = packet.len();
        packet.extend_from_slice(bytes);
        for region in &x.regions {
            region.zero(&mut core.frame);
        }
        if let Some(slot) = x.ghost {
            core.frame[slot as usize] = 1;
        }
        self.begin(core, port >> 7, front);
        let mut out = core.buffer();
        let parser = x.parser();
        let (cursor, error) = self.block(core, now_ns, parser, &packet, 0, &mut out);
        let error = self.parser_err(error);
        core.stats.parser_errors += u64::from(error != 0);
        let passes = error & x.fatal == 0;
        if passes {
            x.parsed.global_tstamp.set(&mut core.frame, now_ns);
            x.parsed.parser_err.set(&mut core.frame, error);
            self.block(core, now_ns, x.control, &packet, cursor, &mut out);
            self.block(core, now_ns, x.deparser, &packet, cursor, &mut out);
            // The intrinsic metadata does not leave, even if the parser did not skip it.
            let payload = cursor.div_ceil(8).max(front).min(packet.len());
            out.extend_from_slice(&packet[payload..]);
        }
        core.tofino.pipes.leave(&mut core.state, port >> 7);
        core.recycle(packet);
        if passes {
            return Some(out);
        }
        core.recycle(out);
        None
    }

    /// Writes the ingress intrinsic metadata, followed by the port's metadata or the resubmitted data.
    fn ingress_front(&self, core: &Core, arrival: &Arrival<'_>, to: &mut Vec<u8>) {
        let again = u8::from(arrival.resubmitted.is_some());
        let port = (arrival.port as u16).to_be_bytes();
        to.extend([again << 7 | port[0], port[1]]);
        to.extend(&core.arrived_ns.to_be_bytes()[2..]);
        let start = to.len();
        let data = match arrival.resubmitted {
            Some(data) => data,
            None => core.tofino.port_metadata(arrival.port),
        };
        to.extend(data.iter().take(self.port_metadata));
        to.resize(start + self.port_metadata, 0);
    }

    /// Handles a packet after ingress: resubmits it, which excludes all else; or mirrors it, sends copies, drops it.
    fn after_ingress(
        &self,
        core: &mut Core,
        now_ns: u64,
        x: &TnaIngress,
        arrival: &Arrival<'_>,
        out: &[u8],
    ) {
        let resubmit = core.state.captures[usize::from(capture::RESUBMIT)].take();
        if let Some((_, data)) = resubmit {
            if arrival.resubmitted.is_some() {
                // A packet may be resubmitted once; a second time drops it.
                core.stats.drop(DropReason::Ingress);
                return;
            }
            let job = Job {
                path: Path::Resubmit,
                port: arrival.port,
                passes: arrival.passes + 1,
                ..Job::default()
            };
            core.queue(job, arrival.bytes, |_, meta| {
                meta.extend(data.iter().map(|b| u64::from(*b)));
            });
            return;
        }
        core.decided(&self.code, x.half.control, |core| {
            let generates = core.state.captures[usize::from(capture::PKTGEN)].is_some();
            x.deciding(&core.frame, generates && self.tofino2)
        });
        let frame = &core.frame;
        let drop = x.half.drop_ctl.get(frame);
        let mut request = x.request(frame);
        if drop & 1 != 0 {
            (request.unicast, request.groups) = (None, [None; 2]);
        }
        if drop & 2 != 0 {
            request.copy_to_cpu = false;
        }
        let generated = self.tofino2 && x.pktgen.get(frame) != 0;
        let place = (x.pktgen_address.get(frame), x.pktgen_length.get(frame));
        if let (true, Some((_, header))) = (
            generated,
            core.state.captures[usize::from(capture::PKTGEN)].take(),
        ) {
            let generator = &mut core.tofino.generator;
            let pipe = arrival.port >> 7;
            generator.request(&mut core.stats, now_ns, pipe, place, &header);
        }
        let mirror = core.state.captures[usize::from(capture::MIRROR)].take();
        let mirrored = mirror.is_some();
        // A mirrored packet without another destination counts as turned into its mirror copy.
        let moved = mirrored && request.is_empty() && drop == 0;
        core.stats.made += u64::from(mirrored && !moved);
        if let Some((session, mut header)) = mirror {
            header.extend_from_slice(arrival.bytes);
            self.mirror(core, now_ns, session, &header, arrival.passes);
        }
        if request.is_empty() {
            if !moved {
                core.stats.drop(DropReason::Ingress);
            }
            return;
        }
        self.replicate(core, now_ns, &request, out, arrival.passes);
    }

    /// Runs egress of one copy, then mirrors and sends it.
    fn egress(&self, core: &mut Core, now_ns: u64, copy: EgressCopy, bytes: &[u8]) {
        if copy.bypass {
            let mut out = core.buffer();
            out.extend_from_slice(bytes);
            self.leave(core, now_ns, copy.port, out);
            return;
        }
        let Some(pipeline) = self.pipeline(copy.port) else {
            core.stats.drop(DropReason::InvalidPort);
            return;
        };
        let x = &pipeline.egress;
        let front = |_: &Core, to: &mut Vec<u8>| {
            self.egress_header.write(now_ns, &copy, bytes.len(), to);
        };
        // In egress, parser errors drop no packet.
        let Some(out) = self.pass(core, now_ns, x, copy.port, front, bytes) else {
            return;
        };
        core.decided(&self.code, x.control, |core| {
            let mirrors = core.state.captures[usize::from(capture::MIRROR)].is_some();
            let bits = if mirrors { 1 | 4 } else { 1 };
            vec![(x.drop_ctl.bits(bits), "drop_ctl")]
        });
        let drop = x.drop_ctl.get(&core.frame);
        let mirror = core.state.captures[usize::from(capture::MIRROR)].take();
        if let (Some((session, mut header)), 0) = (mirror, drop & 4) {
            header.extend_from_slice(&out);
            core.stats.made += 1;
            let job = Job {
                path: Path::CloneE2e,
                class: session,
                passes: copy.passes + 1,
                ..Job::default()
            };
            core.queue(job, &header, |_, _| {});
        }
        if drop & 1 != 0 {
            core.stats.drop(DropReason::Egress);
            core.recycle(out);
        } else {
            self.leave(core, now_ns, copy.port, out);
        }
    }

    /// Sends a packet out of a port, or back to ingress if the port is in loopback.
    fn leave(&self, core: &mut Core, now_ns: u64, port: u32, bytes: Vec<u8>) {
        if core.tofino.loops(port) {
            core.recirculate(now_ns, port, bytes, |_, _| {});
        } else {
            let port = core.tofino.outside(port, core.config.cpu_port);
            core.transmit(port, bytes);
        }
    }

    /// Reports a queue's length to the ghost controls of all pipes.
    fn report(&self, core: &mut Core, now_ns: u64, report: Report) {
        for (pipe, of_pipe) in (0..).zip(&self.of_pipe) {
            let pipeline = of_pipe.and_then(|i| self.pipelines.get(i));
            let Some(ghost) = pipeline.and_then(|p| p.ghost.as_ref()) else {
                continue;
            };
            self.begin(core, pipe, FCS_BYTES);
            ghost.write_report(&mut core.frame, report);
            let mut out = core.buffer();
            self.block(core, now_ns, ghost.control, &[], 0, &mut out);
            core.tofino.pipes.leave(&mut core.state, pipe);
            core.recycle(out);
        }
    }

    /// Starts a pass through a pipe; `front`: number of bytes in front of the packet that counters and meters do not count.
    fn begin(&self, core: &mut Core, pipe: u32, front: usize) {
        for slot in &self.cleared {
            core.frame[*slot as usize] = 0;
        }
        let state = &mut core.state;
        for unit in &mut state.checksums {
            unit.clear();
        }
        // Counters and meters count the frame including its check sequence.
        (state.pass.pipe, state.pass.front, state.pass.adjust) = (pipe, front - FCS_BYTES, 0);
        state.pass.number += 1;
        state.captures = Default::default();
        core.tofino.pipes.enter(state, pipe);
    }

    /// Runs one block; returns the parser's final position in bits, and its error (0: none).
    fn block(
        &self,
        core: &mut Core,
        now_ns: u64,
        block: Block,
        packet: &[u8],
        cursor: usize,
        out: &mut Vec<u8>,
    ) -> (usize, u64) {
        let run = BlockRun {
            now_ns,
            packet,
            cursor,
            out,
        };
        let ended = core.run_block(&self.code, block, run);
        core.stats.register_conflicts = core.state.pass.register_conflicts;
        (ended.cursor, ended.error)
    }

    fn parser_err(&self, error: u64) -> u64 {
        let known = usize::try_from(error)
            .ok()
            .and_then(|e| self.parser_err.get(e));
        known.copied().unwrap_or(0)
    }
}

/// The argument of the package's parameter `name`: a block, or an error if there is none.
fn argument<'p>(package: &'p Package, name: &str) -> Result<&'p PackageArg, LoadError> {
    let found = package.args.iter().find(|(n, _)| n == name);
    found
        .map(|(_, arg)| arg)
        .ok_or_else(|| LoadError::Shape(format!("{} needs {name}", package.type_name)))
}
