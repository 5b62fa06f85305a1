//! Registered memory: regions, their keys, and access rights (IBA 10.6).
//!
//! A key consists of an index in the table of regions, and a random tag that differs between successive regions with this
//! index. So no two regions have the same key, and the key of a deregistered region is invalid. There is one protection domain:
//! all queue pairs of an endpoint share its regions. One key serves as lkey and rkey, as with rxe.

use std::fmt;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Bytes of a memory region, owned by the driver. They may lie in shared memory: this crate keeps no reference between calls.
pub trait Buffer {
    /// Length of the buffer in bytes.
    fn len(&self) -> usize;

    /// Whether the buffer has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies bytes from `offset` on out of the buffer. `offset + into.len()` is at most [`len`](Self::len).
    fn read(&self, offset: usize, into: &mut [u8]);

    /// Copies bytes into the buffer from `offset` on. `offset + from.len()` is at most [`len`](Self::len).
    fn write(&mut self, offset: usize, from: &[u8]);
}

impl Buffer for [u8] {
    fn len(&self) -> usize {
        self.len()
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        into.copy_from_slice(&self[offset..offset + into.len()]);
    }

    fn write(&mut self, offset: usize, from: &[u8]) {
        self[offset..offset + from.len()].copy_from_slice(from);
    }
}

impl Buffer for Vec<u8> {
    fn len(&self) -> usize {
        self.len()
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        self.as_slice().read(offset, into);
    }

    fn write(&mut self, offset: usize, from: &[u8]) {
        self.as_mut_slice().write(offset, from);
    }
}

impl<B: Buffer + ?Sized> Buffer for Box<B> {
    fn len(&self) -> usize {
        (**self).len()
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        (**self).read(offset, into);
    }

    fn write(&mut self, offset: usize, from: &[u8]) {
        (**self).write(offset, from);
    }
}

/// Access rights of a memory region, or rights that a queue pair gives its peer. Local reads are always allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Access(u8);

impl Access {
    /// Only local reads are allowed: SENDs and WRITEs of this side may read the region.
    pub const LOCAL_READ: Self = Self(0);
    /// Received messages and READ responses may be written to the region.
    pub const LOCAL_WRITE: Self = Self(1);
    /// The peer may write to the region with RDMA WRITE.
    pub const REMOTE_WRITE: Self = Self(2);
    /// The peer may read the region with RDMA READ.
    pub const REMOTE_READ: Self = Self(4);
    /// All access rights: local writes, and the peer's WRITEs and READs.
    pub const ALL: Self = Self(7);

    /// Union of these rights and `other`.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether these rights include all of `other`.
    pub const fn allows(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Key of a memory region, used as lkey and as rkey.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub u32);

impl Key {
    fn new(index: usize, tag: u16) -> Self {
        Self((index as u32) << 16 | u32::from(tag))
    }

    fn index(self) -> usize {
        (self.0 >> 16) as usize
    }

