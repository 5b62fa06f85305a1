//! Tracing of packets: records all steps of a packet through the program, and reads of undefined values.

use crate::arch::core::Core;
use crate::arch::region::MetaField;
use crate::config::Executor;
use crate::op::Code;
use crate::op::bindings::Block;
use crate::reference::Reference;
use crate::reference::event::{Event, EventKind};
use crate::stats::DropReason;
use crate::switch::Switch;
use p4lang::ir::{ExternFunction, Program, Stmt, StmtKind, visit};
use std::sync::Arc;

/// The values of the switch's statistics before a packet is processed, to find out what became of the packet.
pub(crate) struct Before {
    transmits: usize,
    drops: Vec<u64>,
    recirculated: u64,
    waiting: usize,
    digests: usize,
}

impl Switch {
    /// Starts or stops tracing: packets then run in [`Executor::Reference`], which records all their steps.
    pub fn set_tracing(&mut self, on: bool) {
        if on && self.core.reference.is_none() {
            let reference =
                Reference::new(Arc::clone(self.program()), self.arch.interpreted(), None);
            self.core.reference = Some(Box::new(reference));
        }
        if let Some(reference) = &mut self.core.reference {
            reference.watch.steps = on;
        }
        let logs = self.core.reference.as_ref().is_some_and(|r| r.watch.logs);
        self.core.executor = match self.core.config.executor {
            _ if on => Executor::Reference,
            Executor::Fast if logs => Executor::Reference,
            executor => executor,
        };
    }

    /// Starts to record log messages (`log_msg`) and failures of `assert` and `assume`; returns whether the program calls
    /// any of them. Such a program then runs in [`Executor::Reference`] instead of the fast executor, which records
    /// nothing.
    pub fn set_logging(&mut self) -> bool {
        if !logs(self.program()) {
            return false;
        }
        if self.core.reference.is_none() {
            let reference =
                Reference::new(Arc::clone(self.program()), self.arch.interpreted(), None);
            self.core.reference = Some(Box::new(reference));
        }
        if let Some(reference) = &mut self.core.reference {
            reference.watch.logs = true;
        }
        if self.core.executor == Executor::Fast {
            self.core.executor = Executor::Reference;
        }
        true
    }

    /// Takes the trace events since the last call: steps while tracing is on, and reads of undefined values with
    /// [`crate::Config::poison`]. Also returns the number of events that were lost beyond the limit.
    pub fn take_events(&mut self) -> (Vec<Event>, u64) {
        let reference = self.core.reference.as_mut();
        reference.map_or_else(Default::default, |r| r.watch.take())
    }

    /// Records that a packet arrived; returns the statistics before it, or `None` if nothing is traced.
    pub(crate) fn traced(&mut self, port: u32, bytes: &[u8]) -> Option<Before> {
        self.starts(|| EventKind::Received {
            port,
            bytes: bytes.to_vec(),
        })
    }

    /// Records that a packet left an egress queue; returns the statistics before it, or `None` if nothing is traced.
    pub(crate) fn traced_on(&mut self, port: u32, bytes: &[u8]) -> Option<Before> {
        self.starts(|| EventKind::Dequeued {
            port,
            bytes: bytes.to_vec(),
        })
    }

    fn starts(&mut self, event: impl FnOnce() -> EventKind) -> Option<Before> {
        let reference = self.core.reference.as_mut();
        let watch = &mut reference.filter(|r| r.watch.steps)?.watch;
        watch.note(event());
        let stats = &self.core.stats;
        Some(Before {
            transmits: self.core.transmits.len(),
            drops: DropReason::ALL.map(|r| stats.dropped(r)).to_vec(),
            recirculated: stats.recirculated,
            waiting: self.core.queues.waiting(),
            digests: self.core.state.digests.waiting.len(),
        })
    }

    /// Records what became of a packet (transmitted, dropped, queued and so on), from the statistics `before` it and now.
    pub(crate) fn trace_verdict(&mut self, before: Before) {
        let core = &mut self.core;
        let stats = &core.stats;
        let Some(reference) = &mut core.reference else {
            return;
        };
        let watch = &mut reference.watch;
        for (port, bytes) in core.transmits.iter().skip(before.transmits) {
            watch.note(EventKind::Transmit {
                port: *port,
                bytes: bytes.clone(),
            });
        }
        for (reason, before) in DropReason::ALL.into_iter().zip(before.drops) {
            for _ in before..stats.dropped(reason) {
                let reason = reason.name();
                watch.note(EventKind::Drop { reason });
            }
        }
        let packets = core.queues.waiting().saturating_sub(before.waiting) as u64;
        if packets > 0 {
            watch.note(EventKind::Enqueued { packets });
        }
        let packets = stats.recirculated - before.recirculated;
        if packets > 0 {
            watch.note(EventKind::Recirculate { packets });
        }
        let messages = core
            .state
            .digests
            .waiting
            .len()
            .saturating_sub(before.digests) as u64;
        if messages > 0 {
            watch.note(EventKind::Digest { messages });
        }
    }
}

/// Whether a program calls `log_msg`, `assert` or `assume`.
fn logs(program: &Program) -> bool {
    let mut found = false;
    let mut look = |block: &[Stmt]| {
        visit(block, &mut |stmt| {
            found |= matches!(
                stmt.kind,
                StmtKind::CallExtern {
                    function: ExternFunction::LogMsg
                        | ExternFunction::Assert
                        | ExternFunction::Assume,
                    ..
                }
            );
        });
    };
    for parser in &program.parsers {
        parser.states.iter().for_each(|state| look(&state.body));
    }
    for control in &program.controls {
        control.actions.iter().for_each(|action| look(&action.body));
        look(&control.body);
    }
    program.functions.iter().for_each(|f| look(&f.body));
    found
}

impl Core {
    /// Reports undefined metadata fields by which the architecture decides about the packet after a block. `fields` returns the
    /// fields that matter for this packet; it is called only if undefined values are marked.
    #[inline(always)]
    pub(crate) fn decided(
        &mut self,
        code: &Code,
        block: Block,
        fields: impl FnOnce(&Core) -> Vec<(MetaField, &'static str)>,
    ) {
        if self.reference.is_some() {
            self.trace_decided(code, block, fields);
        }
    }

    /// Makes all bits of the frame count as defined, after it was loaded from saved slots, which do not record undefined bits.
    pub(crate) fn nothing_is_undefined(&mut self) {
        if let Some(reference) = &mut self.reference {
            reference.set_aside();
        }
    }

    #[cold]
    fn trace_decided(
        &mut self,
        code: &Code,
        block: Block,
        fields: impl FnOnce(&Core) -> Vec<(MetaField, &'static str)>,
    ) {
        let marks = |reference: &Reference| reference.watch.fill.marks();
        if !self.reference.as_deref().is_some_and(marks) {
            return;
        }
        let fields = fields(self);
        if let Some(reference) = &mut self.reference {
            reference.decides(code, block, &self.frame, &fields);
        }
    }
}
