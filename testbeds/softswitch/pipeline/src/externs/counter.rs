//! Counters, indexed and direct.

/// The value of a counter cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CounterValue {
    /// Packets.
    pub packets: u64,
    /// Bytes of those packets when they entered the block's parser.
    pub bytes: u64,
}

/// The quantities that a counter counts (`PSA_CounterType_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterKind {
    /// Packets: `PACKETS`, `PACKETS_AND_BYTES`.
    pub packets: bool,
    /// Bytes: `BYTES`, `PACKETS_AND_BYTES`.
    pub bytes: bool,
}

impl CounterKind {
    /// The kind with this name in the enum.
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
    /// Counts a packet. The largest number wraps to 0, as in hardware, since the control plane may set any value.
    pub fn add(&mut self, kind: CounterKind, bytes: u64) {
        if kind.packets {
            self.packets = self.packets.wrapping_add(1);
        }
        if kind.bytes {
            self.bytes = self.bytes.wrapping_add(bytes);
        }
    }
}

/// An indexed counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// Fully qualified name.
    pub name: String,
    /// The counted quantities.
    pub kind: CounterKind,
    /// Cells.
    pub cells: Vec<CounterValue>,
}

impl Counter {
    /// Counts a packet at `index`; an index beyond the size has no effect.
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
