//! Architectures, one folder each: the blocks that a packet passes, the layout of their metadata, extern objects and
//! functions, compiled and interpreted. The rest of the crate accesses them here, and in `rules.rs` for small
//! differences.

pub(crate) mod block;
pub(crate) mod core;
pub mod psa;
pub(crate) mod region;
pub mod tna;
pub mod tofino;
pub mod v1model;

use crate::arch::core::Core;
use crate::compile::Compiler;
use crate::compile::dialect::Dialect;
use crate::error::LoadError;
use crate::externs::register::Info;
use crate::job::{Job, Path};
use crate::op::Code;
use crate::queues::Waited;
use crate::reference::dialect::Interpreted;
use crate::state::State;
use p4lang::ir::{Arch, Package, PackageArg, Program};

/// A program, compiled for its architecture.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// A program for the Portable Switch Architecture.
    Psa(Box<psa::Psa>),
    /// A program for v1model, as BMv2's `simple_switch` runs it.
    V1model(Box<v1model::V1model>),
    /// A program for the Tofino Native Architecture, of Tofino 1 or 2.
    Tna(Box<tna::Tna>),
}

/// The compiler's implementation of an architecture's externs.
pub(crate) fn dialect(arch: &Arch) -> Result<&'static dyn Dialect, LoadError> {
    match arch {
        Arch::Psa => Ok(&psa::functions::PsaFunctions),
        Arch::V1model => Ok(&v1model::functions::V1modelFunctions),
        Arch::Tna | Arch::T2na => Ok(&tna::externs::TofinoExterns),
        other => Err(unknown(other)),
    }
}

impl Loaded {
    /// Compiles a program for its architecture; also returns the state of its tables and externs.
    pub(crate) fn load(
        program: &Program,
        mut compiler: Compiler<'_>,
    ) -> Result<(Loaded, State, Vec<Info>), LoadError> {
        match &program.arch {
            Arch::Psa => {
                let mut psa = psa::Psa::load(program, &mut compiler)?;
                let (code, state, registers) = compiler.finish();
                psa.code = code;
                Ok((Loaded::Psa(Box::new(psa)), state, registers))
            }
            Arch::V1model => {
                let mut v1model = v1model::V1model::load(&mut compiler)?;
                let (code, state, registers) = compiler.finish();
                v1model.code = code;
                Ok((Loaded::V1model(Box::new(v1model)), state, registers))
            }
            Arch::Tna | Arch::T2na => {
                let mut tna = tna::Tna::load(&mut compiler)?;
                let (code, state, registers) = compiler.finish();
                tna.code = code;
                Ok((Loaded::Tna(Box::new(tna)), state, registers))
            }
            other => Err(unknown(other)),
        }
    }

    /// The interpreter's implementation of the architecture's externs.
    pub(crate) fn interpreted(&self) -> &'static dyn Interpreted {
        match self {
            Loaded::Psa(_) => &psa::reference::PsaReference,
            Loaded::V1model(_) => &v1model::reference::V1modelReference,
            Loaded::Tna(_) => &tna::reference::TofinoReference,
        }
    }

    pub(crate) fn code(&self) -> &Code {
        match self {
            Loaded::Psa(psa) => &psa.code,
            Loaded::V1model(v1model) => &v1model.code,
            Loaded::Tna(tna) => &tna.code,
        }
    }

    /// Sets up what the architecture's chip has besides the program: on a Tofino, its pipes.
    pub(crate) fn prepare(&self, core: &mut Core) {
        if let Loaded::Tna(tna) = self {
            *core.tofino = tna.chip(core);
        }
    }

    /// Processes a packet that arrives at a port.
    pub(crate) fn receive(&self, core: &mut Core, now_ns: u64, port: u32, frame: &[u8]) {
        match self {
            Loaded::Psa(psa) => psa.ingress(core, now_ns, Path::Normal, port, frame, &[], 0),
            Loaded::V1model(v1model) => {
                v1model.ingress(core, now_ns, Path::Normal, port, frame, &[], 0);
            }
            Loaded::Tna(tna) => {
                let port = core.tofino.port_of(port, core.config.cpu_port);
                tna.receive(core, now_ns, port, frame);
            }
        }
    }

    /// Runs egress for a packet that has waited for its port in an egress queue.
    pub(crate) fn leave_queue(&self, core: &mut Core, now_ns: u64, job: &Job, waited: &Waited) {
        match self {
            Loaded::Psa(psa) => psa.leave_queue(core, now_ns, job),
            Loaded::V1model(v1model) => v1model.leave_queue(core, now_ns, job, waited),
            Loaded::Tna(tna) => tna.leave_queue(core, now_ns, job, waited),
        }
    }

    /// Handles a report of the length of a pipe's queue, in cells: see [`crate::Switch::report_queue`].
    pub(crate) fn report_queue(&self, core: &mut Core, now_ns: u64, queue: (u32, u64), cells: u64) {
        if let Loaded::Tna(tna) = self {
            tna.reported(core, now_ns, queue, cells);
        }
    }

    /// Processes a packet that waits for a further pass, such as a resubmitted one.
    pub(crate) fn run(&self, core: &mut Core, now_ns: u64, job: &Job) {
        match self {
            Loaded::Psa(psa) => psa.run(core, now_ns, job),
            Loaded::V1model(v1model) => v1model.run(core, now_ns, job),
            Loaded::Tna(tna) => tna.run(core, now_ns, job),
        }
    }
}

fn unknown(arch: &Arch) -> LoadError {
    LoadError::Architecture(match arch {
        Arch::Psa => "psa".into(),
        Arch::V1model => "v1model".into(),
        Arch::Tna => "tna".into(),
        Arch::T2na => "t2na".into(),
        Arch::Other(name) => name.clone(),
    })
}

/// The parser, the control and the deparser of a pipeline package, in the order of the package's parameters.
pub(crate) fn blocks(
    program: &Program,
    package: &Package,
) -> Result<
    (
        p4lang::ir::ParserId,
        p4lang::ir::ControlId,
        p4lang::ir::ControlId,
    ),
    LoadError,
> {
    let parser = package.args.iter().find_map(|(_, a)| match a {
        PackageArg::Parser(id) if id.index() < program.parsers.len() => Some(*id),
        _ => None,
    });
    let mut controls = package.args.iter().filter_map(|(_, a)| match a {
        PackageArg::Control(id) if id.index() < program.controls.len() => Some(*id),
        _ => None,
    });
    match (parser, controls.next(), controls.next()) {
        (Some(parser), Some(control), Some(deparser)) => Ok((parser, control, deparser)),
        _ => Err(LoadError::Shape(format!(
            "{} needs a parser, a control and a deparser",
            package.type_name
        ))),
    }
}
