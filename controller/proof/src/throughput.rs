//! Throughput of flows over time: frames and bytes in bins of equal length, captured at both ends of a flow's path.

use serde::Serialize;

/// Maximum number of time bins in the throughput of a flow.
const MAX_BINS: u64 = 240;
/// Length of the shortest time bin, in nanoseconds. One millisecond would have too few frames for a rate.
const SHORTEST_NS: u64 = 10_000_000;

/// Frames and bytes that a link carried in one time bin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Carried {
    /// Number of frames in the bin.
    pub packets: u64,
    /// Number of bytes of these frames, without the frame check sequence.
    pub bytes: u64,
}

/// Throughput of a flow over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Throughput {
    /// Length of a time bin in nanoseconds; the first bin begins with the workload.
    pub bin_ns: u64,
    /// Frames and bytes, per bin, that the sender put on its link.
    pub sent: Vec<Carried>,
    /// Frames and bytes, per bin, that left towards the receiver, including surplus copies.
    pub received: Vec<Carried>,
}

/// Collects a flow's throughput in time bins from the start of the workload. If there are too many bins, every ten are merged.
#[derive(Debug, Default)]
pub struct Bins {
    /// Length of a bin, in multiples of [`SHORTEST_NS`]; `None` until a frame is counted.
    scale: Option<u64>,
    sent: Vec<Carried>,
    received: Vec<Carried>,
}

impl Bins {
    /// Counts a frame sent `since_ns` nanoseconds after the workload's start; no bin counts a frame sent before it (`None`).
    pub fn send(&mut self, since_ns: Option<u64>, bytes: u32) {
        let bin = since_ns.map(|since_ns| self.bin(since_ns));
        add(&mut self.sent, bin, bytes);
    }

    /// Counts a frame received `since_ns` nanoseconds after the workload's start; `None`: received before it, not counted.
    pub fn receive(&mut self, since_ns: Option<u64>, bytes: u32) {
        let bin = since_ns.map(|since_ns| self.bin(since_ns));
        add(&mut self.received, bin, bytes);
    }

    fn bin(&mut self, since_ns: u64) -> usize {
        loop {
            let scale = self.scale.get_or_insert(1);
            let bin = since_ns / (SHORTEST_NS * *scale);
            if bin < 10 * MAX_BINS {
                return bin as usize;
            }
            *scale *= 10;
            for of in [&mut self.sent, &mut self.received] {
                *of = merged(of, 10);
            }
        }
    }

    /// The throughput over a workload of `length_ns` nanoseconds.
    pub fn over(mut self, length_ns: u64) -> Throughput {
        // 10, 20, 50, 100 …
        let decades = std::iter::successors(Some(SHORTEST_NS), |width| width.checked_mul(10));
        let mut widths = decades.flat_map(|width| [1, 2, 5].map(|of| width.saturating_mul(of)));
        let width_ns = widths.find(|width| length_ns.div_ceil(*width) <= MAX_BINS);
        let width_ns = width_ns.unwrap_or(u64::MAX);
        let own_ns = SHORTEST_NS * self.scale.unwrap_or(1);
        let count = length_ns.div_ceil(width_ns) as usize;
        let [sent, received] = [&mut self.sent, &mut self.received].map(|of| {
            let mut bins = merged(of, ((width_ns / own_ns).max(1)) as usize);
            bins.resize(count, Carried::default());
            bins
        });
        Throughput {
            bin_ns: width_ns,
            sent,
            received,
        }
    }
}

fn add(to: &mut Vec<Carried>, bin: Option<usize>, bytes: u32) {
    let Some(bin) = bin else {
        return;
    };
    if to.len() <= bin {
        to.resize(bin + 1, Carried::default());
    }
    to[bin].packets += 1;
    to[bin].bytes += u64::from(bytes);
}

fn merged(bins: &[Carried], of: usize) -> Vec<Carried> {
    let bins = bins.chunks(of).map(|bins| {
        let sum = |sum: Carried, bin: &Carried| Carried {
            packets: sum.packets + bin.packets,
            bytes: sum.bytes + bin.bytes,
        };
        bins.iter().fold(Carried::default(), sum)
    });
    bins.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_begin_with_the_workload_and_are_no_more_than_fit() {
        const S: u64 = 1_000_000_000;
        for (length_ns, width_ms, count) in [
            (1, 10, 1),
            (S, 10, 101),
            (3 * S, 20, 151),
            (60 * S, 500, 121),
            (86_400 * S, 500_000, 173),
        ] {
            let mut bins = Bins::default();
            for part in 0..=100 {
                bins.send(Some(length_ns * part / 100), 100);
            }
            let carried = bins.over(length_ns + 1);
            assert_eq!(
                (carried.bin_ns, carried.sent.len()),
                (width_ms * 1_000_000, count)
            );
            assert_eq!(carried.sent.iter().map(|bin| bin.packets).sum::<u64>(), 101);
            assert_eq!(carried.received.len(), count);
        }
        let mut bins = Bins::default();
        for since_ns in [None, Some(0), Some(9_999_999), Some(10_000_000), Some(S)] {
            bins.send(since_ns, 100);
        }
        let carried = bins.over(S + 1);
        let packets: Vec<u64> = carried.sent.iter().map(|bin| bin.packets).collect();
        assert_eq!((packets[0], packets[1], packets[100]), (2, 1, 1));
        assert_eq!(carried.sent[0].bytes, 200);
    }
}
