//! Encodes and decodes the messages that perftest's programs exchange over TCP (docs/rdma-handshakes.md).

use std::fmt;

use roce::packet::Mtu;
use roce::{Psn, Qpn};

use crate::provider::Gid;

/// Version in perftest's greeting, padded with zeros: that of Debian 12's perftest (4.5), which accepts no other version.
pub const VERSION: [u8; 16] = *b"6.06\0\0\0\0\0\0\0\0\0\0\0\0";
/// Length in bytes of the memory area in which small messages are placed one after another.
pub const CYCLE: u32 = 4096;
/// Alignment in bytes of small messages in their memory area.
pub const CACHE_LINE: u32 = 64;
/// The last message that a side sends over TCP.
pub const DONE: &[u8; 5] = b"done\0";

/// RDMA operation under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// RDMA WRITE, as in ib_write_bw and ib_write_lat.
    Write,
    /// SEND, as in ib_send_bw and ib_send_lat.
    Send,
    /// RDMA READ, as in ib_read_bw and ib_read_lat.
    Read,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verb::Write => "WRITEs",
            Verb::Send => "SENDs",
            Verb::Read => "READs",
        })
    }
}

/// Description of a side's queue pair and memory, which the two programs exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    /// Maximum number of outstanding READs that the side accepts.
    pub reads: u16,
    /// Number of the side's queue pair.
    pub qpn: Qpn,
    /// PSN of the first packet that the queue pair sends.
    pub psn: Psn,
    /// Remote key of the side's memory; 0 if the peer neither writes nor reads the memory.
    pub rkey: u32,
    /// Address of the side's memory.
    pub address: u64,
    /// GID of the queue pair's port.
    pub gid: Gid,
}

impl Keys {
    /// Length in bytes of keys that are encoded as perftest does.
    pub const LEN: usize = 108;

    /// Operation that a side with these keys tests: SEND if `rkey` is 0, READ if several READs may be outstanding, else WRITE.
    pub fn verb(&self) -> Verb {
        match (self.rkey, self.reads) {
            (0, _) => Verb::Send,
            (_, 0 | 1) => Verb::Write,
            _ => Verb::Read,
        }
    }

    /// Encodes the keys as `lid:reads:qpn:psn:rkey:address:gid:srqn:` in hexadecimal digits, and a zero byte. `srqn` is the
    /// number of a shared receive queue in perftest; neither end has one, so the field carries `word`.
    pub fn encode(&self, word: u32) -> [u8; Self::LEN] {
        let gid: Vec<String> = self
            .gid
            .0
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let text = format!(
            "0000:{:04x}:{:06x}:{:06x}:{:08x}:{:016x}:{}:{:08x}:\0",
            self.reads,
            self.qpn.bits(),
            self.psn.bits(),
            self.rkey,
            self.address,
            gid.join(":"),
            word
        );
        let mut bytes = [0; Self::LEN];
        bytes.copy_from_slice(text.as_bytes());
        bytes
    }

    /// Decodes the keys, and the number in the field `srqn`; `None` if the bytes have another form.
    pub fn decode(bytes: &[u8; Self::LEN]) -> Option<(Self, u32)> {
        let text = std::str::from_utf8(bytes).ok()?.strip_suffix(":\0")?;
        let fields: Vec<&str> = text.split(':').collect();
        let number = |at: usize, digits: usize| {
            let field: &str = fields.get(at)?;
            let is_plain = field.len() == digits && field.bytes().all(|b| b.is_ascii_hexdigit());
            u64::from_str_radix(field, 16).ok().filter(|_| is_plain)
        };
        // Five numbers, an address, sixteen bytes, the number of a shared receive queue.
        if fields.len() != 23 {
            return None;
        }
        let mut gid = [0; 16];
        for (at, byte) in gid.iter_mut().enumerate() {
            *byte = number(6 + at, 2)? as u8;
        }
        number(0, 4)?;
        let keys = Self {
            reads: number(1, 4)? as u16,
            qpn: Qpn::new(number(2, 6)? as u32),
            psn: Psn::new(number(3, 6)? as u32),
            rkey: number(4, 8)? as u32,
            address: number(5, 16)?,
            gid: Gid(gid),
        };
        Some((keys, number(22, 8)? as u32))
    }
}

/// Encodes a path MTU as its number in verbs, 1 (256 bytes) to 5 (4,096 bytes): a digit and a zero byte.
pub fn encode_mtu(mtu: Mtu) -> [u8; 2] {
    [b'1' + mtu as u8, 0]
}

/// Decodes a path MTU; `None` if the bytes have another form.
pub fn decode_mtu(bytes: [u8; 2]) -> Option<Mtu> {
    let number = bytes[0].checked_sub(b'1').filter(|_| bytes[1] == 0)?;
    Mtu::ALL.get(usize::from(number)).copied()
}

