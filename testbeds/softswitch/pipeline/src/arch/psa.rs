//! The Portable Switch Architecture (PSA 1.2, section 6).
//!
//! ```text
//! port ─┬→ ingress parser → ingress → deparser ─→ replication ─→ egress parser → egress → deparser ─┬→ port
//!       │                                  │      unicast, multicast, clones ↑              │       │
//!       ├───────────── resubmit ←──────────┘                                 └── clone E2E ←┘       │
//!       └───────────────────────────────────── recirculate ←───────────────────────────────────────┘
//! ```

use super::blocks;
use crate::compile::Compiler;
use crate::core::{Core, Job, Path};
use crate::error::LoadError;
use crate::exec::{ErrorCodes, Machine, bits::mask};
use crate::op::{Code, Slot, Target};
use crate::stats::DropReason;
use p4lang::ir::{Package, PackageArg, Param, Program, Type, Var};

/// `PSA_PORT_RECIRCULATE`
pub const RECIRCULATE_PORT: u32 = 0xffff_fffa;
/// `PSA_PORT_CPU`
pub const CPU_PORT: u32 = 0xffff_fffd;

/// A scalar of the metadata; absent if the program's include does not declare it.
#[derive(Debug, Clone, Copy, Default)]
struct Field(Option<(Slot, u32)>);

impl Field {
    fn set(self, frame: &mut [u64], value: u64) {
        if let Some((slot, width)) = self.0 {
            frame[slot as usize] = value & mask(width);
        }
    }

    fn get(self, frame: &[u64]) -> u64 {
        self.0.map_or(0, |(slot, _)| frame[slot as usize])
    }
}

/// A parameter's slots.
#[derive(Debug, Clone, Copy)]
struct Region {
    slot: Slot,
    size: u32,
}

impl Region {
    fn zero(self, frame: &mut [u64]) {
        frame[self.slot as usize..(self.slot + self.size) as usize].fill(0);
    }

    fn of(self, frame: &[u64]) -> &[u64] {
        &frame[self.slot as usize..(self.slot + self.size) as usize]
    }

    /// Takes what the deparser wrote for the next parser; the types are equal (the package's type parameters).
    fn copy_from(self, frame: &mut [u64], from: Region) {
        let n = self.size.min(from.size) as usize;
        frame.copy_within(
            from.slot as usize..from.slot as usize + n,
            self.slot as usize,
        );
    }

    fn load(self, frame: &mut [u64], image: &[u64]) {
        let to = &mut frame[self.slot as usize..(self.slot + self.size) as usize];
        for (to, from) in to.iter_mut().zip(image) {
            *to = *from;
        }
    }
}

/// Values of `PSA_PacketPath_t`.
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
struct Ingress {
    parser: Target,
    control: Target,
    deparser: Target,
    headers: Region,
    meta: Region,
    resubmit_in: Region,
    recirculate_in: Region,
    output: Region,
    clone_meta: Region,
    resubmit_meta: Region,
    normal_meta: Region,
    parser_port: Field,
    parser_path: Field,
    port: Field,
    path: Field,
    timestamp: Field,
    parser_error: Field,
    class_of_service: Field,
    clone: Field,
    clone_session: Field,
    drop: Field,
    resubmit: Field,
    multicast_group: Field,
    egress_port: Field,
}

#[derive(Debug)]
struct Egress {
    parser: Target,
    control: Target,
    deparser: Target,
    headers: Region,
    meta: Region,
    normal_in: Region,
    clone_i2e_in: Region,
    clone_e2e_in: Region,
    output: Region,
    clone_meta: Region,
    recirculate_meta: Region,
    parser_port: Field,
    parser_path: Field,
    class_of_service: Field,
    port: Field,
    path: Field,
    instance: Field,
    timestamp: Field,
    parser_error: Field,
    clone: Field,
    clone_session: Field,
    drop: Field,
    deparser_port: Field,
}

/// A PSA program.
#[derive(Debug)]
pub(crate) struct Psa {
    pub(crate) code: Code,
    errors: ErrorCodes,
    ingress: Ingress,
    egress: Egress,
    paths: Paths,
}

/// Where a copy goes and what its egress sees.
#[derive(Debug, Clone, Copy)]
struct Copied {
    path: Path,
    port: u32,
    instance: u16,
    class: u64,
    passes: u32,
}

/// Lays out the parameters of blocks.
struct Binder<'c, 'p> {
    compiler: &'c mut Compiler<'p>,
}

