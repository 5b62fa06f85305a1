//! What a trace tells of a packet, step by step.

use p4lang::runtime::FieldMatch;
use p4lang::source::Location;

/// A step, and where the source says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// File, line and column; `None` for what the architecture does.
    pub at: Option<Location>,
    /// What happened.
    pub kind: EventKind,
}

/// A named scalar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// As the program names it; fields of structs with dots.
    pub name: String,
    /// Hexadecimal digits behind `0x`; `invalid` for an invalid header.
    pub value: String,
    /// In bits.
    pub width: u32,
}

/// An action with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Fully qualified.
    pub name: String,
    /// Arguments of the control plane, or of the call.
    pub params: Vec<Field>,
}

/// Which step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// A packet came in.
    Received {
        /// There.
        port: u32,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A block of the architecture starts.
    Block {
        /// The unit's name.
        name: String,
    },
    /// A parser enters a state.
    State {
        /// The parser.
        parser: String,
        /// The state.
        state: String,
    },
    /// A header was read.
    Extract {
        /// Its name.
        header: String,
        /// First bit in the packet.
        offset_bits: usize,
        /// Its fields.
        fields: Vec<Field>,
    },
    /// A parser error.
    Error {
        /// Its name.
        error: String,
    },
    /// An `if`.
    Branch {
        /// The first line of its text.
        text: String,
        /// Whether the condition held.
        taken: bool,
    },
    /// A table was applied.
    Table {
        /// Fully qualified.
        table: String,
        /// Its key.
        keys: Vec<Field>,
        /// The entry found: its matches and priority; `None`: the default action.
        entry: Option<(Vec<FieldMatch>, i32)>,
        /// What runs; `None`: nothing.
        action: Option<Ran>,
    },
    /// An action was called from a body.
    Action(Ran),
    /// A method of an extern object, or an extern function (`object` empty).
    Extern {
        /// Fully qualified.
        object: String,
        /// Its method or the function.
        method: String,
        /// Values of the `in` arguments.
        args: Vec<Field>,
        /// What it gave.
        result: Vec<Field>,
    },
    /// A header was written.
    Emit {
        /// Its name.
        header: String,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// The program logs something (`log_msg`).
    Log {
        /// The message, its values filled in.
        message: String,
    },
    /// An `assert` or `assume` does not hold.
    AssertionFailed {
        /// Which of the two.
        function: String,
        /// The first line of its text.
        text: String,
    },
    /// An undefined value decided something.
    Undefined {
        /// What.
        what: String,
    },
    /// A packet leaves.
    Transmit {
        /// There.
        port: u32,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A packet or copy goes no further.
    Drop {
        /// Why, as [`crate::DropReason::name`] says.
        reason: &'static str,
    },
    /// Packets wait for their ports in egress queues.
    Enqueued {
        /// How many joined them.
        packets: u64,
    },
    /// A packet that has waited goes on: egress follows.
    Dequeued {
        /// Of this port's queues.
        port: u32,
        /// Its bytes as it joined the queue.
        bytes: Vec<u8>,
    },
    /// Packets wait on the recirculation link.
    Recirculate {
        /// How many joined it.
        packets: u64,
    },
    /// A digest message waits for the control plane.
    Digest {
        /// How many.
        messages: u64,
    },
}