/// Measurement of one side of a bandwidth test, which is sent to the other side field by field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Report {
    /// Length of each message in bytes.
    pub size: u64,
    /// Number of messages measured.
    pub iterations: u64,
    /// Peak bandwidth in MiB/s, or in Gbit/s after [`in_gbits`](Self::in_gbits).
    pub peak: f64,
    /// Average bandwidth in MiB/s, or in Gbit/s after [`in_gbits`](Self::in_gbits).
    pub average: f64,
    /// Rate in millions of messages per second.
    pub rate: f64,
}

/// Factor from MiB/s to Gbit/s.
const GBITS: f64 = (8 << 20) as f64 / 1e9;

impl Report {
    /// The report in Gbit/s, as perftest's programs print and send it with `--report_gbits`.
    pub fn in_gbits(self) -> Self {
        self.times(GBITS)
    }

    /// The report in MiB/s, even if the sender used Gbit/s: the unit follows from message size, rate and average.
    pub fn in_mib(self) -> Self {
        let mib = self.rate * 1e6 * self.size as f64 / f64::from(1 << 20);
        let is_gbits = (self.average - mib * GBITS).abs() < (self.average - mib).abs();
        match is_gbits {
            true => self.times(1.0 / GBITS),
            false => self,
        }
    }

    /// Report for both directions of a bidirectional test: the bandwidths and rates of this report and `other` are added.
    pub fn with(self, other: Self) -> Self {
        Self {
            peak: self.peak + other.peak,
            average: self.average + other.average,
            rate: self.rate + other.rate,
            ..self
        }
    }

    fn times(self, factor: f64) -> Self {
        Self {
            peak: self.peak * factor,
            average: self.average * factor,
            ..self
        }
    }

    /// Encodes the report's five fields, each in eight bytes, most significant first.
    pub fn encode(&self) -> [[u8; 8]; 5] {
        [
            self.size.to_be_bytes(),
            self.iterations.to_be_bytes(),
            self.peak.to_be_bytes(),
            self.average.to_be_bytes(),
            self.rate.to_be_bytes(),
        ]
    }

    /// Decodes a report from its five fields.
    pub fn decode(fields: [[u8; 8]; 5]) -> Self {
        let [size, iterations, peak, average, rate] = fields;
        Self {
            size: u64::from_be_bytes(size),
            iterations: u64::from_be_bytes(iterations),
            peak: f64::from_be_bytes(peak),
            average: f64::from_be_bytes(average),
            rate: f64::from_be_bytes(rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_text_of_108_bytes() {
        let keys = Keys {
            reads: 128,
            qpn: Qpn::new(0x11),
            psn: Psn::new(0xABCDEF),
            rkey: 0x1234,
            address: 0x7F00_0000_1000,
            gid: std::net::Ipv4Addr::new(10, 77, 0, 1).into(),
        };
        let told = b"0000:0080:000011:abcdef:00001234:00007f0000001000:\
            00:00:00:00:00:00:00:00:00:00:ff:ff:0a:4d:00:01:40000b00:\0";
        assert_eq!(keys.encode(0x4000_0B00), *told);
        assert_eq!(Keys::decode(told), Some((keys, 0x4000_0B00)));
        for at in [0, 5, 10, 17, 24, 33, 50, 98, 106, 107] {
            let mut wrong = *told;
            wrong[at] = b'+';
            assert_eq!(Keys::decode(&wrong), None, "{at}");
        }
        assert_eq!(Keys::decode(&[b':'; 108]), None);
    }

    #[test]
    fn an_mtu_is_a_digit() {
        for (mtu, told) in [(Mtu::B256, *b"1\0"), (Mtu::B4096, *b"5\0")] {
            assert_eq!(encode_mtu(mtu), told);
            assert_eq!(decode_mtu(told), Some(mtu));
        }
        for wrong in [*b"0\0", *b"6\0", *b"55", [0, 0]] {
            assert_eq!(decode_mtu(wrong), None);
        }
    }

    #[test]
    fn a_report_is_five_fields() {
        let report = Report {
            size: 65_536,
            iterations: 200,
            peak: 61.5,
            average: 60.25,
            rate: 0.000_964,
        };
        assert_eq!(Report::decode(report.encode()), report);
    }

    #[test]
    fn a_report_is_read_in_either_unit() {
        for (size, rate) in [(2, 3.5), (65_536, 0.000_964), (8 << 20, 1e-7)] {
            let average = rate * 1e6 * size as f64 / f64::from(1 << 20);
            let report = Report {
                size,
                iterations: 200,
                peak: average * 1.5,
                average,
                rate,
            };
            assert_eq!(report.in_mib(), report);
            let gbits = report.in_gbits();
            let bits = rate * 1e6 * size as f64 * 8.0;
            assert!(
                (gbits.average - bits / 1e9).abs() < 1e-9 * bits,
                "{gbits:?}"
            );
            let back = gbits.in_mib();
            assert!(
                (back.peak - report.peak).abs() < 1e-9 * report.peak,
                "{back:?}"
            );
            assert_eq!(report.with(report).average, 2.0 * average);
        }
    }
}
