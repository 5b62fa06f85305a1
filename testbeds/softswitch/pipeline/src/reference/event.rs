//! Events of a trace: the steps of a packet through the switch and the program.

use p4lang::runtime::FieldMatch;
use p4lang::source::Location;

/// A step of a packet, with its position in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// File, line and column of the step; `None` for a step of the architecture.
    pub at: Option<Location>,
    /// The kind of the step, with its data.
    pub kind: EventKind,
}

/// A scalar of a traced step: name, value, width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventField {
    /// Name of the scalar as in the program; fields of structs with dots.
    pub name: String,
    /// Value of the scalar: hexadecimal digits after `0x`; `invalid` for an invalid header.
    pub value: String,
    /// Width of the scalar in bits.
    pub width: u32,
}

/// An action with its arguments, as a traced step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventAction {
    /// Fully qualified name of the action.
    pub name: String,
    /// Arguments from the table entry, or of the call.
    pub params: Vec<EventField>,
}

/// The kind of a traced step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// A packet arrived at the switch.
    Received {
        /// Number of the ingress port.
        port: u32,
        /// Bytes of the packet as it arrived.
        bytes: Vec<u8>,
    },
    /// A block of the architecture, such as the ingress control, starts.
    Block {
        /// Name of the block's parser or control.
        name: String,
    },
    /// A parser enters a state.
    State {
        /// Name of the parser.
        parser: String,
        /// Name of the parser state.
        state: String,
    },
    /// A parser extracted a header.
    Extract {
        /// Name of the extracted header.
        header: String,
        /// Position of the header's first bit in the packet, in bits.
        offset_bits: usize,
        /// Fields of the extracted header.
        fields: Vec<EventField>,
    },
    /// A parser error occurred, such as `PacketTooShort`.
    Error {
        /// Name of the parser error.
        error: String,
    },
    /// The condition of an `if` was evaluated.
    Branch {
        /// First line of the condition's text in the source.
        text: String,
        /// Whether the condition held.
        taken: bool,
    },
    /// A table was applied: looked up with a key.
    Table {
        /// Fully qualified name of the table.
        table: String,
        /// Fields of the looked-up key.
        keys: Vec<EventField>,
        /// Matches and priority of the table entry found; `None`: no entry matched.
        entry: Option<(Vec<FieldMatch>, i32)>,
        /// The action that runs; `None`: no action runs.
        action: Option<EventAction>,
    },
    /// A body called an action.
    Action(EventAction),
    /// A method of an extern object, or an extern function (`object` empty), was called.
    Extern {
        /// Fully qualified name of the object.
        object: String,
        /// Name of the method or function.
        method: String,
        /// Values of the `in` arguments of the call.
        args: Vec<EventField>,
        /// Fields of the call's result.
        result: Vec<EventField>,
    },
    /// A deparser wrote a valid header.
    Emit {
        /// Name of the written header.
        header: String,
        /// Bytes of the written header.
        bytes: Vec<u8>,
    },
    /// The program logged a message (`log_msg`).
    Log {
        /// The message, with its arguments inserted.
        message: String,
    },
    /// An `assert` or `assume` of the program failed.
    AssertionFailed {
        /// Name of the function: `assert` or `assume`.
        function: String,
        /// First line of the call's text in the source.
        text: String,
    },
    /// An undefined value influenced a decision.
    Undefined {
        /// Description of the decision that read the undefined value.
        what: String,
    },
    /// The switch queued a packet for transmission.
    Transmit {
        /// Number of the egress port.
        port: u32,
        /// Bytes of the sent packet.
        bytes: Vec<u8>,
    },
    /// The switch dropped a packet or copy.
    Drop {
        /// The reason for the drop, as in [`crate::DropReason::name`].
        reason: &'static str,
    },
    /// Packets joined egress queues, because their ports were busy.
    Enqueued {
        /// Number of packets that joined egress queues.
        packets: u64,
    },
    /// A packet left its egress queue; its egress follows.
    Dequeued {
        /// Port for which the packet had waited.
        port: u32,
        /// Bytes of the packet when it joined the queue.
        bytes: Vec<u8>,
    },
    /// Packets joined the recirculation link.
    Recirculate {
        /// Number of packets that joined the recirculation link.
        packets: u64,
    },
    /// Digest messages joined the queue for the control plane.
    Digest {
        /// Number of digest messages.
        messages: u64,
    },
}
