//! Opcodes of the base transport header (IBA 9.2.1): transport service in the high three bits, operation in the low five.

/// The RDMA transport services that this crate supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Service {
    /// Reliable connection (RC): packets are acknowledged and retransmitted.
    Reliable,
    /// Unreliable connection (UC): a message with a lost packet is dropped.
    Unreliable,
}

/// Position of a packet in its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Position {
    /// The first of several packets of a message.
    First,
    /// A packet that is neither the first nor the last of its message.
    Middle,
    /// The last of several packets of a message.
    Last,
    /// The only packet of its message.
    Only,
}

impl Position {
    /// Position of packet `index` (from 0) in a message of `packets` packets.
    pub fn new(index: u64, packets: u64) -> Self {
        match (index == 0, index + 1 >= packets) {
            (true, true) => Self::Only,
            (true, false) => Self::First,
            (false, true) => Self::Last,
            (false, false) => Self::Middle,
        }
    }

    /// Whether the packet is the first or only one of its message.
    pub fn begins(self) -> bool {
        matches!(self, Self::First | Self::Only)
    }

    /// Whether the packet is the last or only one of its message.
    pub fn ends(self) -> bool {
        matches!(self, Self::Last | Self::Only)
    }
}

/// Operation of a request that carries data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// SEND: into a receive buffer that the peer has posted.
    Send,
    /// RDMA WRITE: to an address in the peer's memory.
    Write,
}

/// Opcode of a RoCEv2 packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Opcode {
    /// A packet with data of a SEND or an RDMA WRITE.
    Data {
        /// Transport service of the connection.
        service: Service,
        /// Operation of the message: SEND or WRITE.
        operation: Operation,
        /// Position of the packet in its message.
        position: Position,
        /// Whether the packet carries immediate data for the receiver's completion; only a message's last packet can.
        immediate: bool,
    },
    /// RDMA READ request (reliable connections only).
    ReadRequest,
    /// A packet of the response to an RDMA READ, with its position in the response.
    ReadResponse(Position),
    /// ACK or NAK (reliable connections only).
    Acknowledge,
    /// Congestion notification packet (CNP; RoCEv2 annex A17.9.3).
    Cnp,
}

const UNRELIABLE: u8 = 0x20;
const WRITE: u8 = 6;
const READ_REQUEST: u8 = 0x0C;
const READ_RESPONSE: u8 = 0x0D;
const ACKNOWLEDGE: u8 = 0x11;
const CNP: u8 = 0x81;

impl Opcode {
    /// Decodes the opcode byte of a BTH; `None` for unsupported opcodes (RD, UD, atomics, SEND with invalidate).
    pub fn from_bits(bits: u8) -> Option<Self> {
        let service = match bits & 0xE0 {
            0 => Service::Reliable,
            UNRELIABLE => Service::Unreliable,
            _ if bits == CNP => return Some(Self::Cnp),
            _ => return None,
        };
        let code = bits & 0x1F;
        if code < 2 * WRITE {
            let operation = if code < WRITE {
                Operation::Send
            } else {
                Operation::Write
            };
            let (position, immediate) = match code % WRITE {
                0 => (Position::First, false),
                1 => (Position::Middle, false),
                2 => (Position::Last, false),
                3 => (Position::Last, true),
                4 => (Position::Only, false),
                _ => (Position::Only, true),
            };
            return Some(Self::Data {
                service,
                operation,
                position,
                immediate,
            });
        }
        match (service, code) {
            (Service::Unreliable, _) => None,
            (_, READ_REQUEST) => Some(Self::ReadRequest),
            (_, 0x0D) => Some(Self::ReadResponse(Position::First)),
            (_, 0x0E) => Some(Self::ReadResponse(Position::Middle)),
            (_, 0x0F) => Some(Self::ReadResponse(Position::Last)),
            (_, 0x10) => Some(Self::ReadResponse(Position::Only)),
            (_, ACKNOWLEDGE) => Some(Self::Acknowledge),
            _ => None,
        }
    }

    /// The opcode byte of the BTH.
    pub fn bits(self) -> u8 {
        match self {
            Self::Data {
                service,
                operation,
                position,
                immediate,
            } => {
                let service = match service {
                    Service::Reliable => 0,
                    Service::Unreliable => UNRELIABLE,
                };
                let operation = match operation {
                    Operation::Send => 0,
                    Operation::Write => WRITE,
                };
                let position = match (position, immediate) {
                    (Position::First, _) => 0,
                    (Position::Middle, _) => 1,
                    (Position::Last, false) => 2,
                    (Position::Last, true) => 3,
                    (Position::Only, false) => 4,
                    (Position::Only, true) => 5,
                };
                service + operation + position
            }
            Self::ReadRequest => READ_REQUEST,
            Self::ReadResponse(position) => READ_RESPONSE + position as u8,
            Self::Acknowledge => ACKNOWLEDGE,
            Self::Cnp => CNP,
        }
    }

    /// Whether packets with this opcode have a RETH after the BTH.
    pub fn has_reth(self) -> bool {
        match self {
            Self::Data {
                operation: Operation::Write,
                position,
                ..
            } => position.begins(),
            Self::ReadRequest => true,
            _ => false,
        }
    }

    /// Whether packets with this opcode have an AETH after the BTH.
    pub fn has_aeth(self) -> bool {
        match self {
            Self::ReadResponse(position) => position != Position::Middle,
            Self::Acknowledge => true,
            _ => false,
        }
    }

    /// Whether packets with this opcode have immediate data.
    pub fn has_immediate(self) -> bool {
        matches!(self, Self::Data { position, immediate: true, .. } if position.ends())
    }

    /// Length in bytes of the header extensions between BTH and payload.
    pub fn extended_len(self) -> usize {
        use super::{AETH_LEN, CNP_RESERVED_LEN, IMMEDIATE_LEN, RETH_LEN};
        let mut len = 0;
        len += if self.has_reth() { RETH_LEN } else { 0 };
        len += if self.has_aeth() { AETH_LEN } else { 0 };
        len += if self.has_immediate() {
            IMMEDIATE_LEN
        } else {
            0
        };
        len + if self == Self::Cnp {
            CNP_RESERVED_LEN
        } else {
            0
        }
    }

    /// Whether packets with this opcode may have a payload.
    pub fn has_payload(self) -> bool {
        matches!(self, Self::Data { .. } | Self::ReadResponse(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_an_opcode_of_ours_or_none() {
        let known: Vec<u8> = (0..=u8::MAX)
            .filter(|&bits| Opcode::from_bits(bits).is_some())
            .collect();
        let expected: Vec<u8> = (0..=0x11).chain(0x20..=0x2B).chain([0x81]).collect();
        assert_eq!(known, expected);
        for bits in known {
            assert_eq!(Opcode::from_bits(bits).unwrap().bits(), bits);
        }
    }

    /// IBA table 38.
    #[test]
    fn headers_follow_the_specifications_table() {
        let having = |has: fn(Opcode) -> bool| -> Vec<u8> {
            let known = (0..=u8::MAX).filter(|&bits| Opcode::from_bits(bits).is_some_and(has));
            known.collect()
        };
        assert_eq!(
            having(Opcode::has_reth),
            [0x06, 0x0A, 0x0B, 0x0C, 0x26, 0x2A, 0x2B]
        );
        assert_eq!(having(Opcode::has_aeth), [0x0D, 0x0F, 0x10, 0x11]);
        let with_immediate = [0x03, 0x05, 0x09, 0x0B, 0x23, 0x25, 0x29, 0x2B];
        assert_eq!(having(Opcode::has_immediate), with_immediate);
    }
}
