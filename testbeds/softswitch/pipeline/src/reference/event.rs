//! Events of a trace: the steps of a packet.

use p4lang::runtime::FieldMatch;
use p4lang::source::Location;

/// A step, with its position in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// File, line and column; `None` for a step of the architecture.
    pub at: Option<Location>,
    /// The step.
    pub kind: EventKind,
}

/// A named scalar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventField {
    /// Name as in the program; fields of structs with dots.
    pub name: String,
    /// Hexadecimal digits after `0x`; `invalid` for an invalid header.
    pub value: String,
    /// Width in bits.
    pub width: u32,
}

/// An action with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventAction {
    /// Fully qualified name.
    pub name: String,
    /// Arguments of the control plane, or of the call.
    pub params: Vec<EventField>,
}

/// The kind of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// A packet came in.
    Received {
        /// Ingress port.
        port: u32,
        /// Bytes of the packet.
        bytes: Vec<u8>,
    },
    /// A block of the architecture starts.
    Block {
        /// The unit's name.
        name: String,
    },
    /// A parser enters a state.
    State {
        /// Name of the parser.
        parser: String,
        /// Name of the state.
        state: String,
    },
    /// A header was read.
    Extract {
        /// Name of the header.
        header: String,
        /// First bit in the packet.
        offset_bits: usize,
        /// Fields of the header.
        fields: Vec<EventField>,
    },
    /// A parser error occurred.
    Error {
        /// Name of the error.
        error: String,
    },
    /// An arm of an `if` was evaluated.
    Branch {
        /// First line of the condition's text.
        text: String,
        /// Whether the condition held.
        taken: bool,
    },
    /// A table was applied.
    Table {
        /// Fully qualified name of the table.
        table: String,
        /// Fields of the key.
        keys: Vec<EventField>,
        /// Matches and priority of the entry found; `None`: the default action.
        entry: Option<(Vec<FieldMatch>, i32)>,
        /// The action that runs; `None`: none.
        action: Option<EventAction>,
    },
    /// An action was called from a body.
    Action(EventAction),
    /// A method of an extern object, or an extern function (`object` empty), was called.
    Extern {
        /// Fully qualified name of the object.
        object: String,
        /// Name of the method or function.
        method: String,
        /// Values of the `in` arguments.
        args: Vec<EventField>,
        /// Fields of the result.
        result: Vec<EventField>,
    },
    /// A header was written.
    Emit {
        /// Name of the header.
        header: String,
        /// Bytes of the header.
        bytes: Vec<u8>,
    },
    /// The program logged a message (`log_msg`).
    Log {
        /// The message with its values.
        message: String,
    },
    /// An `assert` or `assume` failed.
    AssertionFailed {
        /// Name of the function.
        function: String,
        /// First line of its text.
        text: String,
    },
    /// An undefined value influenced a decision.
    Undefined {
        /// Description of the decision.
        what: String,
    },
    /// A packet leaves.
    Transmit {
        /// Egress port.
        port: u32,
        /// Bytes of the packet.
        bytes: Vec<u8>,
    },
    /// A packet or copy was dropped.
    Drop {
        /// The reason, as in [`crate::DropReason::name`].
        reason: &'static str,
    },
    /// Packets joined egress queues.
    Enqueued {
        /// Number of packets.
        packets: u64,
    },
    /// A packet left its egress queue; egress follows.
    Dequeued {
        /// Port of the queue.
        port: u32,
        /// Bytes of the packet when it joined the queue.
        bytes: Vec<u8>,
    },
    /// Packets joined the recirculation link.
    Recirculate {
        /// Number of packets.
        packets: u64,
    },
    /// A digest message waits for the control plane.
    Digest {
        /// Number of messages.
        messages: u64,
    },
}
