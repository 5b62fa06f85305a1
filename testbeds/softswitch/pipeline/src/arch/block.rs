//! The single function through which an architecture runs a block.

use crate::arch::core::Core;
use crate::config::Executor;
use crate::exec::Machine;
use crate::op::Code;
use crate::op::bindings::Block;
pub(crate) use crate::op::block::{BlockEnd, BlockRun};
use crate::reference::Memory;

/// Maximum number of differences between the executors' results that are kept until the caller fetches them.
const DIFFERENCE_LIMIT: usize = 64;

impl Core {
    /// Runs one block of the program on the frame and the state, in the configured executor. It is inlined so that the parts of
    /// `run` stay in processor registers. Passed through memory, they made the processor wait, which cost a tenth of a router's
    /// time.
    #[inline(always)]
    pub(crate) fn run_block(&mut self, code: &Code, block: Block, run: BlockRun<'_>) -> BlockEnd {
        match self.executor {
            Executor::Fast => self.run_fast(code, block, run),
            Executor::Reference => self.run_reference(code, block, run),
            Executor::Both => self.run_both(code, block, run),
        }
    }

    /// Runs blocks one directly after the other, without work of the architecture in between. Only the first may be a parser;
    /// returns the result of the first.
    #[inline(always)]
    pub(crate) fn run_blocks<const N: usize>(
        &mut self,
        code: &Code,
        blocks: [Block; N],
        run: BlockRun<'_>,
    ) -> BlockEnd {
        if self.executor == Executor::Fast {
            return self.run_machine(code, blocks, run);
        }
        let mut cursor = run.cursor;
        let mut first = None;
        for block in blocks {
            let run = BlockRun {
                cursor,
                out: &mut *run.out,
                ..run
            };
            let ended = self.run_block(code, block, run);
            cursor = ended.cursor;
            first.get_or_insert(ended);
        }
        first.unwrap_or(BlockEnd { cursor, error: 0 })
    }

    #[inline(always)]
    fn run_fast(&mut self, code: &Code, block: Block, run: BlockRun<'_>) -> BlockEnd {
        self.run_machine(code, [block], run)
    }

    #[inline(always)]
    fn run_machine<const N: usize>(
        &mut self,
        code: &Code,
        blocks: [Block; N],
        run: BlockRun<'_>,
    ) -> BlockEnd {
        let mut ended = BlockEnd {
            cursor: run.cursor,
            error: 0,
        };
        if blocks.iter().all(|block| code.is_empty(*block)) {
            return ended;
        }
        let mut machine = Machine {
            frame: &mut self.frame,
            packet: run.packet,
            cursor: run.cursor,
            out: run.out,
            state: &mut self.state,
            now_ns: run.now_ns,
            max_steps: self.config.max_steps,
            steps: self.config.max_steps,
            error: 0,
            verdict: None,
            out_of_steps: 0,
            failed_assertions: 0,
            trace: &mut self.trace,
        };
        let entries = blocks.map(|block| code.entries[block.number as usize]);
        machine.run(code, &code.errors, &entries);
        ended.cursor = machine.cursor;
        ended.error = machine.verdict.unwrap_or(machine.error);
        if machine.out_of_steps > 0 || machine.failed_assertions > 0 {
            self.stats.out_of_steps += machine.out_of_steps;
            self.stats.failed_assertions += machine.failed_assertions;
        }
        ended
    }

    #[cold]
    fn run_reference(&mut self, code: &Code, block: Block, run: BlockRun<'_>) -> BlockEnd {
        // There is a reference whenever the executor is not the fast one.
        let Some(reference) = &mut self.reference else {
            return self.run_fast(code, block, run);
        };
        code.spread(&mut self.frame);
        let memory = Memory {
            frame: &mut self.frame,
            state: &mut self.state,
            marks: &mut self.trace,
        };
        let (ended, counts) = reference.run(code, block, memory, run, self.config.max_steps);
        code.gather(&mut self.frame);
        self.stats.out_of_steps += u64::from(counts.out_of_steps);
        self.stats.failed_assertions += counts.failed_assertions;
        ended
    }

    /// Runs a block in both executors. The machine's results count; the interpreter runs on copies of all state that a block
    /// may change.
    #[cold]
    fn run_both(&mut self, code: &Code, block: Block, run: BlockRun<'_>) -> BlockEnd {
        let (mut frame, mut state) = (self.frame.clone(), self.state.clone());
        code.spread(&mut frame);
        let (mut out, mut marks) = (run.out.clone(), Vec::new());
        let (marks_before, packet) = (self.trace.len(), run.packet);
        let counts_before = (self.stats.out_of_steps, self.stats.failed_assertions);
        let expected = self.reference.as_mut().map(|reference| {
            let memory = Memory {
                frame: &mut frame,
                state: &mut state,
                marks: &mut marks,
            };
            let run = BlockRun {
                out: &mut out,
                ..run
            };
            reference.run(code, block, memory, run, self.config.max_steps)
        });
        let given = &mut *run.out;
        let again = BlockRun {
            now_ns: run.now_ns,
            packet: run.packet,
            cursor: run.cursor,
            out: &mut *given,
        };
        let ended = self.run_fast(code, block, again);
        let (Some(reference), Some((expected, counts))) = (&self.reference, expected) else {
            return ended;
        };
        let stopped = (
            self.stats.out_of_steps - counts_before.0,
            self.stats.failed_assertions - counts_before.1,
        );
        let counted = (u64::from(counts.out_of_steps), counts.failed_assertions);
        let marked = self.trace.get(marks_before..).unwrap_or_default();
        let differs = |what: &str, a: &dyn std::fmt::Debug, b: &dyn std::fmt::Debug| {
            Some(format!("{what}: {a:?}, reference {b:?}"))
        };
        let difference = if ended != expected {
            differs("end", &ended, &expected)
        } else if *given != out {
            differs("bytes", given, &out)
        } else if stopped != counted {
            differs("steps and assertions", &stopped, &counted)
        } else if *marked != marks {
            differs("marks", &marked, &marks)
        } else {
            let state = self.state.difference(&state);
            let mut given = self.frame.clone();
            code.spread(&mut given);
            let parameter = || reference.difference(code, block, &given, &frame);
            state.or_else(parameter)
        };
        if let Some(difference) = difference
            && self.differences.len() < DIFFERENCE_LIMIT
        {
            let name = reference.name(code, block);
            let text = format!("{name}, packet {packet:02x?}: {difference}");
            self.differences.push(text);
        }
        ended
    }
}
