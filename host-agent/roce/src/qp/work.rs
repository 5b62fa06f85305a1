//! Work requests: the sends, WRITEs, READs and receives that a program posts to a queue pair.

use crate::completion::WorkKind;
use crate::memory::Key;
use crate::packet::{Mtu, Opcode, Operation, Position, Service};
use crate::psn::ExtendedPsn;

/// Maximum length of a message in bytes (IBA 9.7: 2³¹).
pub const MAX_MESSAGE: u32 = 1 << 31;

/// Maximum number of packets of a message: much less than half of all PSNs, so that PSNs of packets in flight are unambiguous.
pub const MAX_PACKETS: u64 = 1 << 22;

/// A range of bytes in a local memory region. A length of zero needs no valid key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Local {
    /// Key of the local memory region.
    pub key: Key,
    /// Address of the first byte in the local memory region.
    pub address: u64,
    /// Number of bytes of the local range.
    pub len: u32,
}

/// A range of bytes in the peer's memory; its length is that of the local range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remote {
    /// Address of the first byte in the peer's memory.
    pub address: u64,
    /// Remote key of the peer's memory region.
    pub rkey: u32,
}

/// RDMA operation of a work request for the send queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// SEND, into a receive that the peer has posted.
    Send {
        /// Local bytes to send.
        local: Local,
        /// Immediate data for the peer's completion, if any.
        immediate: Option<[u8; 4]>,
    },
    /// RDMA WRITE, into the peer's memory.
    Write {
        /// Local bytes to write.
        local: Local,
        /// Where the peer's memory receives the bytes.
        remote: Remote,
        /// Immediate data for a completion at the peer, which consumes a posted receive of the peer; `None` for no completion.
        immediate: Option<[u8; 4]>,
    },
    /// RDMA READ, from the peer's memory (reliable connections only).
    Read {
        /// Where local memory receives the bytes.
        local: Local,
        /// Bytes of the peer's memory to read.
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

/// A work request for the send queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendRequest {
    /// The caller's identifier of the work request, which its completion repeats.
    pub wr_id: u64,
    /// RDMA operation: SEND, WRITE or READ.
    pub work: Work,
    /// Whether success causes a completion; a failure always does.
    pub signaled: bool,
    /// Whether the peer's completion should wake the peer's program (solicited event).
    pub solicited: bool,
}

/// A work request for the receive queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveRequest {
    /// The caller's identifier of the work request, which its completion repeats.
    pub wr_id: u64,
    /// Buffer for a received SEND; a length of zero is enough for WRITEs with immediate data.
    pub local: Local,
}

/// A queued work request for the send queue, with the positions of its packets.
#[derive(Debug, Clone, Copy)]
pub struct Wqe {
    pub request: SendRequest,
    pub first: ExtendedPsn,
    pub packets: u64,
}

impl Wqe {
    pub fn new(request: SendRequest, first: ExtendedPsn, mtu: Mtu) -> Self {
        let packets = packets_of(request.work.local().len, mtu);
        Self {
            request,
            first,
            packets,
        }
    }

    /// Position after the last packet of the work request.
    pub fn end(&self) -> ExtendedPsn {
        self.first.plus(self.packets)
    }

    pub fn holds(&self, place: ExtendedPsn) -> bool {
        self.first <= place && place < self.end()
    }

    pub fn is_read(&self) -> bool {
        matches!(self.request.work, Work::Read { .. })
    }

    /// Offset in the message, and length, of the payload of the packet at this position, in bytes; for a READ, of the response.
    pub fn part(&self, place: ExtendedPsn, mtu: Mtu) -> (u32, usize) {
        // A message has at most 2³¹ bytes, and no packet begins after its end.
        let offset = (place.since(self.first) * mtu.bytes() as u64) as u32;
        let left = self.request.work.local().len - offset;
        (offset, mtu.bytes().min(left as usize))
    }

    /// Opcode of the packet at this position, on a connection of this transport service.
    pub fn opcode(&self, place: ExtendedPsn, service: Service) -> Opcode {
        let position = Position::new(place.since(self.first), self.packets);
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

/// Number of packets of a message of `len` bytes; an empty message has one packet.
pub fn packets_of(len: u32, mtu: Mtu) -> u64 {
    u64::from(len).div_ceil(mtu.bytes() as u64).max(1)
}
