//! A frame as a recorder hands it over.

use std::hash::{BuildHasher, Hasher};

use foldhash::quality::FixedState;

/// Which way a frame went at a port of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// It came to the switch.
    In,
    /// It left the switch.
    Out,
}

/// One frame that passed a port.
#[derive(Debug, Clone, Copy)]
pub struct Sight<'f> {
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Which way.
    pub way: Way,
    /// How long it was on the link, without FCS.
    pub wire_len: u32,
    /// Which frame it was, all its bytes together.
    pub identity: Identity,
    /// Its first bytes: as many as filters and effects look at.
    pub bytes: &'f [u8],
}

/// Frames that are equal have one identity. Frames that differ have two, but for one pair in 2^64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(u64);

impl Identity {
    /// The number that it is, to write it down.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The identity that was written down so.
    #[must_use]
    pub fn from_bits(bits: u64) -> Identity {
        Identity(bits)
    }
}

/// Tells frames apart. Who sends them does not know the seed, so nobody can make two that are taken for one.
#[derive(Debug, Clone, Copy)]
pub struct Digest(u64);

impl Digest {
    /// The recorder and the judge of a run have one seed.
    #[must_use]
    pub fn of_seed(seed: u64) -> Digest {
        Digest(seed)
    }

    /// Of a frame's bytes, and of its length where those are not all of it.
    #[must_use]
    pub fn of(self, bytes: &[u8], wire_len: u32) -> Identity {
        let mut hasher = FixedState::with_seed(self.0).build_hasher();
        hasher.write(bytes);
        hasher.write_u32(wire_len);
        Identity(hasher.finish())
    }
}

/// Identities are random already.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AsItIs(u64);

/// Builds [`AsItIs`].
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
