//! Work that is posted.

use crate::completion::WorkKind;
use crate::memory::Key;
use crate::packet::{Mtu, Opcode, Operation, Position, Service};
use crate::psn::Place;

/// The longest message (IBA 9.7: 2³¹ bytes).
pub const MAX_MESSAGE: u32 = 1 << 31;

/// The most packets of a message: far enough from half the sequence numbers that no window over it is ambiguous.
pub const MAX_PACKETS: u64 = 1 << 22;

/// Bytes of this side. No bytes need no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Local {
    /// The region.
    pub key: Key,
    /// The first byte.
    pub address: u64,
    /// How many.
    pub len: u32,
}

/// Bytes of the peer; as many as there are local ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remote {
    /// The first byte.
    pub address: u64,
    /// The region's remote key.
    pub rkey: u32,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Into a receive that the peer has posted.
    Send {
        /// What is sent.
        local: Local,
        /// Four bytes for the peer's completion.
        immediate: Option<[u8; 4]>,
    },
    /// Into the peer's memory.
    Write {
        /// What is written.
        local: Local,
        /// Where.
        remote: Remote,
        /// Four bytes for a completion, and with them a receive of the peer is used.
        immediate: Option<[u8; 4]>,
    },
    /// From the peer's memory (RC).
    Read {
        /// Where to.
        local: Local,
        /// What is read.
        remote: Remote,
    },
}

impl Work {
    pub(crate) fn local(&self) -> Local {
        match *self {
            Self::Send { local, .. } | Self::Write { local, .. } | Self::Read { local, .. } => {
                local
            }
        }
    }

    pub(crate) fn kind(&self) -> WorkKind {
        match self {
            Self::Send { .. } => WorkKind::Send,
            Self::Write { .. } => WorkKind::Write,
            Self::Read { .. } => WorkKind::Read,
        }
    }
}

/// Work for the send queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendRequest {
    /// The caller's name for it.
    pub wr_id: u64,
    /// What.
    pub work: Work,
    /// Whether success makes a completion; failure always does.
    pub signaled: bool,
    /// Whether the peer's completion is to wake it.
    pub solicited: bool,
}

/// Work for the receive queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveRequest {
    /// The caller's name for it.
    pub wr_id: u64,
    /// Where a SEND goes; no bytes are enough for WRITEs with immediate.
    pub local: Local,
}

/// Work in the send queue: the packets it takes.
#[derive(Debug, Clone, Copy)]
pub struct Wqe {
    pub request: SendRequest,
    pub first: Place,
    pub packets: u64,
}

impl Wqe {
    pub fn new(request: SendRequest, first: Place, mtu: Mtu) -> Self {
        let packets = packets_of(request.work.local().len, mtu);
        Self {
            request,
            first,
            packets,
        }
    }

    /// The place after its last packet.
    pub fn end(&self) -> Place {
        self.first.plus(self.packets)
    }

    pub fn holds(&self, place: Place) -> bool {
        self.first <= place && place < self.end()
    }

    pub fn is_read(&self) -> bool {
        matches!(self.request.work, Work::Read { .. })
    }

    /// Where in the message the packet at this place begins, and how many bytes it, or with a READ its response, has.
    pub fn part(&self, place: Place, mtu: Mtu) -> (u32, usize) {
        // A message has at most 2³¹ bytes, and no packet begins behind its end.
        let offset = (place.since(self.first) * mtu.bytes() as u64) as u32;
        let left = self.request.work.local().len - offset;
        (offset, mtu.bytes().min(left as usize))
    }

    /// The opcode of the packet at this place.
    pub fn opcode(&self, place: Place, service: Service) -> Opcode {
        let position = Position::of(place.since(self.first), self.packets);
        let (operation, immediate) = match self.request.work {
            Work::Send { immediate, .. } => (Operation::Send, immediate),
            Work::Write { immediate, .. } => (Operation::Write, immediate),
            Work::Read { .. } => return Opcode::ReadRequest,
        };
        Opcode::Data {
            service,
            operation,
            position,
            immediate: immediate.is_some() && position.ends(),
        }
    }
}

/// Packets of a message; no bytes take one, too.
pub fn packets_of(len: u32, mtu: Mtu) -> u64 {
    u64::from(len).div_ceil(mtu.bytes() as u64).max(1)
}