impl<'p> Binder<'_, 'p> {
    fn region(
        &mut self,
        vars: &'p [Var],
        params: &'p [Param],
        i: usize,
    ) -> Result<(Region, &'p Type), LoadError> {
        let Some(param) = params.get(i) else {
            return Err(LoadError::Shape(format!(
                "a block has {} parameters",
                params.len()
            )));
        };
        let ty = &vars[param.var.index()].ty;
        let size = self.compiler.size(ty)?;
        Ok((
            Region {
                slot: self.compiler.alloc(size)?,
                size,
            },
            ty,
        ))
    }

    fn field(&mut self, (region, ty): (Region, &Type), name: &str) -> Result<Field, LoadError> {
        let found = self.compiler.named_field(ty, name)?;
        Ok(Field(found.map(|(offset, ty)| {
            let width = match ty {
                Type::Bit(w) => w,
                Type::Bool => 1,
                _ => 32,
            };
            (region.slot + offset, width.min(64))
        })))
    }
}

impl Psa {
    /// Binds the six blocks to one frame and compiles them.
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
                "PSA_Switch wants an IngressPipeline and an EgressPipeline".into(),
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
        let ingress = Ingress::load(compiler, first)?;
        let egress = Egress::load(compiler, second)?;
        Ok(Psa {
            code: Code::default(),
            errors: compiler.error_codes(),
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

    /// Runs a packet of the work queue.
    pub(crate) fn run(&self, core: &mut Core, now_ns: u64, job: &Job) {
        match job.path {
            Path::Normal | Path::Resubmit | Path::Recirculate => {
                self.ingress(
                    core, now_ns, job.path, job.port, &job.bytes, &job.meta, job.passes,
                );
            }
            _ => {
                let copy = Copied {
                    path: job.path,
                    port: job.port,
                    instance: job.instance,
                    class: job.class,
                    passes: job.passes,
                };
                self.egress(core, now_ns, copy, &job.bytes, &job.meta);
            }
        }
    }

    /// Ingress, then whatever follows from it, egress of the copies included.
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
        let path_value = match path {
            Path::Resubmit => self.paths.resubmit,
            Path::Recirculate => self.paths.recirculate,
            _ => self.paths.normal,
        };
        let frame = &mut core.frame;
        for region in [x.headers, x.meta, x.resubmit_in, x.recirculate_in, x.output] {
            region.zero(frame);
        }
        for region in [x.clone_meta, x.resubmit_meta, x.normal_meta] {
            region.zero(frame);
        }
        match path {
            Path::Resubmit => x.resubmit_in.load(frame, meta),
            Path::Recirculate => x.recirculate_in.load(frame, meta),
            _ => {}
        }
        x.parser_port.set(frame, port.into());
        x.parser_path.set(frame, path_value);
        x.port.set(frame, port.into());
        x.path.set(frame, path_value);
        x.timestamp.set(frame, now_ns);
        // Everything else of the output starts as 0: class 0, no clone, no resubmit, no group.
        x.drop.set(frame, 1);

        let mut out = core.buffer();
        self.blocks(
            core,
            now_ns,
            (x.parser, x.control, x.deparser),
            x.parser_error,
            bytes,
            &mut out,
        );

        let frame = &core.frame;
        let dropped = x.drop.get(frame) != 0;
        let resubmit = x.resubmit.get(frame) != 0;
        let group = x.multicast_group.get(frame) as u32;
        let egress_port = x.egress_port.get(frame) as u32;
        let class = x.class_of_service.get(frame);
        if x.clone.get(frame) != 0 {
            let session = x.clone_session.get(frame) as u32;
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
                meta.extend_from_slice(x.resubmit_meta.of(frame))
            });
        } else if group != 0 {
            self.multicast(core, now_ns, group, class, &out, passes);
        } else if core.is_port(egress_port) {
            let copy = Copied {
                path: Path::Unicast,
                port: egress_port,
                instance: 0,
                class,
                passes,
            };
            self.egress(core, now_ns, copy, &out, &[]);
        } else {
            core.stats.drop(DropReason::InvalidPort);
        }
        core.recycle(out);
    }

    /// The clone carries the bytes that entered the parser, and is made even of a dropped packet.
    fn clone_to_egress(&self, core: &mut Core, now_ns: u64, id: u32, bytes: &[u8], passes: u32) {
        let Some(session) = core.replication.session(id, core.config.cpu_port) else {
            core.stats.drop(DropReason::NoSession);
            return;
        };
        if session.replicas.is_empty() {
            core.stats.drop(DropReason::NoSession);
        }
        let cut = session.cut(bytes);
        for replica in session.replicas.iter() {
            let copy = Copied {
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
        for replica in replicas.iter() {
            let copy = Copied {
                path: Path::Multicast,
                port: replica.port,
                instance: replica.instance,
                class,
                passes,
            };
            self.to_port(core, now_ns, copy, bytes);
        }
    }

    fn to_port(&self, core: &mut Core, now_ns: u64, copy: Copied, bytes: &[u8]) {
        if core.is_port(copy.port) {
            self.egress(core, now_ns, copy, bytes, &[]);
        } else {
            core.stats.drop(DropReason::InvalidPort);
        }
    }

    /// Egress of one copy. `meta` is that of an egress clone; what ingress wrote lies in the frame.
    fn egress(&self, core: &mut Core, now_ns: u64, copy: Copied, bytes: &[u8], meta: &[u64]) {
        let (x, from) = (&self.egress, &self.ingress);
        let frame = &mut core.frame;
        for region in [
            x.headers,
            x.meta,
            x.normal_in,
            x.clone_i2e_in,
            x.clone_e2e_in,
        ] {
            region.zero(frame);
        }
        for region in [x.output, x.clone_meta, x.recirculate_meta] {
            region.zero(frame);
        }
        let path = match copy.path {
            Path::Multicast => self.paths.multicast,
            Path::CloneI2e => self.paths.clone_i2e,
            Path::CloneE2e => self.paths.clone_e2e,
            _ => self.paths.unicast,
        };
        match copy.path {
            Path::CloneI2e => x.clone_i2e_in.copy_from(frame, from.clone_meta),
            Path::CloneE2e => x.clone_e2e_in.load(frame, meta),
            _ => x.normal_in.copy_from(frame, from.normal_meta),
        }
        x.parser_port.set(frame, copy.port.into());
        x.parser_path.set(frame, path);
        x.class_of_service.set(frame, copy.class);
        x.port.set(frame, copy.port.into());
        x.path.set(frame, path);
        x.instance.set(frame, copy.instance.into());
        x.timestamp.set(frame, now_ns);
        x.deparser_port.set(frame, copy.port.into());

        let mut out = core.buffer();
        self.blocks(
            core,
            now_ns,
            (x.parser, x.control, x.deparser),
            x.parser_error,
            bytes,
            &mut out,
        );

        if x.clone.get(&core.frame) != 0 {
            let id = x.clone_session.get(&core.frame) as u32;
            match core
                .replication
                .session(id, core.config.cpu_port)
                .filter(|s| !s.replicas.is_empty())
            {
                None => core.stats.drop(DropReason::NoSession),
                Some(session) => {
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
                            meta.extend_from_slice(x.clone_meta.of(frame));
                        });
                    }
                }
            }
        }
        if x.drop.get(&core.frame) != 0 {
            core.stats.drop(DropReason::Egress);
            core.recycle(out);
        } else if copy.port == RECIRCULATE_PORT {
            core.recirculate(now_ns, RECIRCULATE_PORT, out, |frame, meta| {
                meta.extend_from_slice(x.recirculate_meta.of(frame));
            });
        } else {
            core.transmit(copy.port, out);
        }
    }

    /// Parser, control, deparser, then the payload that the parser left.
    fn blocks(
        &self,
        core: &mut Core,
        now_ns: u64,
        (parser, control, deparser): (Target, Target, Target),
        parser_error: Field,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) {
        for unit in &mut core.state.checksums {
            unit.clear();
        }
        let steps = core.config.max_steps;
        let mut machine = Machine {
            frame: &mut core.frame,
            packet: bytes,
            cursor: 0,
            out,
            state: &mut core.state,
            now_ns,
            steps,
            error: 0,
            out_of_steps: false,
            failed_assertions: 0,
            trace: &mut core.trace,
        };
        machine.run(&self.code, &self.errors, parser);
        let payload = machine.cursor.div_ceil(8);
        parser_error.set(machine.frame, machine.error);
        if machine.error != 0 {
            core.stats.parser_errors += 1;
        }
        machine.steps = steps;
        machine.run(&self.code, &self.errors, control);
        machine.steps = steps;
        machine.run(&self.code, &self.errors, deparser);
        core.stats.out_of_steps += u64::from(machine.out_of_steps);
        core.stats.failed_assertions += machine.failed_assertions;
        out.extend_from_slice(&bytes[payload.min(bytes.len())..]);
    }
}

