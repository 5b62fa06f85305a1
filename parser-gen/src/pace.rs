//! Pacing: packets leave one after the other at a rate, through a virtual queue: its P4 text, and packet lengths.
//!
//! The queue's state is the time at which it will be empty (GCRA's theoretical arrival time, ITU-T I.371). Each
//! packet adds its time at the rate. A packet that would wait for longer than the maximum exceeds the queue.

use crate::library::Library;
use crate::writer::Writer;

/// Rate and maximum length of a virtual queue through which packets pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Time that one byte takes at the rate, in nanoseconds times 2^16.
    pub step: u64,
    /// Maximum length of the queue with the new packet in it, as a time in nanoseconds.
    pub most_ns: u64,
    /// Whether packets wait for their turn; otherwise the queue only measures the rate.
    pub holds: bool,
}

/// Protocols that a program must parse for [`measure`].
pub(crate) const PROTOCOLS: [&str; 2] = ["ipv4", "ipv6"];
/// Length in bytes that is assumed for a frame without IP, whose headers hold no length.
const OTHER_BYTES: u32 = 60;
/// Bytes of an Ethernet header; the next constant is for Ethernet and IPv6 headers together.
const ETHERNET_BYTES: u32 = 14;
const IPV6_BYTES: u32 = 54;

impl Pace {
    /// Time that a frame of `bytes` bytes takes at the rate, in nanoseconds.
    #[must_use]
    pub fn cost_ns(&self, bytes: u32) -> u64 {
        u64::try_from((u128::from(bytes) * u128::from(self.step)) >> 16).unwrap_or(u64::MAX)
    }

    /// Writes the statements that queue a packet on which the unit fires. `read` and `write` access the queue's register.
    pub(crate) fn write(&self, read: &str, write: &str, w: &mut Writer) {
        w.open("@atomic");
        w.line("time_ns_t free;");
        w.line(read);
        w.line("time_ns_t wait = free - meta.now;");
        w.open("if (free == 0 || wait[TIME_SIGN:TIME_SIGN] == 1)");
        w.line("wait = 0;");
        w.close();
        w.line(format!("bit<64> cost = (bit<64>) bytes * {};", self.step));
        w.line("wait = wait + cost[63:16];");
        w.open(format!("if (wait > {})", self.most_ns));
        w.line("over = 1;");
        w.close_open("else");
        w.line(write);
        if self.holds {
            w.line("hold = wait;");
        }
        w.close();
        w.close();
    }
}

/// Length of a frame in bytes: the Ethernet header plus the length in the IP header; 60 for a frame without IP.
#[must_use]
pub fn bytes(library: &Library, frame: &[u8]) -> u32 {
    for (id, start) in library.headers(frame) {
        let word = |at: usize| u32::from(frame[start + at]) << 8 | u32::from(frame[start + at + 1]);
        match library.protocols[id].name.as_str() {
            "ipv4" => return word(2) + ETHERNET_BYTES,
            "ipv6" => return word(4) + IPV6_BYTES,
            _ => {}
        }
    }
    OTHER_BYTES
}

/// Writes statements that compute a packet's length as [`bytes`] does; they stand in the fault engine before its units.
pub(crate) fn measure(w: &mut Writer) {
    w.line(format!("bit<32> bytes = {OTHER_BYTES};"));
    w.open("if (hdr.ipv4.isValid())");
    w.line(format!(
        "bytes = (bit<32>) hdr.ipv4.total_len + {ETHERNET_BYTES};"
    ));
    w.close_open("else if (hdr.ipv6.isValid())");
    w.line(format!(
        "bytes = (bit<32>) hdr.ipv6.payload_len + {IPV6_BYTES};"
    ));
    w.close();
}
