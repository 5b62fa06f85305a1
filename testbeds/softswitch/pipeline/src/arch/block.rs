//! The one place through which an architecture runs a block.

use crate::bindings::Block;
use crate::core::Core;
use crate::exec::Machine;
use crate::op::Code;

/// What a block is run on, apart from its parameters, which lie in the frame.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    /// Time.
    pub(crate) now_ns: u64,
    /// What a parser reads.
    pub(crate) packet: &'a [u8],
    /// Bits of it that were read before.
    pub(crate) cursor: usize,
    /// What a deparser appends to.
    pub(crate) out: &'a mut Vec<u8>,
}

/// How a block ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Bits read so far.
    pub(crate) cursor: usize,
    /// The parser's error; 0 is `NoError`.
    pub(crate) error: u64,
}

impl Core {
    /// Runs one block against the frame and the state.
    pub(crate) fn run_block(&mut self, code: &Code, block: Block, run: Run<'_>) -> Ended {
        let mut machine = Machine {
            frame: &mut self.frame,
            packet: run.packet,
            cursor: run.cursor,
            out: run.out,
            state: &mut self.state,
            now_ns: run.now_ns,
            steps: self.config.max_steps,
            error: 0,
            out_of_steps: false,
            failed_assertions: 0,
            trace: &mut self.trace,
        };
        machine.run(code, &code.errors, code.entries[block.number as usize]);
        self.stats.out_of_steps += u64::from(machine.out_of_steps);
        self.stats.failed_assertions += machine.failed_assertions;
        Ended {
            cursor: machine.cursor,
            error: machine.error,
        }
    }
}
