//! v1model, as BMv2's `simple_switch` runs it.
//!
//! ```text
//! port ─┬→ parser → verify → ingress ─→ replication ─→ egress ─┬→ compute → deparser ─┬→ port
//!       │                       │      clone I2E ↑ (parsed again)  │                      │
//!       ├─────── resubmit ←─────┘                └── clone E2E ←───┘                      │
//!       └──────────────────────────────── recirculate ←─────────────────────────────────┘
//! ```
//!
//! Headers and metadata stay in place from the parser to the deparser: nothing is deparsed in between. All that
//! `simple_switch` resets is also reset here: a resubmitted or recirculated packet has an `ingress_port` only if its
//! field list keeps it. Times are in microseconds.

pub(crate) mod functions;
mod layout;
pub(crate) mod reference;

use crate::arch::core::{Core, Session};
use crate::compile::Compiler;
use crate::error::LoadError;
use crate::job::{Job, Path};
use crate::op::Code;
use crate::op::bindings::Block;
use crate::op::block::{BlockEnd, BlockRun};
pub(crate) use crate::port_numbers::DROP_PORT;
use crate::queues::Waited;
use crate::stats::DropReason;
use layout::V1modelLayout;
use p4lang::runtime::Replica;

/// The numbers that `standard_metadata.instance_type` may have.
mod instance {
    pub const NORMAL: u64 = 0;
    pub const INGRESS_CLONE: u64 = 1;
    pub const EGRESS_CLONE: u64 = 2;
    pub const RECIRCULATED: u64 = 4;
    pub const REPLICATED: u64 = 5;
    pub const RESUBMITTED: u64 = 6;
}

#[derive(Debug)]
pub(crate) struct V1model {
    pub(crate) code: Code,
    layout: V1modelLayout,
}

/// Bytes of a packet, and the position up to which the parser has consumed them.
#[derive(Debug, Clone, Copy)]
struct Packet<'a> {
    bytes: &'a [u8],
    /// Position of the payload's first bit: the number of bits that the parser has read.
    cursor: usize,
    /// Number of passes of the packet so far without leaving the switch.
    passes: u32,
    /// Value of `standard_metadata.packet_length`.
    length: u64,
    /// The length that ingress requested by `truncate`, + 1; 0 if none. It applies to the packet, not to its clones.
    truncate: u64,
}

impl<'a> Packet<'a> {
    /// The inputs for running a block on this packet.
    #[inline(always)]
    fn run(self, now_ns: u64, out: &'a mut Vec<u8>) -> BlockRun<'a> {
        BlockRun {
            now_ns,
            packet: self.bytes,
            cursor: self.cursor,
            out,
        }
    }
}

impl V1model {
    /// Lays out the parameters of v1model's six blocks in one frame and compiles the blocks.
    pub(crate) fn load(compiler: &mut Compiler<'_>) -> Result<V1model, LoadError> {
        let layout = V1modelLayout::load(compiler)?;
        Ok(V1model {
            code: Code::default(),
            layout,
        })
    }

    /// Processes a packet that waits for a further pass, such as a resubmitted one.
    pub(crate) fn run(&self, core: &mut Core, now_ns: u64, job: &Job) {
        if job.path == Path::CloneE2e {
            self.egress_clone(core, now_ns, job);
        } else {
            self.ingress(
                core, now_ns, job.path, job.port, &job.bytes, &job.meta, job.passes,
            );
        }
    }

    /// Runs ingress for a packet and all that follows. `kept`: the metadata that a field list has kept from an earlier pass.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn ingress(
        &self,
        core: &mut Core,
        now_ns: u64,
        path: Path,
        port: u32,
        bytes: &[u8],
        kept: &[u64],
        passes: u32,
    ) {
        let (x, std) = (&self.layout, &self.layout.standard);
        let frame = &mut core.frame;
        x.fresh.zero(frame);
        match path {
            Path::Resubmit => {
                x.metadata.load(frame, kept);
                std.instance_type.set(frame, instance::RESUBMITTED);
            }
            Path::Recirculate => {
                x.metadata.load(frame, kept);
                std.instance_type.set(frame, instance::RECIRCULATED);
            }
            _ => {
                std.ingress_port.set(frame, port.into());
                let arrived_us = core.arrived_ns / 1000;
                std.ingress_global_timestamp.set(frame, arrived_us);
            }
        }
        let length = bytes.len() as u64;
        std.packet_length.set(frame, length);

        let blocks = [x.blocks.parser, x.blocks.verify, x.blocks.ingress];
        let packet = Packet {
            bytes,
            cursor: self.parsed(core, now_ns, bytes, blocks),
            passes,
            length,
            truncate: 0,
        };

        let requested = x.requests.read(&core.frame);
        if requested.resubmit == 0 {
            core.decided(&self.code, x.blocks.ingress, |core| {
                std.deciding(&core.frame)
            });
        }
        if let Some(session) = requested.clone.checked_sub(1) {
            core.stats.made += 1;
            self.ingress_clone(core, now_ns, session, requested.clone_list, port, packet);
        }
        let frame = &mut core.frame;
        let group = std.mcast_grp.get(frame) as u32;
        let spec = std.egress_spec.get(frame) as u32;
        if requested.resubmit != 0 {
            let job = Job {
                path: Path::Resubmit,
                port,
                passes: passes + 1,
                ..Job::default()
            };
            core.queue(job, bytes, |frame, meta| {
                x.kept(frame, requested.resubmit, meta)
            });
        } else if group != 0 {
            std.instance_type.set(frame, instance::REPLICATED);
            let replicas = core.replication.group(group);
            match replicas.filter(|r| !r.is_empty()) {
                Some(replicas) => self.copies(core, now_ns, &replicas, packet),
                None => core.stats.drop(DropReason::EmptyGroup),
            }
        } else if spec == DROP_PORT {
            core.stats.drop(DropReason::Ingress);
        } else {
            std.instance_type.set(frame, instance::NORMAL);
            let replica = Replica {
                port: spec,
                instance: 0,
            };
            let packet = Packet {
                truncate: requested.truncate,
                ..packet
            };
            self.to_egress(core, now_ns, replica, packet);
        }
    }

