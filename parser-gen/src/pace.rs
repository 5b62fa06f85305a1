//! Packets that are let go one after the other at a rate: a virtual queue. How long a packet is, and the P4 text of the queue.
//!
//! The queue is the time at which it will be empty (GCRA's theoretical arrival time, ITU-T I.371): a packet adds to it what it
//! takes at the rate. What would wait for longer than the queue may be goes beyond it.

use crate::generate::writer::Writer;
use crate::library::{Library, ProtocolId};

/// A rate, and how long the queue may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Nanoseconds a byte, times 2^16.
    pub step: u64,
    /// The longest that the queue may be when a packet has come, in nanoseconds.
    pub most_ns: u64,
    /// Whether packets wait for their turn; else they only count.
    pub holds: bool,
}

/// Of a frame without IP.
const OTHER_BYTES: u32 = 60;
/// Ethernet, and Ethernet with IPv6.
const ETHERNET_BYTES: u32 = 14;
const IPV6_BYTES: u32 = 54;

impl Pace {
    /// What a frame takes at the rate.
    #[must_use]
    pub fn cost_ns(&self, bytes: u32) -> u64 {
        u64::try_from((u128::from(bytes) * u128::from(self.step)) >> 16).unwrap_or(u64::MAX)
    }

    /// What a unit does with a packet that it fires on; `name` is the register's.
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

/// How long a frame is: Ethernet's header and what the IP header says; 60 bytes where there is none.
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

/// The same in the engine, before its units.
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

/// The protocols that a program must parse for it.
pub(crate) fn protocols(library: &Library) -> impl Iterator<Item = ProtocolId> {
    let protocols = library.protocols.iter().enumerate();
    let named =
        protocols.filter(|(_, protocol)| ["ipv4", "ipv6"].contains(&protocol.name.as_str()));
    named.map(|(id, _)| id)
}