impl Ingress {
    fn load(compiler: &mut Compiler<'_>, package: &Package) -> Result<Ingress, LoadError> {
        let program = compiler.program;
        let (p, c, d) = blocks(program, package)?;
        let parser = &program.parsers[p.index()];
        let control = &program.controls[c.index()];
        let deparser = &program.controls[d.index()];
        let mut b = Binder { compiler };
        let (headers, _) = b.region(&parser.vars, &parser.params, 1)?;
        let (meta, _) = b.region(&parser.vars, &parser.params, 2)?;
        let parser_istd = b.region(&parser.vars, &parser.params, 3)?;
        let (resubmit_in, _) = b.region(&parser.vars, &parser.params, 4)?;
        let (recirculate_in, _) = b.region(&parser.vars, &parser.params, 5)?;
        let istd = b.region(&control.vars, &control.params, 2)?;
        let output = b.region(&control.vars, &control.params, 3)?;
        let (clone_meta, _) = b.region(&deparser.vars, &deparser.params, 1)?;
        let (resubmit_meta, _) = b.region(&deparser.vars, &deparser.params, 2)?;
        let (normal_meta, _) = b.region(&deparser.vars, &deparser.params, 3)?;
        let mut field = |of, name| b.field(of, name);
        let fields = Ingress {
            parser: 0,
            control: 0,
            deparser: 0,
            headers,
            meta,
            resubmit_in,
            recirculate_in,
            output: output.0,
            clone_meta,
            resubmit_meta,
            normal_meta,
            parser_port: field(parser_istd, "ingress_port")?,
            parser_path: field(parser_istd, "packet_path")?,
            port: field(istd, "ingress_port")?,
            path: field(istd, "packet_path")?,
            timestamp: field(istd, "ingress_timestamp")?,
            parser_error: field(istd, "parser_error")?,
            class_of_service: field(output, "class_of_service")?,
            clone: field(output, "clone")?,
            clone_session: field(output, "clone_session_id")?,
            drop: field(output, "drop")?,
            resubmit: field(output, "resubmit")?,
            multicast_group: field(output, "multicast_group")?,
            egress_port: field(output, "egress_port")?,
        };
        let (h, m) = (Some(headers.slot), Some(meta.slot));
        let s = |r: Region| Some(r.slot);
        Ok(Ingress {
            parser: compiler.parser(
                p,
                &[
                    None,
                    h,
                    m,
                    s(parser_istd.0),
                    s(resubmit_in),
                    s(recirculate_in),
                ],
            )?,
            control: compiler.control(c, &[h, m, s(istd.0), s(output.0)])?,
            deparser: compiler.control(
                d,
                &[
                    None,
                    s(clone_meta),
                    s(resubmit_meta),
                    s(normal_meta),
                    h,
                    m,
                    s(output.0),
                ],
            )?,
            ..fields
        })
    }
}