    fn tag(self) -> u16 {
        self.0 as u16
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

/// Reason why a memory region cannot be registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// The maximum number of regions, which is given, is already registered.
    #[error("{0} regions are registered, which is the maximum")]
    Full(usize),
    /// The memory region would extend beyond address 2⁶⁴.
    #[error("{len} bytes at {address:#x} end beyond 2^64")]
    Address {
        /// Address of the region's first byte.
        address: u64,
        /// Length of the region in bytes.
        len: usize,
    },
}

/// Reason why bytes of a memory region are not accessible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// No region has this key; the region may have been deregistered.
    #[error("no region has key {0}")]
    Key(Key),
    /// Some of the requested bytes lie outside of the region.
    #[error("{len} bytes at {address:#x} are not in the region of key {key}")]
    Range {
        /// Key of the memory region.
        key: Key,
        /// Address of the first requested byte.
        address: u64,
        /// Number of requested bytes.
        len: u64,
    },
    /// The region with this key does not allow the access.
    #[error("the region of key {0} does not allow this access")]
    Right(Key),
}

#[derive(Debug)]
struct Region<B> {
    address: u64,
    access: Access,
    buffer: B,
}

#[derive(Debug)]
struct Slot<B> {
    /// Tag in the key of the region in this slot; if the slot is free, tag of the last region that was in it.
    tag: u16,
    region: Option<Region<B>>,
}

/// The memory regions of an endpoint, found by their keys.
#[derive(Debug)]
pub struct Memory<B> {
    slots: Vec<Slot<B>>,
    free: Vec<usize>,
    limit: usize,
    tags: ChaCha8Rng,
}

/// Maximum number of regions: keys have 16 bits for the index of a region.
const MAX_REGIONS: usize = 1 << 16;

impl<B: Buffer> Memory<B> {
    /// Creates a memory without regions, which accepts at most `limit` of them (at most 65,536). `seed` determines the keys.
    pub fn new(limit: usize, seed: u64) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            limit: limit.min(MAX_REGIONS),
            tags: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// Registers a buffer as a region. `address`, which the caller chooses, is the address of the buffer's first byte.
    pub fn register(
        &mut self,
        buffer: B,
        address: u64,
        access: Access,
    ) -> Result<Key, RegisterError> {
        let len = buffer.len();
        if address.checked_add(len as u64).is_none() {
            return Err(RegisterError::Address { address, len });
        }
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.slots.len() >= self.limit => {
                return Err(RegisterError::Full(self.limit));
            }
            None => {
                self.slots.push(Slot {
                    tag: 0,
                    region: None,
                });
                self.slots.len() - 1
            }
        };
        let slot = &mut self.slots[index];
        let before = slot.tag;
        while slot.tag == before || slot.tag == 0 {
            slot.tag = self.tags.next_u32() as u16;
        }
        slot.region = Some(Region {
            address,
            access,
            buffer,
        });
        Ok(Key::new(index, slot.tag))
    }

    /// Deregisters a region and returns its buffer; the key is invalid from now on. `None` if no region has the key.
    pub fn deregister(&mut self, key: Key) -> Option<B> {
        self.region(key)?;
        self.free.push(key.index());
        let region = self.slots.get_mut(key.index())?.region.take()?;
        Some(region.buffer)
    }

    /// Buffer of the region with this key.
    pub fn buffer(&self, key: Key) -> Option<&B> {
        Some(&self.region(key)?.buffer)
    }

    /// Buffer of the region with this key.
    pub fn buffer_mut(&mut self, key: Key) -> Option<&mut B> {
        Some(&mut self.region_mut(key)?.buffer)
    }

    /// Checks that the region contains these `len` bytes, and allows this access.
    pub fn check(
        &self,
        key: Key,
        address: u64,
        len: u64,
        access: Access,
    ) -> Result<(), AccessError> {
        let region = self.region(key).ok_or(AccessError::Key(key))?;
        region.offset(key, address, len, access)?;
        Ok(())
    }

    /// Copies bytes out of a region. A length of zero succeeds with any key.
    pub fn read(
        &self,
        key: Key,
        address: u64,
        access: Access,
        into: &mut [u8],
    ) -> Result<(), AccessError> {
        if into.is_empty() {
            return Ok(());
        }
        let region = self.region(key).ok_or(AccessError::Key(key))?;
        let offset = region.offset(key, address, into.len() as u64, access)?;
        region.buffer.read(offset, into);
        Ok(())
    }

    /// Copies bytes into a region: all of them, or none if the access is refused. A length of zero succeeds with any key.
    pub fn write(
        &mut self,
        key: Key,
        address: u64,
        access: Access,
        from: &[u8],
    ) -> Result<(), AccessError> {
        if from.is_empty() {
            return Ok(());
        }
        let region = self.region_mut(key).ok_or(AccessError::Key(key))?;
        let offset = region.offset(key, address, from.len() as u64, access)?;
        region.buffer.write(offset, from);
        Ok(())
    }

