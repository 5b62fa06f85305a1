//! Counts the frames of a flow that were sent, received, lost and duplicated, and how long they took.

use hdrhistogram::Histogram;

/// Significant digits of the times in the histogram: its values are within 1 %.
const DIGITS: u8 = 2;

/// Frames of a flow, counted between its first and its last switch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowCount {
    /// Frames that the sender put on its link.
    pub sent: u64,
    /// Number of frames in `sent` that left the last switch towards the receiver.
    pub received: u64,
    /// Number of frames that were sent and not received.
    pub lost: u64,
    /// Number of surplus copies that the receiver's link carried.
    pub extra: u64,
    /// Longest time from sending to receipt of a frame, in nanoseconds.
    pub longest_ns: u64,
    /// Histogram of the times from sending to receipt, in nanoseconds; `None` until a frame was received.
    took_ns: Option<Histogram<u64>>,
}

impl FlowCount {
    /// Adds frames: for each, its time from sending to receipt (`None`: lost); and the total number of copies received.
    pub fn add_frames(&mut self, took_ns: &[Option<u64>], copies: u64) {
        let mut received = 0;
        for took_ns in took_ns.iter().flatten() {
            received += 1;
            self.longest_ns = self.longest_ns.max(*took_ns);
            if self.took_ns.is_none() {
                self.took_ns = Histogram::new(DIGITS).ok();
            }
            if let Some(histogram) = &mut self.took_ns {
                // Refuses nothing: a histogram without bounds grows.
                _ = histogram.record(*took_ns);
            }
        }
        self.sent += took_ns.len() as u64;
        self.received += received;
        self.lost += took_ns.len() as u64 - received;
        self.extra += copies - received;
    }

    /// Adds another flow's counts and times to these.
    pub fn add(&mut self, other: &FlowCount) {
        self.sent += other.sent;
        self.received += other.received;
        self.lost += other.lost;
        self.extra += other.extra;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        match (&mut self.took_ns, &other.took_ns) {
            (Some(own), Some(others)) => _ = own.add(others),
            (own @ None, others) => own.clone_from(others),
            (Some(_), None) => {}
        }
    }

    /// Percentile of the times from sending to receipt (nearest rank, within 1 %), in nanoseconds; 0 if nothing was received.
    pub fn percentile_ns(&self, percent: u8) -> u64 {
        let histogram = self.took_ns.as_ref();
        let value = histogram.map_or(0, |times| times.value_at_percentile(percent.into()));
        value.min(self.longest_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Percentiles of two flows together, from 1 us to 10 s, against the sorted values.
    #[test]
    fn percentiles_are_within_one_per_cent() {
        let exact = |number: u32| 1_000 * 10_u64.pow(number / 1_000) + u64::from(number) * 7;
        let mut all = FlowCount::default();
        for part in [0..2_500, 2_500..7_000] {
            let mut flow = FlowCount::default();
            part.for_each(|number| flow.add_frames(&[Some(exact(number))], 1));
            all.add(&flow);
        }
        all.add_frames(&[None], 0);
        assert_eq!((all.sent, all.received, all.lost), (7_001, 7_000, 1));
        for percent in [1, 50, 99, 100] {
            let exact = exact(70 * u32::from(percent) - 1);
            let value = all.percentile_ns(percent);
            assert!(value.abs_diff(exact) * 100 <= exact, "{percent}: {value}");
        }
    }
}
