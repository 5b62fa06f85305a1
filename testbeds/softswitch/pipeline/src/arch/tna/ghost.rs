//! Compiles the ghost control of a Tofino 2, and passes it queue lengths from the traffic manager.

use crate::arch::region::{Binder, MetaField, Region};
use crate::compile::Compiler;
use crate::error::LoadError;
use crate::op::bindings::Block;
use p4lang::ir::{Package, PackageArg};

/// The ghost control of a Tofino 2, which runs without a packet when a queue's length changes.
#[derive(Debug)]
pub(super) struct Ghost {
    pub(super) control: Block,
    /// Slots of the ghost's intrinsic metadata, a header.
    metadata: Region,
    ping_pong: MetaField,
    qlength: MetaField,
    qid: MetaField,
    pipe_id: MetaField,
}

/// The traffic manager's report of a queue's length to ghost controls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report {
    /// Number of the pipe that contains the queue.
    pub(super) pipe: u32,
    /// Number of the queue within the pipe.
    pub(super) queue: u64,
    /// Length of the queue, in cells of 80 bytes.
    pub(super) cells: u64,
}

impl Ghost {
    /// Compiles the ghost control of a pipe's package; `None` if the package has none.
    pub(super) fn load<'p>(
        compiler: &mut Compiler<'p>,
        package: &'p Package,
    ) -> Result<Option<Ghost>, LoadError> {
        let mut args = package.args.iter();
        let Some((_, PackageArg::Control(id))) = args.find(|(name, _)| name == "ghost") else {
            return Ok(None);
        };
        let program = compiler.program;
        let control = &program.controls[id.index()];
        let mut b = Binder { compiler };
        let (metadata, ty) = b.region(&control.vars, &control.params, 0)?;
        let mut field = |name| b.field((metadata, ty), name);
        let (ping_pong, qlength) = (field("ping_pong")?, field("qlength")?);
        let (qid, pipe_id) = (field("qid")?, field("pipe_id")?);
        compiler.frame.pinned.push((metadata.slot, 1));
        let control = compiler.control(*id, &[Some(metadata.slot)])?;
        Ok(Some(Ghost {
            control,
            metadata,
            ping_pong,
            qlength,
            qid,
            pipe_id,
        }))
    }

    /// Writes a report into the ghost control's metadata. The ping-pong bit is always 1 for a ghost and 0 for ingress: so
    /// ingress reads the values that the ghost wrote last.
    pub(super) fn write_report(&self, frame: &mut [u64], report: Report) {
        frame[self.metadata.slot as usize] = 1;
        self.ping_pong.set(frame, 1);
        self.qlength.set(frame, report.cells.min(LONGEST));
        self.qid.set(frame, report.queue);
        self.pipe_id.set(frame, report.pipe.into());
    }
}

/// Maximum queue length that a report can contain, in cells.
const LONGEST: u64 = (1 << 18) - 1;