    /// Runs the parser and the following blocks; returns the position of the payload's first bit. After a parser error, which
    /// the program can read, the packet continues.
    #[inline(always)]
    fn parsed<const N: usize>(
        &self,
        core: &mut Core,
        now_ns: u64,
        bytes: &[u8],
        blocks: [Block; N],
    ) -> usize {
        let run = BlockRun {
            now_ns,
            packet: bytes,
            cursor: 0,
            out: &mut Vec::new(),
        };
        let BlockEnd { cursor, error } = core.run_blocks(&self.code, blocks, run);
        core.stats.parser_errors += u64::from(error != 0);
        cursor
    }

    /// Makes a clone of ingress: parses the received bytes again, with the metadata that the field list keeps, and sends it to
    /// egress. Afterwards the frame is as before.
    fn ingress_clone(
        &self,
        core: &mut Core,
        now_ns: u64,
        id: u64,
        list: u64,
        port: u32,
        packet: Packet<'_>,
    ) {
        let Some(session) = session(core, id) else {
            return;
        };
        let (x, std) = (&self.layout, &self.layout.standard);
        let mut image = core.image();
        image.extend_from_slice(x.all.slots(&core.frame));
        let mut kept = core.image();
        x.kept(&core.frame, list, &mut kept);

        let reference = core.reference.as_mut();
        let undefined = reference.map(|reference| reference.set_aside());
        let bytes = session.cut(packet.bytes);
        x.all.zero(&mut core.frame);
        std.ingress_port.set(&mut core.frame, port.into());
        let cursor = self.parsed(core, now_ns, bytes, [x.blocks.parser]);
        x.metadata.load(&mut core.frame, &kept);
        std.instance_type
            .set(&mut core.frame, instance::INGRESS_CLONE);
        let clone = Packet {
            bytes,
            cursor,
            ..packet
        };
        self.copies(core, now_ns, &session.replicas, clone);

        x.all.load(&mut core.frame, &image);
        if let (Some(reference), Some(undefined)) = (&mut core.reference, undefined) {
            reference.put_back(undefined);
        }
        core.recycle_image(kept);
        core.recycle_image(image);
    }

    /// Runs egress for a clone made in egress: with its headers as they were when it was cloned, without parsing again.
    fn egress_clone(&self, core: &mut Core, now_ns: u64, job: &Job) {
        let x = &self.layout;
        let Some(session) = session(core, job.port.into()) else {
            return;
        };
        x.all.load(&mut core.frame, &job.meta);
        core.nothing_is_undefined();
        x.standard
            .instance_type
            .set(&mut core.frame, instance::EGRESS_CLONE);
        let clone = Packet {
            bytes: &job.bytes,
            cursor: 0,
            passes: job.passes,
            length: job.class,
            truncate: 0,
        };
        self.copies(core, now_ns, &session.replicas, clone);
    }

    /// Runs egress for each replica of the packet, starting each from the same frame.
    fn copies(&self, core: &mut Core, now_ns: u64, replicas: &[Replica], packet: Packet<'_>) {
        core.stats.copied(replicas.len());
        if let [replica] = replicas {
            return self.to_egress(core, now_ns, *replica, packet);
        }
        let x = &self.layout;
        let mut image = core.image();
        image.extend_from_slice(x.all.slots(&core.frame));
        for replica in replicas {
            x.all.load(&mut core.frame, &image);
            self.to_egress(core, now_ns, *replica, packet);
        }
        core.recycle_image(image);
    }

