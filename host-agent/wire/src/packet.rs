//! The aggregation header as a view of bytes, which reads and writes single fields in place.

use crate::{Error, Flags, HEADER_LEN, Kind, MAX_TRANSMISSION, PROTOCOL_VERSION, VALUE_LEN};

/// Byte offset of each field of the header; `docs/protocol.md` has the table.
mod field {
    use std::ops::Range;

    pub const VERSION_KIND: usize = 0;
    pub const FLAGS: usize = 1;
    pub const JOB: Range<usize> = 2..4;
    pub const CHUNK: Range<usize> = 4..8;
    pub const SLOT: Range<usize> = 8..10;
    /// The worker number in the upper ten bits, the number of earlier transmissions in the lower six.
    pub const WORKER_TRANSMISSION: Range<usize> = 10..12;
    pub const CONTRIBUTORS: Range<usize> = 12..20;
    pub const SCALE: usize = 20;
    pub const NEXT_SCALE: usize = 21;
    pub const COUNT: Range<usize> = 22..24;
}

/// Width in bits of the number of earlier transmissions; the worker number has the other ten.
const TRANSMISSION_BITS: u32 = 6;

/// A view of a frame, from the aggregation header on.
///
/// [`new_checked`](Self::new_checked) guarantees this protocol's version, a known kind and a buffer that holds all announced
/// values, so no accessor panics. Bytes after the values (Ethernet padding) are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Wraps a buffer without a check; accessors panic if it is too short. Meant for a buffer that the caller is about to fill.
    pub fn new_unchecked(buffer: T) -> Self {
        Self { buffer }
    }

    /// Checks that a received buffer holds a valid frame, and wraps it.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        let packet = Self { buffer };
        packet.check()?;
        Ok(packet)
    }

    fn check(&self) -> Result<(), Error> {
        let have = self.buffer.as_ref().len();
        if have < HEADER_LEN {
            return Err(Error::Truncated {
                have,
                need: HEADER_LEN,
            });
        }
        if self.version() != PROTOCOL_VERSION {
            return Err(Error::Version(self.version()));
        }
        if Kind::from_bits(self.kind_bits()).is_none() {
            return Err(Error::Kind(self.kind_bits()));
        }
        let need = HEADER_LEN + usize::from(self.count()) * VALUE_LEN;
        if have < need {
            return Err(Error::Truncated { have, need });
        }
        Ok(())
    }

    /// Unwraps the buffer.
    pub fn into_inner(self) -> T {
        self.buffer
    }

    /// The whole wrapped buffer, with bytes after the values.
    pub fn as_bytes(&self) -> &[u8] {
        self.buffer.as_ref()
    }

    fn u16_at(&self, range: std::ops::Range<usize>) -> u16 {
        let bytes = &self.buffer.as_ref()[range];
        u16::from_be_bytes([bytes[0], bytes[1]])
    }

    fn u32_at(&self, range: std::ops::Range<usize>) -> u32 {
        let bytes = &self.buffer.as_ref()[range];
        u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    fn u8_at(&self, at: usize) -> u8 {
        self.buffer.as_ref()[at]
    }

    /// The protocol version in the header.
    pub fn version(&self) -> u8 {
        self.u8_at(field::VERSION_KIND) >> 4
    }

    fn kind_bits(&self) -> u8 {
        self.u8_at(field::VERSION_KIND) & 0x0F
    }

    /// Kind of the frame, from its header.
    ///
    /// # Panics
    /// If the buffer is unchecked and its kind unknown.
    pub fn kind(&self) -> Kind {
        Kind::from_bits(self.kind_bits()).expect("a checked packet has a known kind")
    }

    /// The flags in the header.
    pub fn flags(&self) -> Flags {
        Flags::from_bits(self.u8_at(field::FLAGS))
    }

    /// Number of the training job.
    pub fn job(&self) -> u16 {
        self.u16_at(field::JOB)
    }

    /// The chunk's sequence number within the job; it wraps.
    pub fn chunk(&self) -> u32 {
        self.u32_at(field::CHUNK)
    }

    /// Number of the switch slot: the chunk's number modulo the window.
    pub fn slot(&self) -> u16 {
        self.u16_at(field::SLOT)
    }

    /// UPDATE: the sender, by its switch's number for it. SUM: the worker whose UPDATE completed the sum or requested it
    /// again. RESULT: the addressee. ASK, HERE, GIVE, DIFFER: the sender's rank. GIVEN: the addressee's rank.
    pub fn worker(&self) -> u16 {
        self.u16_at(field::WORKER_TRANSMISSION) >> TRANSMISSION_BITS
    }

    /// Number of earlier transmissions of this frame, saturating at [`MAX_TRANSMISSION`].
    pub fn transmission(&self) -> u8 {
        self.u8_at(field::WORKER_TRANSMISSION.start + 1) & MAX_TRANSMISSION
    }

    /// Bitmap of the workers whose values are in the sum.
    pub fn contributors(&self) -> u64 {
        let (bytes, _) = self.buffer.as_ref()[field::CONTRIBUTORS].as_chunks::<8>();
        u64::from_be_bytes(bytes[0])
    }

    /// Biased exponent (bias 127) with which the values were quantised.
    pub fn scale(&self) -> u8 {
        self.u8_at(field::SCALE)
    }

    /// Biased exponent (bias 127) that the sender requests for the chunk one window later.
    pub fn next_scale(&self) -> u8 {
        self.u8_at(field::NEXT_SCALE)
    }

    /// Number of values that follow the header.
    pub fn count(&self) -> u16 {
        self.u16_at(field::COUNT)
    }

    /// Length of header and values in bytes.
    pub fn total_len(&self) -> usize {
        HEADER_LEN + usize::from(self.count()) * VALUE_LEN
    }

    /// The values as big-endian bytes.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[HEADER_LEN..self.total_len()]
    }

    /// The values as unsigned words (the content of a RESULT is defined by the job's server).
    pub fn values_u32(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        words(self.payload()).map(u32::from_be_bytes)
    }

    /// The values as two's complement integers (UPDATE, SUM).
    pub fn values_i32(&self) -> impl ExactSizeIterator<Item = i32> + '_ {
        values_i32(self.payload())
    }
}

