//! A captured frame as the recorder hands it to the judge, and the hash that identifies it.

use std::hash::{BuildHasher, Hasher};

use foldhash::quality::FixedState;

/// Direction in which a frame passed a port of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// Towards the switch.
    In,
    /// Out of the switch.
    Out,
}

/// One captured frame that passed a switch's port.
#[derive(Debug, Clone, Copy)]
pub struct Sight<'f> {
    /// Time at which the frame passed the port, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Direction of the frame, seen from the switch.
    pub way: Way,
    /// Length of the frame on the link in bytes, without FCS.
    pub wire_len: u32,
    /// Identity of the frame: a hash of all its bytes.
    pub identity: Identity,
    /// The frame's first bytes: as many as the filters and effects of the scenario read.
    pub bytes: &'f [u8],
}

/// Hash of a frame: equal frames have equal identities, and two different frames collide with probability 2^-64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(u64);

impl Identity {
    /// The identity as a number, to store it.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The identity that [`Identity::to_bits`] returned as this number.
    #[must_use]
    pub fn from_bits(bits: u64) -> Identity {
        Identity(bits)
    }
}

/// Seeded hash that identifies frames. Senders do not know the seed, so they cannot construct two frames that collide.
#[derive(Debug, Clone, Copy)]
pub struct Digest(u64);

impl Digest {
    /// A digest with this seed. The recorder and the judge of a run must use the same seed.
    #[must_use]
    pub fn of_seed(seed: u64) -> Digest {
        Digest(seed)
    }

    /// Identity of a frame from its recorded bytes and its length, since `bytes` may be only the first part.
    #[must_use]
    pub fn of(self, bytes: &[u8], wire_len: u32) -> Identity {
        let mut hasher = FixedState::with_seed(self.0).build_hasher();
        hasher.write(bytes);
        hasher.write_u32(wire_len);
        Identity(hasher.finish())
    }
}

/// Hasher that passes identities through unchanged, since they are random already.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AsItIs(u64);

/// Builds [`AsItIs`] for hash maps whose keys are identities.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Plainly;

impl BuildHasher for Plainly {
    type Hasher = AsItIs;

    fn build_hasher(&self) -> AsItIs {
        AsItIs(0)
    }
}

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 ^= word;
    }
}

#[cfg(test)]
impl From<u8> for Identity {
    fn from(byte: u8) -> Identity {
        Identity(byte.into())
    }
}
