//! The ghost control of a Tofino 2, which the traffic manager tells how long its queues are.

use crate::arch::region::{Binder, Field, Region};
use crate::compile::Compiler;
use crate::error::LoadError;
use crate::op::bindings::Block;
use p4lang::ir::{Package, PackageArg};

/// The ghost control of a Tofino 2: it runs when a queue's length changes, without a packet.
#[derive(Debug)]
pub(super) struct Ghost {
    pub(super) control: Block,
    /// The metadata, a header.
    metadata: Region,
    ping_pong: Field,
    qlength: Field,
    qid: Field,
    pipe_id: Field,
}

/// What the traffic manager says of a queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report {
    /// The pipe that it is in.
    pub(super) pipe: u32,
    /// Its number in the pipe.
    pub(super) queue: u64,
    /// What it holds, in cells.
    pub(super) cells: u64,
}

impl Ghost {
    /// Of a pipe's package, if it has one.
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

    /// Puts a report where the control reads it. Ghosts write while the bit is 1, ingress sees 0: so it reads what the ghost
    /// wrote last.
    pub(super) fn told(&self, frame: &mut [u64], report: Report) {
        frame[self.metadata.slot as usize] = 1;
        self.ping_pong.set(frame, 1);
        self.qlength.set(frame, report.cells.min(LONGEST));
        self.qid.set(frame, report.queue);
        self.pipe_id.set(frame, report.pipe.into());
    }
}

/// The longest queue that a ghost is told of, cells.
const LONGEST: u64 = (1 << 18) - 1;