    fn region(&self, key: Key) -> Option<&Region<B>> {
        let slot = self.slots.get(key.index())?;
        slot.region.as_ref().filter(|_| slot.tag == key.tag())
    }

    fn region_mut(&mut self, key: Key) -> Option<&mut Region<B>> {
        let slot = self.slots.get_mut(key.index())?;
        let tag = slot.tag;
        slot.region.as_mut().filter(|_| tag == key.tag())
    }
}

impl<B: Buffer> Region<B> {
    /// Checks that the region contains the bytes and allows the access; returns the offset of the first byte in the buffer.
    fn offset(
        &self,
        key: Key,
        address: u64,
        len: u64,
        access: Access,
    ) -> Result<usize, AccessError> {
        if !self.access.allows(access) {
            return Err(AccessError::Right(key));
        }
        let outside = AccessError::Range { key, address, len };
        let offset = address.checked_sub(self.address).ok_or(outside)?;
        let end = offset.checked_add(len).ok_or(outside)?;
        if end > self.buffer.len() as u64 {
            return Err(outside);
        }
        Ok(offset as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_opens_its_region_only_while_registered() {
        let mut memory = Memory::new(4, 1);
        let access = Access::REMOTE_READ.and(Access::REMOTE_WRITE);
        let key = memory.register(vec![0; 16], 0x1000, access).unwrap();
        memory
            .write(key, 0x1004, Access::REMOTE_WRITE, b"weir")
            .unwrap();
        let mut read = [0; 4];
        memory
            .read(key, 0x1004, Access::REMOTE_READ, &mut read)
            .unwrap();
        assert_eq!(&read, b"weir");
        let at = |address, len| memory.check(key, address, len, Access::REMOTE_READ);
        assert!(at(0x1000, 16).is_ok() && at(0x1010, 0).is_ok());
        for (address, len) in [
            (0xFFF, 1),
            (0x1000, 17),
            (0x1010, 1),
            (0x1000, u64::MAX),
            (u64::MAX, 2),
        ] {
            assert!(
                matches!(at(address, len), Err(AccessError::Range { .. })),
                "{address:#x} {len}"
            );
        }
        let local = memory.check(key, 0x1000, 1, Access::LOCAL_WRITE);
        assert_eq!(local, Err(AccessError::Right(key)));
        assert_eq!(memory.deregister(key).unwrap()[4..8], *b"weir");
        assert!(memory.deregister(key).is_none());
        let gone = memory.check(key, 0x1000, 1, Access::LOCAL_READ);
        assert_eq!(gone, Err(AccessError::Key(key)));
    }

    #[test]
    fn limits_are_named() {
        let mut memory = Memory::new(2, 1);
        let mut register = |address| memory.register(vec![0; 2], address, Access::ALL);
        assert!(register(0).is_ok() && register(u64::MAX - 2).is_ok());
        assert_eq!(register(0), Err(RegisterError::Full(2)));
        let beyond = register(u64::MAX - 1);
        assert!(matches!(beyond, Err(RegisterError::Address { .. })));
    }

    proptest! {
        /// In any sequence of registrations, keys in use differ, and no key is reused at once.
        #[test]
        fn keys_never_collide(seed: u64, steps in prop::collection::vec((any::<bool>(), any::<usize>()), 1..200)) {
            let mut memory = Memory::new(8, seed);
            let mut live: Vec<Key> = Vec::new();
            for (register, which) in steps {
                if register {
                    match memory.register(vec![0; 1], 0, Access::ALL) {
                        Ok(key) => live.push(key),
                        Err(error) => prop_assert_eq!((error, live.len()), (RegisterError::Full(8), 8)),
                    }
                } else if !live.is_empty() {
                    let key = live.swap_remove(which % live.len());
                    prop_assert!(memory.deregister(key).is_some());
                    let next = memory.register(vec![0; 1], 0, Access::ALL).unwrap();
                    prop_assert_ne!(next, key);
                    live.push(next);
                }
                prop_assert_eq!(live.iter().collect::<HashSet<_>>().len(), live.len());
            }
        }
    }
}
