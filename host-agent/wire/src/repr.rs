//! The header as a value.

use crate::{Flags, HEADER_LEN, Kind, Packet, VALUE_LEN};

/// Every field of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Repr {
    /// What the frame is.
    pub kind: Kind,
    /// The flags.
    pub flags: Flags,
    /// The training job.
    pub job: u16,
    /// The chunk's sequence number within the job.
    pub chunk: u32,
    /// The slot.
    pub slot: u16,
    /// UPDATE: the sender, as its switch numbers those that it sums. SUM: who completed it or asked for it. RESULT: the
    /// addressee. ASK, HERE, GIVE, DIFFER: the sender's rank. GIVEN: that of the addressee.
    pub worker: u16,
    /// How often this frame was sent before, saturating at [`MAX_TRANSMISSION`](crate::MAX_TRANSMISSION).
    pub transmission: u8,
    /// Whose values are included, a bitmap.
    pub contributors: u64,
    /// The biased exponent of the values.
    pub scale: u8,
    /// The biased exponent wanted for the chunk one window later.
    pub next_scale: u8,
    /// How many values follow.
    pub count: u16,
}

impl Repr {
    /// The header of a packet that was checked.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Self {
        Self {
            kind: packet.kind(),
            flags: packet.flags(),
            job: packet.job(),
            chunk: packet.chunk(),
            slot: packet.slot(),
            worker: packet.worker(),
            transmission: packet.transmission(),
            contributors: packet.contributors(),
            scale: packet.scale(),
            next_scale: packet.next_scale(),
            count: packet.count(),
        }
    }

    /// Bytes of header and values.
    pub fn buffer_len(&self) -> usize {
        HEADER_LEN + usize::from(self.count) * VALUE_LEN
    }

    /// Writes the header; the values are the caller's.
    pub fn emit<T: AsRef<[u8]> + AsMut<[u8]>>(&self, packet: &mut Packet<T>) {
        packet.set_kind(self.kind);
        packet.set_flags(self.flags);
        packet.set_job(self.job);
        packet.set_chunk(self.chunk);
        packet.set_slot(self.slot);
        packet.set_worker(self.worker);
        packet.set_transmission(self.transmission);
        packet.set_contributors(self.contributors);
        packet.set_scale(self.scale);
        packet.set_next_scale(self.next_scale);
        packet.set_count(self.count);
    }
}
