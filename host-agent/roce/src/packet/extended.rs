//! Extensions that some opcodes put behind the BTH: RETH and AETH (IBA 9.3, 9.7.5).

use super::{AETH_LEN, RETH_LEN};

/// RDMA extended transport header: address and length in the receiver's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reth {
    /// Virtual address in the receiver's region.
    pub address: u64,
    /// The region's remote key.
    pub rkey: u32,
    /// Length of the whole message in bytes; in a resumed READ, of the missing part.
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

/// ACK extended transport header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Aeth {
    /// ACK or NAK.
    pub syndrome: Syndrome,
    /// Message sequence number: messages that the responder has completed, 24 bits.
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

/// Syndrome of an AETH (IBA table 44).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Syndrome {
    /// All packets up to this PSN have arrived. The credit code gives the number of posted receives.
    Ack {
        /// Code of five bits; [`Syndrome::NO_CREDITS`]: the responder does not count receives.
        credits: u8,
    },
    /// No receive is posted; the requester must wait for this time.
    RnrNak(RnrTimer),
    /// The request was rejected.
    Nak(NakCode),
    /// A code that the specification reserves.
    Reserved(u8),
}

impl Syndrome {
    /// Credit code of a responder that does not count receives.
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

/// Reason for the rejection of a request (IBA table 45).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum NakCode {
    /// A packet before this one is missing.
    PsnSequence = 0,
    /// The packet does not follow the previous one, is too long, or requests something that does not exist.
    InvalidRequest = 1,
    /// The key is wrong, the address is outside of the region, or the access is not allowed.
    RemoteAccess = 2,
    /// The responder failed.
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

/// Time that a requester waits for a receive to be posted, as a code of five bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RnrTimer(u8);

impl RnrTimer {
    /// The timer with the low five bits of this code.
    pub fn new(code: u8) -> Self {
        Self(code & 0x1F)
    }

    /// The code.
    pub fn code(self) -> u8 {
        self.0
    }

    /// The time in nanoseconds (IBA table 46).
    pub fn ns(self) -> u64 {
        const TENS_OF_MICROSECONDS: [u64; 32] = [
            65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768,
            1024, 1536, 2048, 3072, 4096, 6144, 8192, 12_288, 16_384, 24_576, 32_768, 49_152,
        ];
        TENS_OF_MICROSECONDS[usize::from(self.0)] * 10_000
    }
}
