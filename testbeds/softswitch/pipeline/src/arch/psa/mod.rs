//! The Portable Switch Architecture (PSA 1.2, section 6).
//!
//! ```text
//! port ─┬→ ingress parser → ingress → deparser ─→ replication ─→ egress parser → egress → deparser ─┬→ port
//!       │                                  │      unicast, multicast, clones ↑              │       │
//!       ├───────────── resubmit ←──────────┘                                 └── clone E2E ←┘       │
//!       └───────────────────────────────────── recirculate ←───────────────────────────────────────┘
//! ```

pub(crate) mod functions;
mod layout;
mod pipe;
pub(crate) mod reference;

use crate::arch::block::BlockRun;
use crate::arch::core::Core;
use crate::compile::Compiler;
use crate::config::Executor;
use crate::error::LoadError;
use crate::job::{Job, Path};
use crate::op::Code;
pub(crate) use crate::port_numbers::RECIRCULATE_PORT;
use crate::stats::DropReason;
use layout::{Egress, PsaIngress};
use p4lang::ir::{PackageArg, Program};
use pipe::PsaBlocks;

/// The program's values of the members of `PSA_PacketPath_t`.
#[derive(Debug, Clone, Copy, Default)]
struct Paths {
    normal: u64,
    unicast: u64,
    multicast: u64,
    clone_i2e: u64,
    clone_e2e: u64,
    resubmit: u64,
    recirculate: u64,
}

#[derive(Debug)]
pub(crate) struct Psa {
    pub(crate) code: Code,
    ingress: PsaIngress,
    egress: Egress,
    paths: Paths,
}

/// The destination of a copy that goes to egress, and the metadata that egress sees.
#[derive(Debug, Clone, Copy)]
struct PsaCopy {
    path: Path,
    port: u32,
    instance: u16,
    class: u64,
    passes: u32,
}

impl PsaCopy {
    fn from_job(job: &Job) -> PsaCopy {
        PsaCopy {
            path: job.path,
            port: job.port,
            instance: job.instance,
            class: job.class,
            passes: job.passes,
        }
    }
}

impl Psa {
    /// Lays out the parameters of PSA's six blocks in one frame and compiles the blocks.
    pub(crate) fn load(program: &Program, compiler: &mut Compiler<'_>) -> Result<Psa, LoadError> {
        let mut pipelines = program.main.args.iter().filter_map(|(_, arg)| match arg {
            PackageArg::Package(p)
                if p.type_name == "IngressPipeline" || p.type_name == "EgressPipeline" =>
            {
                Some(p.as_ref())
            }
            _ => None,
        });
        let (Some(first), Some(second)) = (pipelines.next(), pipelines.next()) else {
            return Err(LoadError::Shape(
                "PSA_Switch needs an IngressPipeline and an EgressPipeline".into(),
            ));
        };
        let path = |name: &str| {
            let members = program
                .enums
                .iter()
                .find(|e| e.name == "PSA_PacketPath_t")
                .map(|e| &e.members);
            members
                .and_then(|m| m.iter().position(|x| x == name))
                .unwrap_or(0) as u64
        };
        let ingress = PsaIngress::load(compiler, first)?;
        let egress = Egress::load(compiler, second)?;
        let carried = [
            (ingress.normal_meta, egress.normal_in),
            (ingress.clone_meta, egress.clone_i2e_in),
        ];
        compiler.bindings.carried = carried
            .map(|(from, to)| (from.slot, to.slot, from.size.min(to.size)))
            .into();
        Ok(Psa {
            code: Code::default(),
            ingress,
            egress,
            paths: Paths {
                normal: path("NORMAL"),
                unicast: path("NORMAL_UNICAST"),
                multicast: path("NORMAL_MULTICAST"),
                clone_i2e: path("CLONE_I2E"),
                clone_e2e: path("CLONE_E2E"),
                resubmit: path("RESUBMIT"),
                recirculate: path("RECIRCULATE"),
            },
        })
    }

    /// Processes a packet that waits for a further pass: through ingress, or through egress for a clone.
    pub(crate) fn run(&self, core: &mut Core, now_ns: u64, job: &Job) {
        match job.path {
            Path::Normal | Path::Resubmit | Path::Recirculate => {
                self.ingress(
                    core, now_ns, job.path, job.port, &job.bytes, &job.meta, job.passes,
                );
            }
            _ => self.to_egress(core, now_ns, PsaCopy::from_job(job), &job.bytes, &job.meta),
        }
    }

    /// Runs egress for a packet that has waited for its port in an egress queue.
    pub(crate) fn leave_queue(&self, core: &mut Core, now_ns: u64, job: &Job) {
        core.nothing_is_undefined();
        self.egress(core, now_ns, PsaCopy::from_job(job), &job.bytes, &job.meta);
    }

