//! The aggregation header as a value with all fields.

use crate::{Error, Flags, HEADER_LEN, Kind, Packet, VALUE_LEN};

/// All fields of the aggregation header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Repr {
    /// Kind of the frame.
    pub kind: Kind,
    /// The flags in the header.
    pub flags: Flags,
    /// Number of the training job.
    pub job: u16,
    /// The chunk's sequence number within the job; it wraps.
    pub chunk: u32,
    /// Number of the switch slot: the chunk's number modulo the window.
    pub slot: u16,
    /// UPDATE: the sender, by its switch's number for it. SUM: the worker whose UPDATE completed the sum or requested it
    /// again. RESULT: the addressee. ASK, HERE, GIVE, DIFFER: the sender's rank. GIVEN: the addressee's rank.
    pub worker: u16,
    /// Number of earlier transmissions of this frame, saturating at [`MAX_TRANSMISSION`](crate::MAX_TRANSMISSION).
    pub transmission: u8,
    /// Bitmap of the workers whose values are in the sum.
    pub contributors: u64,
    /// Biased exponent (bias 127) with which the values were quantised.
    pub scale: u8,
    /// Biased exponent (bias 127) that the sender requests for the chunk one window later.
    pub next_scale: u8,
    /// Number of values that follow the header.
    pub count: u16,
}

impl Repr {
    /// Reads the header of a checked packet.
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

    /// Reads a received frame: its header and its payload. Bytes after the payload (Ethernet padding) are ignored.
    pub fn parse_frame(frame: &[u8]) -> Result<(Self, &[u8]), Error> {
        let repr = Self::parse(&Packet::new_checked(frame)?);
        Ok((repr, &frame[HEADER_LEN..repr.buffer_len()]))
    }

    /// Length of the payload (the values) in bytes.
    pub fn payload_len(&self) -> usize {
        usize::from(self.count) * VALUE_LEN
    }

    /// Length of header and payload in bytes.
    pub fn buffer_len(&self) -> usize {
        HEADER_LEN + self.payload_len()
    }

    /// Writes this header to the packet; the caller writes the values.
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
