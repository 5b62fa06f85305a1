//! Runs compiled code without a switch, for unit tests.

use crate::exec::Machine;
use crate::op::Code;
use crate::state::State;

/// Runs compiled code from its first instruction, with at most 64 steps; returns the bytes appended to the outgoing packet.
pub fn run(code: &Code, frame: &mut [u64], state: &mut State, packet: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut machine = Machine {
        frame,
        packet,
        cursor: 0,
        out: &mut out,
        state,
        now_ns: 0,
        max_steps: 64,
        steps: 64,
        error: 0,
        verdict: None,
        out_of_steps: 0,
        failed_assertions: 0,
        trace: &mut Vec::new(),
    };
    machine.run(code, &code.errors, &[0]);
    out
}
