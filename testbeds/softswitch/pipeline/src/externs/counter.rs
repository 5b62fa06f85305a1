//! Cells of indexed and direct counters, and their update by a packet.

/// The packets and bytes that a counter's cell has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CounterValue {
    /// Number of packets.
    pub packets: u64,
    /// Sum of the lengths of the packets when they entered the block's parser, in bytes.
    pub bytes: u64,
}

/// The quantities that a counter counts: packets, bytes or both (`PSA_CounterType_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterKind {
    /// Whether the counter counts packets: `PACKETS`, `PACKETS_AND_BYTES`.
    pub packets: bool,
    /// Whether the counter counts bytes: `BYTES`, `PACKETS_AND_BYTES`.
    pub bytes: bool,
}

impl CounterKind {
    /// The kind with this name in the enum of counter types; `None` for an unknown name.
    pub fn named(name: &str) -> Option<CounterKind> {
        let (packets, bytes) = match name.to_ascii_uppercase().as_str() {
            "PACKETS" => (true, false),
            "BYTES" => (false, true),
            "PACKETS_AND_BYTES" => (true, true),
            _ => return None,
        };
        Some(CounterKind { packets, bytes })
    }
}

impl CounterValue {
    /// Counts a packet of `bytes` bytes. Beyond the largest number, counting continues from 0, as in hardware.
    pub fn add(&mut self, kind: CounterKind, bytes: u64) {
        if kind.packets {
            self.packets = self.packets.wrapping_add(1);
        }
        if kind.bytes {
            self.bytes = self.bytes.wrapping_add(bytes);
        }
    }
}

/// An indexed counter of the program, with its cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// Fully qualified name of the counter.
    pub name: String,
    /// The quantities that the counter counts: packets, bytes or both.
    pub kind: CounterKind,
    /// The counter's cells by index.
    pub cells: Vec<CounterValue>,
}

impl Counter {
    /// Counts a packet of `bytes` bytes in the cell at `index`; an index beyond the last cell has no effect.
    #[inline(always)]
    pub fn count(&mut self, index: u64, bytes: u64) {
        let kind = self.kind;
        if let Some(cell) = usize::try_from(index)
            .ok()
            .and_then(|i| self.cells.get_mut(i))
        {
            cell.add(kind, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_counter_wraps_around() {
        let mut value = CounterValue {
            packets: u64::MAX,
            bytes: u64::MAX - 9,
        };
        let kind = CounterKind {
            packets: true,
            bytes: true,
        };
        value.add(kind, 64);
        assert_eq!((value.packets, value.bytes), (0, 54));
    }
}