    /// Runs ingress for a packet and everything that follows, including egress of the copies.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn ingress(
        &self,
        core: &mut Core,
        now_ns: u64,
        path: Path,
        port: u32,
        bytes: &[u8],
        meta: &[u64],
        passes: u32,
    ) {
        let x = &self.ingress;
        let (path_value, arrived_ns) = match path {
            Path::Resubmit => (self.paths.resubmit, now_ns),
            Path::Recirculate => (self.paths.recirculate, now_ns),
            _ => (self.paths.normal, core.arrived_ns),
        };
        let frame = &mut core.frame;
        x.pipe.zero(frame);
        for region in [
            x.resubmit_in,
            x.recirculate_in,
            x.clone_meta,
            x.resubmit_meta,
            x.normal_meta,
        ] {
            region.zero(frame);
        }
        match path {
            Path::Resubmit => x.resubmit_in.load(frame, meta),
            Path::Recirculate => x.recirculate_in.load(frame, meta),
            _ => {}
        }
        x.pipe.arrived(frame, arrived_ns, port, path_value);
        // The rest of the output starts as 0: class 0, no clone, no resubmit, no group.
        x.pipe.blocks.drop.set(frame, 1);

        let mut out = core.buffer();
        self.blocks(core, now_ns, x.pipe.blocks, bytes, &mut out);

        core.decided(&self.code, x.pipe.blocks.control, |core| {
            x.deciding(&core.frame)
        });
        let frame = &core.frame;
        let dropped = x.pipe.blocks.drop.get(frame) != 0;
        let resubmit = x.resubmit.get(frame) != 0;
        let group = x.multicast_group.get(frame) as u32;
        let egress_port = x.egress_port.get(frame) as u32;
        let class = x.class_of_service.get(frame);
        if x.pipe.blocks.clone.get(frame) != 0 {
            let session = x.pipe.clone_session.get(&core.frame) as u32;
            self.clone_to_egress(core, now_ns, session, bytes, passes);
        }
        if dropped {
            core.stats.drop(DropReason::Ingress);
        } else if resubmit {
            let job = Job {
                path: Path::Resubmit,
                port,
                passes: passes + 1,
                ..Job::default()
            };
            core.queue(job, bytes, |frame, meta| {
                meta.extend_from_slice(x.resubmit_meta.slots(frame))
            });
        } else if group != 0 {
            self.multicast(core, now_ns, group, class, &out, passes);
        } else if core.is_port(egress_port) {
            let copy = PsaCopy {
                path: Path::Unicast,
                port: egress_port,
                instance: 0,
                class,
                passes,
            };
            self.to_egress(core, now_ns, copy, &out, &[]);
        } else {
            core.stats.drop(DropReason::InvalidPort);
        }
        core.recycle(out);
    }

    /// Clones a packet from ingress to egress. The clone has the bytes that entered the parser. It is made even if the packet
    /// is dropped.
    fn clone_to_egress(&self, core: &mut Core, now_ns: u64, id: u32, bytes: &[u8], passes: u32) {
        core.stats.made += 1;
        let Some(session) = core.replication.session(id, core.config.cpu_port) else {
            core.stats.drop(DropReason::NoSession);
            return;
        };
        if session.replicas.is_empty() {
            core.stats.drop(DropReason::NoSession);
        }
        core.stats.copied(session.replicas.len());
        let cut = session.cut(bytes);
        for replica in session.replicas.iter() {
            let copy = PsaCopy {
                path: Path::CloneI2e,
                port: replica.port,
                instance: replica.instance,
                class: session.class.into(),
                passes,
            };
            self.to_port(core, now_ns, copy, cut);
        }
    }

    fn multicast(
        &self,
        core: &mut Core,
        now_ns: u64,
        id: u32,
        class: u64,
        bytes: &[u8],
        passes: u32,
    ) {
        let replicas = core.replication.group(id);
        let Some(replicas) = replicas.filter(|r| !r.is_empty()) else {
            core.stats.drop(DropReason::EmptyGroup);
            return;
        };
        core.stats.copied(replicas.len());
        for replica in replicas.iter() {
            let copy = PsaCopy {
                path: Path::Multicast,
                port: replica.port,
                instance: replica.instance,
                class,
                passes,
            };
            self.to_port(core, now_ns, copy, bytes);
        }
    }

    fn to_port(&self, core: &mut Core, now_ns: u64, copy: PsaCopy, bytes: &[u8]) {
        if core.is_port(copy.port) {
            self.to_egress(core, now_ns, copy, bytes, &[]);
        } else {
            core.stats.drop(DropReason::InvalidPort);
        }
    }

    /// Runs egress of one copy, at once or when its port is free. `meta`: the metadata that was saved for an egress clone. For
    /// other copies it is unused: ingress has written their metadata to the frame.
    fn to_egress(&self, core: &mut Core, now_ns: u64, copy: PsaCopy, bytes: &[u8], meta: &[u64]) {
        let from = &self.ingress;
        let job = || Job {
            path: copy.path,
            port: copy.port,
            instance: copy.instance,
            class: copy.class,
            passes: copy.passes,
            ..Job::default()
        };
        let to = (copy.port, copy.class);
        let straight =
            core.passes_straight(now_ns, to, bytes, job, |frame, image| match copy.path {
                Path::CloneI2e => image.extend_from_slice(from.clone_meta.slots(frame)),
                Path::CloneE2e => image.extend_from_slice(meta),
                _ => image.extend_from_slice(from.normal_meta.slots(frame)),
            });
        if straight {
            self.egress(core, now_ns, copy, bytes, meta);
        }
    }

    /// Runs egress of one copy. `meta`: the metadata that was saved for an egress clone, or for a copy that has waited in a
    /// queue. For other copies it is unused: ingress has written their metadata to the frame.
    fn egress(&self, core: &mut Core, now_ns: u64, copy: PsaCopy, bytes: &[u8], meta: &[u64]) {
        let (x, from) = (&self.egress, &self.ingress);
        let frame = &mut core.frame;
        x.pipe.zero(frame);
        for region in [
            x.normal_in,
            x.clone_i2e_in,
            x.clone_e2e_in,
            x.clone_meta,
            x.recirculate_meta,
        ] {
            region.zero(frame);
        }
        let path = match copy.path {
            Path::Multicast => self.paths.multicast,
            Path::CloneI2e => self.paths.clone_i2e,
            Path::CloneE2e => self.paths.clone_e2e,
            _ => self.paths.unicast,
        };
        match copy.path {
            Path::CloneE2e => x.clone_e2e_in.load(frame, meta),
            Path::CloneI2e if !meta.is_empty() => x.clone_i2e_in.load(frame, meta),
            Path::CloneI2e => x.clone_i2e_in.copy_from(frame, from.clone_meta),
            _ if !meta.is_empty() => x.normal_in.load(frame, meta),
            _ => x.normal_in.copy_from(frame, from.normal_meta),
        }
        x.pipe.arrived(frame, now_ns, copy.port, path);
        x.class_of_service.set(frame, copy.class);
        x.instance.set(frame, copy.instance.into());
        x.deparser_port.set(frame, copy.port.into());

        let mut out = core.buffer();
        self.blocks(core, now_ns, x.pipe.blocks, bytes, &mut out);

        core.decided(&self.code, x.pipe.blocks.control, |core| {
            x.deciding(&core.frame)
        });
        if x.pipe.blocks.clone.get(&core.frame) != 0 {
            let id = x.pipe.clone_session.get(&core.frame) as u32;
            core.stats.made += 1;
            match core
                .replication
                .session(id, core.config.cpu_port)
                .filter(|s| !s.replicas.is_empty())
            {
                None => core.stats.drop(DropReason::NoSession),
                Some(session) => {
                    core.stats.copied(session.replicas.len());
                    for replica in session.replicas.iter() {
                        if !core.is_port(replica.port) {
                            core.stats.drop(DropReason::InvalidPort);
                            continue;
                        }
                        let job = Job {
                            path: Path::CloneE2e,
                            port: replica.port,
                            instance: replica.instance,
                            class: session.class.into(),
                            passes: copy.passes + 1,
                            ..Job::default()
                        };
                        core.queue(job, session.cut(&out), |frame, meta| {
                            meta.extend_from_slice(x.clone_meta.slots(frame));
                        });
                    }
                }
            }
        }
        if x.pipe.blocks.drop.get(&core.frame) != 0 {
            core.stats.drop(DropReason::Egress);
            core.recycle(out);
        } else if copy.port == RECIRCULATE_PORT {
            core.recirculate(now_ns, RECIRCULATE_PORT, out, |frame, meta| {
                meta.extend_from_slice(x.recirculate_meta.slots(frame));
            });
        } else {
            core.transmit(copy.port, out);
        }
    }

    /// Runs parser, control and deparser of ingress or egress, then appends the payload that the parser has not read.
    fn blocks(
        &self,
        core: &mut Core,
        now_ns: u64,
        blocks: PsaBlocks,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) {
        for unit in &mut core.state.checksums {
            unit.clear();
        }
        let run = BlockRun {
            now_ns,
            packet: bytes,
            cursor: 0,
            out: &mut *out,
        };
        let parsed = core.run_blocks(&self.code, [blocks.parser, blocks.control], run);
        core.stats.parser_errors += u64::from(parsed.error != 0);
        // The bytes of a packet that is dropped here are never read, nor is the metadata of a clone that is not made.
        let frame = &core.frame;
        let unseen = blocks.drop.get(frame) != 0 && blocks.clone.get(frame) == 0;
        if unseen && core.executor == Executor::Fast && self.code.is_quiet(blocks.deparser) {
            return;
        }
        let run = BlockRun {
            now_ns,
            packet: bytes,
            cursor: parsed.cursor,
            out: &mut *out,
        };
        core.run_block(&self.code, blocks.deparser, run);
        let payload = parsed.cursor.div_ceil(8);
        out.extend_from_slice(&bytes[payload.min(bytes.len())..]);
    }
}
