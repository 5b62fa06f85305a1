//! When each step of the timeline came into force, and how far apart the switches were then.

use std::collections::BTreeMap;
use std::time::Duration;

use scenario::model::Epoch;
use serde::Serialize;

use super::fleet::EpochWrite;

/// One of the times that a step was due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepResult {
    /// Its name.
    pub step: String,
    /// What the switches know it by.
    pub epoch: u16,
    /// When it was due, since the start of the workload.
    pub at_ns: u64,
    /// From the first write's sending to the last one's confirmation; absent if it was skipped, since the next was due before
    /// it was written.
    pub write_ns: Option<u64>,
    /// From the first switch's confirmation to the last one's: for so long switches were in different steps.
    pub skew_ns: Option<u64>,
}

/// The named steps that were due while the workload ran, in order.
pub fn steps(timeline: &[Epoch], writes: &[EpochWrite], wall: Duration) -> Vec<StepResult> {
    let mut of_epoch: BTreeMap<u16, Vec<&EpochWrite>> = BTreeMap::new();
    for write in writes {
        of_epoch.entry(write.epoch).or_default().push(write);
    }
    let due = timeline.iter().filter_map(|epoch| {
        let step = epoch.step.clone()?;
        let writes = of_epoch.get(&epoch.epoch).map_or(&[][..], Vec::as_slice);
        let sent = writes.iter().map(|write| write.sent_ns).min();
        let first = writes.iter().map(|write| write.confirmed_ns).min();
        let last = writes.iter().map(|write| write.confirmed_ns).max();
        let between = |from: Option<u64>| Some(last?.saturating_sub(from?));
        let (write_ns, skew_ns) = (between(sent), between(first));
        let is_due = Duration::from_nanos(epoch.at_ns) < wall;
        (is_due || write_ns.is_some()).then_some(StepResult {
            step,
            epoch: epoch.epoch,
            at_ns: epoch.at_ns,
            write_ns,
            skew_ns,
        })
    });
    due.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skew_is_between_confirmations_and_what_was_overtaken_is_told() {
        let epoch = |epoch, at_ns, step: Option<&str>| Epoch {
            epoch,
            at_ns,
            step: step.map(str::to_owned),
        };
        let timeline = [
            epoch(1, 0, None),
            epoch(2, 10, Some("flap")),
            epoch(3, 20, None),
            epoch(4, 30, Some("flap")),
            epoch(5, 900, Some("late")),
        ];
        let write = |switch: &str, epoch, sent_ns, confirmed_ns| EpochWrite {
            switch: switch.to_owned(),
            epoch,
            sent_ns,
            confirmed_ns,
        };
        let writes = [
            write("a", 1, 100, 101),
            write("b", 1, 101, 109),
            write("a", 4, 130, 132),
            write("b", 4, 132, 137),
            write("a", 0, 200, 201),
        ];
        let found = steps(&timeline, &writes, Duration::from_nanos(100));
        let found: Vec<_> = found
            .iter()
            .map(|found| (found.epoch, found.write_ns, found.skew_ns))
            .collect();
        assert_eq!(found, [(2, None, None), (4, Some(7), Some(5))]);
    }
}