/// The values in a frame's payload, as two's complement integers (UPDATE, SUM).
pub fn values_i32(payload: &[u8]) -> impl ExactSizeIterator<Item = i32> + '_ {
    words(payload).map(i32::from_be_bytes)
}

/// Writes values to a frame's payload until the iterator or the payload is exhausted.
pub fn write_i32(payload: &mut [u8], values: impl IntoIterator<Item = i32>) {
    let words = payload.as_chunks_mut::<VALUE_LEN>().0;
    for (word, value) in words.iter_mut().zip(values) {
        *word = value.to_be_bytes();
    }
}

fn words(bytes: &[u8]) -> impl ExactSizeIterator<Item = [u8; VALUE_LEN]> + '_ {
    bytes.as_chunks::<VALUE_LEN>().0.iter().copied()
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    fn put(&mut self, range: std::ops::Range<usize>, bytes: &[u8]) {
        self.buffer.as_mut()[range].copy_from_slice(bytes);
    }

    /// Sets the kind, and with it this crate's protocol version.
    pub fn set_kind(&mut self, kind: Kind) {
        self.buffer.as_mut()[field::VERSION_KIND] = PROTOCOL_VERSION << 4 | kind as u8;
    }

    /// Sets the flags in the header.
    pub fn set_flags(&mut self, flags: Flags) {
        self.buffer.as_mut()[field::FLAGS] = flags.bits();
    }

    /// Sets the number of the training job.
    pub fn set_job(&mut self, job: u16) {
        self.put(field::JOB, &job.to_be_bytes());
    }

    /// Sets the chunk's sequence number.
    pub fn set_chunk(&mut self, chunk: u32) {
        self.put(field::CHUNK, &chunk.to_be_bytes());
    }

    /// Sets the number of the switch slot.
    pub fn set_slot(&mut self, slot: u16) {
        self.put(field::SLOT, &slot.to_be_bytes());
    }

    /// Sets the worker number; the field holds ten bits.
    pub fn set_worker(&mut self, worker: u16) {
        let both = worker << TRANSMISSION_BITS | u16::from(self.transmission());
        self.put(field::WORKER_TRANSMISSION, &both.to_be_bytes());
    }

    /// Sets the number of earlier transmissions; values above [`MAX_TRANSMISSION`] are clamped.
    pub fn set_transmission(&mut self, transmission: u8) {
        let both =
            self.worker() << TRANSMISSION_BITS | u16::from(transmission.min(MAX_TRANSMISSION));
        self.put(field::WORKER_TRANSMISSION, &both.to_be_bytes());
    }

    /// Sets the bitmap of the workers whose values are in the sum.
    pub fn set_contributors(&mut self, contributors: u64) {
        self.put(field::CONTRIBUTORS, &contributors.to_be_bytes());
    }

    /// Sets the biased exponent with which the values were quantised.
    pub fn set_scale(&mut self, scale: u8) {
        self.buffer.as_mut()[field::SCALE] = scale;
    }

    /// Sets the biased exponent requested for the chunk one window later.
    pub fn set_next_scale(&mut self, next_scale: u8) {
        self.buffer.as_mut()[field::NEXT_SCALE] = next_scale;
    }

    /// Sets the number of values that follow the header.
    pub fn set_count(&mut self, count: u16) {
        self.put(field::COUNT, &count.to_be_bytes());
    }

    /// The values as writable big-endian bytes.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let end = self.total_len();
        &mut self.buffer.as_mut()[HEADER_LEN..end]
    }

    /// Writes values until the iterator or the packet's count is exhausted.
    pub fn write_i32(&mut self, values: impl IntoIterator<Item = i32>) {
        write_i32(self.payload_mut(), values);
    }

    /// Writes values until the iterator or the packet's count is exhausted.
    pub fn write_u32(&mut self, values: impl IntoIterator<Item = u32>) {
        self.write_i32(values.into_iter().map(|value| value as i32));
    }
}
