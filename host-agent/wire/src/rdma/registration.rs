//! Registration: a rank announces its queue pair and memory region by a SEND to the switch, which answers by a WRITE.

use super::sum::read;
use super::{ANSWER_LEN, Immediate, Malformed, Target};

/// Length of a registration's payload in bytes.
pub const REGISTRATION_LEN: usize = 32;
/// The bytes "WEIR", with which a registration begins.
const MAGIC: u32 = 0x5745_4952;
const VERSION: u8 = 1;

/// A rank's announcement of its queue pair and memory region to its switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Registration {
    /// Number of the training job.
    pub job: u16,
    /// The rank's number as a child of the switch.
    pub child: u8,
    /// Destination of the rank's SUMs.
    pub target: Target,
    /// Packet sequence number of the first SUM, 24 bits and never 0: 0 in the switch's state means that no rank is registered.
    pub psn: u32,
    /// The job's window in aggregation slots, which determines the length of the memory region.
    pub window: u32,
}

impl Registration {
    /// Encodes the payload of the SEND that announces the registration.
    pub fn bytes(&self) -> [u8; REGISTRATION_LEN] {
        let mut bytes = [0; REGISTRATION_LEN];
        let mut at = 0;
        let mut put = |field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        put(&MAGIC.to_be_bytes());
        put(&[VERSION, self.child]);
        put(&self.job.to_be_bytes());
        put(&self.target.qpn.to_be_bytes());
        put(&self.psn.to_be_bytes());
        put(&self.target.base.to_be_bytes());
        put(&self.target.rkey.to_be_bytes());
        put(&self.window.to_be_bytes());
        bytes
    }

    /// Decodes the payload of a SEND that announces a registration.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let whole: &[u8; REGISTRATION_LEN] =
            bytes.try_into().map_err(|_| Malformed::Registration)?;
        let (words, _) = whole.as_chunks::<4>();
        let word = |at: usize| u32::from_be_bytes(words[at]);
        let [version, child, job @ ..] = words[1];
        if word(0) != MAGIC || version != VERSION {
            return Err(Malformed::Registration);
        }
        Ok(Self {
            job: u16::from_be_bytes(job),
            child,
            target: Target {
                qpn: word(2),
                rkey: word(6),
                base: u64::from(word(4)) << 32 | u64::from(word(5)),
            },
            psn: word(3),
            window: word(7),
        })
    }
}

/// The switch's answer to a rank's registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Registered {
    /// Bitmap of all children whose values the switch sums.
    pub everyone: u64,
}

impl Registered {
    /// Decodes the switch's answer, if it belongs to the registration that announced this packet sequence number.
    pub fn parse(
        immediate: Immediate,
        len: u32,
        psn: u32,
        answer: &[u8; ANSWER_LEN],
    ) -> Option<Self> {
        let is_answer = immediate.is_registered()
            && len as usize == ANSWER_LEN
            && immediate.low() == psn as u16;
        is_answer.then(|| Self {
            everyone: read(answer).0,
        })
    }
}
