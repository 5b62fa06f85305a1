//! Receiving through a ring shared with the kernel (PACKET_MMAP): packets are read where the kernel put them, without a system
//! call. A packet that does not fit a slot, which is a bundle, waits beside the ring (PACKET_COPY_THRESH).
//!
//! TPACKET_V2, not V3: V3 hands over blocks of frames, and a block that is not full only after a millisecond or more,
//! which is acceptable for a capture but not for a switch (docs/decisions).

use crate::bundle::Cut;
use crate::intake::{About, Intake, MAX_PACKET};
use crate::slots::{self, Arrived, BLOCK, HEADROOM, SlotSize, Slots};
use crate::socket::PacketSocket;
use crate::vlan::stripped_tag;
use std::io;

/// The ring of a packet socket.
pub(crate) struct RxRing {
    slots: Slots,
    /// Index of the slot that the kernel fills next.
    next: usize,
    /// Number of frames in packets that the kernel has cut since the last query because the socket's buffer was full.
    cut: u64,
}

impl RxRing {
    /// Makes the ring of a socket that is not bound yet, for at least `count` packets of up to `longest` bytes.
    pub(crate) fn new(socket: &PacketSocket, longest: usize, count: usize) -> io::Result<Self> {
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        socket.set(libc::PACKET_VERSION, &version)?;
        socket.set(libc::PACKET_COPY_THRESH, &1)?;
        let size = SlotSize::of_frames(longest);
        let blocks = count.max(1).div_ceil(size.per_block());
        let number = |n: usize| {
            libc::c_uint::try_from(n)
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the ring is too large"))
        };
        let request = libc::tpacket_req {
            tp_block_size: number(BLOCK)?,
            tp_block_nr: number(blocks)?,
            tp_frame_size: number(size.bytes())?,
            tp_frame_nr: number(blocks * size.per_block())?,
        };
        socket.set_at(libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        Ok(Self {
            slots: slots::map(&socket.fd, blocks, size)?,
            next: 0,
            cut: 0,
        })
    }

    pub(crate) fn has_arrived(&self) -> bool {
        self.slots.has_arrived(self.next)
    }

    /// Number of frames in packets that the kernel has cut since the last call.
    pub(crate) fn take_cut(&mut self) -> u64 {
        std::mem::take(&mut self.cut)
    }

    /// Number of received packets that wait in the ring, up to `most`. Their beginnings are fetched into the cache.
    pub(crate) fn arrived(&self, most: usize) -> usize {
        let count = self.slots.count();
        (0..most.min(count))
            .map(|ahead| (self.next + ahead) % count)
            .take_while(|slot| self.slots.has_arrived(*slot))
            .inspect(|slot| self.slots.prefetch(*slot))
            .count()
    }

    /// Passes the next packet to `intake`, and gives its slot back to the kernel.
    pub(crate) fn take(
        &mut self,
        socket: &PacketSocket,
        intake: &mut Intake<'_>,
    ) -> io::Result<()> {
        let taken = self.hand_over(socket, intake);
        self.slots.set_status(self.next, libc::TP_STATUS_KERNEL);
        self.next = (self.next + 1) % self.slots.count();
        self.cut += taken? as u64;
        Ok(())
    }

    /// Passes the next packet to `intake`; returns the number of its frames that are lost because the kernel kept only a part of it.
    fn hand_over(&mut self, socket: &PacketSocket, intake: &mut Intake<'_>) -> io::Result<usize> {
        let Some(arrived) = self.slots.arrived(self.next) else {
            return Ok(1);
        };
        let Arrived {
            status,
            len,
            vlan_tpid,
            vlan_tci,
            at_ns,
            offload,
            bytes,
        } = arrived;
        let about = About {
            offload,
            tag: stripped_tag(status, vlan_tpid, vlan_tci),
            at_ns: Some(at_ns),
        };
        let is_beside = status & libc::TP_STATUS_COPY != 0;
        if is_beside && intake.read_beside(about, len, |buffer| socket.receive(buffer))? {
            return Ok(0);
        }
        if is_beside || bytes.len() != HEADROOM + len {
            if len > MAX_PACKET {
                intake.tell_of_long_bundle();
            }
            return Ok(Cut::lost(offload, &bytes[HEADROOM..], len));
        }
        intake.packet(about, bytes);
        Ok(0)
    }
}
