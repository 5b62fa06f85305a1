//! Header extensions of RoCEv2 that some opcodes put behind the BTH: RETH and AETH (IBA 9.3, 9.7.5).

use super::{AETH_LEN, RETH_LEN};

/// RDMA extended transport header (RETH) of WRITE and READ requests: address and length in the receiver's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reth {
    /// Virtual address in the receiver's memory region.
    pub address: u64,
    /// Remote key of the receiver's memory region.
    pub rkey: u32,
    /// Length of the whole message in bytes; in a resumed READ, length of the missing bytes.
    pub len: u32,
}

impl Reth {
    pub(super) fn write(&self, bytes: &mut [u8]) {
        bytes[..8].copy_from_slice(&self.address.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.rkey.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.len.to_be_bytes());
    }

    pub(super) fn parse(bytes: &[u8; RETH_LEN]) -> Self {
        let [a, b, c, d] = std::array::from_fn(|i| {
            let (words, _) = bytes.as_chunks::<4>();
            u32::from_be_bytes(words[i])
        });
        Self {
            address: u64::from(a) << 32 | u64::from(b),
            rkey: c,
            len: d,
        }
    }
}

/// ACK extended transport header (AETH) of ACKs, NAKs and READ responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Aeth {
    /// Whether the packet is an ACK or a NAK, and details of it.
    pub syndrome: Syndrome,
    /// Message sequence number: number of messages that the responder has completed, 24 bits.
    pub msn: u32,
}

impl Aeth {
    pub(super) fn write(&self, bytes: &mut [u8]) {
        let word = u32::from(self.syndrome.bits()) << 24 | self.msn & 0xFF_FFFF;
        bytes.copy_from_slice(&word.to_be_bytes());
    }

    pub(super) fn parse(bytes: &[u8; AETH_LEN]) -> Self {
        let word = u32::from_be_bytes(*bytes);
        Self {
            syndrome: Syndrome::from_bits((word >> 24) as u8),
            msn: word & 0xFF_FFFF,
        }
    }
}

/// Syndrome of an AETH: kind of an ACK or NAK (IBA table 44).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Syndrome {
    /// ACK: all packets up to the packet's PSN have arrived.
    Ack {
        /// Five-bit code for the number of posted receives; [`Syndrome::NO_CREDITS`] if the responder does not count them.
        credits: u8,
    },
    /// RNR NAK: the responder has no receive posted; the requester must wait for this time before it retries.
    RnrNak(RnrTimer),
    /// NAK: the responder rejected the request for this reason.
    Nak(NakCode),
    /// A syndrome byte that the specification reserves.
    Reserved(u8),
}

impl Syndrome {
    /// Credit code in the ACKs of a responder that does not count receives.
    pub const NO_CREDITS: u8 = 0x1F;

    fn from_bits(bits: u8) -> Self {
        let low = bits & 0x1F;
        match bits >> 5 {
            0 => Self::Ack { credits: low },
            1 => Self::RnrNak(RnrTimer::new(low)),
            3 => NakCode::from_bits(low).map_or(Self::Reserved(bits), Self::Nak),
            _ => Self::Reserved(bits),
        }
    }

    fn bits(self) -> u8 {
        match self {
            Self::Ack { credits } => credits & 0x1F,
            Self::RnrNak(timer) => 0x20 | timer.0,
            Self::Nak(code) => 0x60 | code as u8,
            Self::Reserved(bits) => bits,
        }
    }
}

/// Reason why a responder rejects a request (IBA table 45).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum NakCode {
    /// A packet before the received one is missing.
    PsnSequence = 0,
    /// The packet does not follow the previous one, is too long, or requests something that does not exist.
    InvalidRequest = 1,
    /// The remote key is wrong, the address is outside of the region, or the region does not allow the access.
    RemoteAccess = 2,
    /// The responder failed while it executed the request.
    RemoteOperation = 3,
}

impl NakCode {
    fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            0 => Self::PsnSequence,
            1 => Self::InvalidRequest,
            2 => Self::RemoteAccess,
            3 => Self::RemoteOperation,
            _ => return None,
        })
    }
}

/// Time that a requester waits after an RNR NAK before it retries, as the specification's code of five bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RnrTimer(u8);

impl RnrTimer {
    /// The timer whose code is the low five bits of `code`.
    pub fn new(code: u8) -> Self {
        Self(code & 0x1F)
    }

    /// The specification's code of five bits.
    pub fn code(self) -> u8 {
        self.0
    }

    /// The waiting time in nanoseconds (IBA table 46).
    pub fn ns(self) -> u64 {
        const TENS_OF_MICROSECONDS: [u64; 32] = [
            65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768,
            1024, 1536, 2048, 3072, 4096, 6144, 8192, 12_288, 16_384, 24_576, 32_768, 49_152,
        ];
        TENS_OF_MICROSECONDS[usize::from(self.0)] * 10_000
    }
}