    /// Runs egress for a replica of the packet in the frame, at once or when its port is free.
    fn to_egress(&self, core: &mut Core, now_ns: u64, replica: Replica, packet: Packet<'_>) {
        let x = &self.layout;
        let class = x.standard.priority.get(&core.frame);
        let job = || Job {
            path: Path::Unicast,
            port: replica.port,
            instance: replica.instance,
            class,
            passes: packet.passes,
            ..Job::default()
        };
        let to = (replica.port, class);
        let straight = core.passes_straight(now_ns, to, packet.bytes, job, |frame, image| {
            image.extend_from_slice(&[packet.cursor as u64, packet.length, packet.truncate]);
            image.extend_from_slice(x.all.slots(frame));
        });
        if straight {
            // The queue is empty.
            let waited = Waited {
                enqueued_ns: now_ns,
                ..Waited::default()
            };
            self.egress(core, now_ns, replica, packet, &waited);
        }
    }

    /// Runs egress for a packet that has waited for its port in an egress queue.
    pub(crate) fn leave_queue(&self, core: &mut Core, now_ns: u64, job: &Job, waited: &Waited) {
        let [cursor, length, truncate, image @ ..] = &job.meta[..] else {
            return;
        };
        self.layout.all.load(&mut core.frame, image);
        core.nothing_is_undefined();
        let packet = Packet {
            bytes: &job.bytes,
            cursor: usize::try_from(*cursor).unwrap_or(usize::MAX),
            passes: job.passes,
            length: *length,
            truncate: *truncate,
        };
        let replica = Replica {
            port: job.port,
            instance: job.instance,
        };
        self.egress(core, now_ns, replica, packet, waited);
    }

    /// Runs egress for the packet whose headers and metadata are in the frame.
    fn egress(
        &self,
        core: &mut Core,
        now_ns: u64,
        replica: Replica,
        packet: Packet<'_>,
        waited: &Waited,
    ) {
        let (x, std) = (&self.layout, &self.layout.standard);
        let frame = &mut core.frame[..];
        x.requests.clear(frame, packet.truncate);
        let now_us = now_ns / 1000;
        std.egress_port.set(frame, replica.port.into());
        std.egress_rid.set(frame, replica.instance.into());
        std.egress_spec.set(frame, 0);
        std.packet_length.set(frame, packet.length);
        std.egress_global_timestamp.set(frame, now_us);
        let enqueued_us = waited.enqueued_ns / 1000;
        std.enq_timestamp.set(frame, enqueued_us);
        std.enq_qdepth.set(frame, waited.enqueue_depth);
        std.deq_timedelta
            .set(frame, now_us.saturating_sub(enqueued_us));
        std.deq_qdepth.set(frame, waited.dequeue_depth);
        let mut nothing = Vec::new();
        let run = packet.run(now_ns, &mut nothing);
        core.run_block(&self.code, x.blocks.egress, run);

        let requested = x.requests.read(&core.frame);
        let payload = packet.cursor.div_ceil(8).min(packet.bytes.len());
        if let Some(session) = requested.clone.checked_sub(1) {
            core.stats.made += 1;
            let job = Job {
                path: Path::CloneE2e,
                port: u32::try_from(session).unwrap_or(u32::MAX),
                class: packet.length,
                passes: packet.passes + 1,
                ..Job::default()
            };
            core.queue(job, &packet.bytes[payload..], |frame, meta| {
                meta.extend_from_slice(x.headers.slots(frame));
                x.kept(frame, requested.clone_list, meta);
            });
        }
        core.decided(&self.code, x.blocks.egress, |_| {
            vec![(std.egress_spec, "egress_spec")]
        });
        if std.egress_spec.get(&core.frame) as u32 == DROP_PORT {
            core.stats.drop(DropReason::Egress);
            return;
        }
        let mut out = core.buffer();
        let blocks = [x.blocks.compute, x.blocks.deparser];
        core.run_blocks(&self.code, blocks, packet.run(now_ns, &mut out));
        out.extend_from_slice(&packet.bytes[payload..]);
        if requested.recirculate != 0 {
            core.recirculate(now_ns, replica.port, out, |frame, meta| {
                x.kept(frame, requested.recirculate, meta);
            });
            return;
        }
        if let Some(length) = requested.truncate.checked_sub(1) {
            out.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        }
        if core.is_port(replica.port) {
            core.transmit(replica.port, out);
        } else {
            core.stats.drop(DropReason::InvalidPort);
            core.recycle(out);
        }
    }
}

/// The clone session with this id, if it has replicas; else counts a drop. In contrast to PSA, session 0 does not exist.
fn session(core: &mut Core, id: u64) -> Option<Session> {
    let id = u32::try_from(id).ok().filter(|id| *id != 0);
    let found = id.and_then(|id| core.replication.session(id, core.config.cpu_port));
    let found = found.filter(|s| !s.replicas.is_empty());
    if found.is_none() {
        core.stats.drop(DropReason::NoSession);
    }
    found
}