impl Egress {
    fn load(compiler: &mut Compiler<'_>, package: &Package) -> Result<Egress, LoadError> {
        let program = compiler.program;
        let (p, c, d) = blocks(program, package)?;
        let parser = &program.parsers[p.index()];
        let control = &program.controls[c.index()];
        let deparser = &program.controls[d.index()];
        let mut b = Binder { compiler };
        let (headers, _) = b.region(&parser.vars, &parser.params, 1)?;
        let (meta, _) = b.region(&parser.vars, &parser.params, 2)?;
        let parser_istd = b.region(&parser.vars, &parser.params, 3)?;
        let (normal_in, _) = b.region(&parser.vars, &parser.params, 4)?;
        let (clone_i2e_in, _) = b.region(&parser.vars, &parser.params, 5)?;
        let (clone_e2e_in, _) = b.region(&parser.vars, &parser.params, 6)?;
        let istd = b.region(&control.vars, &control.params, 2)?;
        let output = b.region(&control.vars, &control.params, 3)?;
        let (clone_meta, _) = b.region(&deparser.vars, &deparser.params, 1)?;
        let (recirculate_meta, _) = b.region(&deparser.vars, &deparser.params, 2)?;
        let edstd = b.region(&deparser.vars, &deparser.params, 6)?;
        let mut field = |of, name| b.field(of, name);
        let fields = Egress {
            parser: 0,
            control: 0,
            deparser: 0,
            headers,
            meta,
            normal_in,
            clone_i2e_in,
            clone_e2e_in,
            output: output.0,
            clone_meta,
            recirculate_meta,
            parser_port: field(parser_istd, "egress_port")?,
            parser_path: field(parser_istd, "packet_path")?,
            class_of_service: field(istd, "class_of_service")?,
            port: field(istd, "egress_port")?,
            path: field(istd, "packet_path")?,
            instance: field(istd, "instance")?,
            timestamp: field(istd, "egress_timestamp")?,
            parser_error: field(istd, "parser_error")?,
            clone: field(output, "clone")?,
            clone_session: field(output, "clone_session_id")?,
            drop: field(output, "drop")?,
            deparser_port: field(edstd, "egress_port")?,
        };
        let (h, m) = (Some(headers.slot), Some(meta.slot));
        let s = |r: Region| Some(r.slot);
        Ok(Egress {
            parser: compiler.parser(
                p,
                &[
                    None,
                    h,
                    m,
                    s(parser_istd.0),
                    s(normal_in),
                    s(clone_i2e_in),
                    s(clone_e2e_in),
                ],
            )?,
            control: compiler.control(c, &[h, m, s(istd.0), s(output.0)])?,
            deparser: compiler.control(
                d,
                &[
                    None,
                    s(clone_meta),
                    s(recirculate_meta),
                    h,
                    m,
                    s(output.0),
                    s(edstd.0),
                ],
            )?,
            ..fields
        })
    }
}
