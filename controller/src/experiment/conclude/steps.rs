//! Computes when each step of the timeline came into force, and for how long the switches were in different steps.

use std::collections::BTreeMap;
use std::time::Duration;

use scenario::model::Epoch;
use serde::Serialize;

use crate::experiment::fleet::EpochWrite;

/// One time at which a step of the timeline was due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepResult {
    /// Name of the step in the scenario.
    pub step: String,
    /// Number (epoch) with which the controller put the step in force on the switches.
    pub epoch: u16,
    /// When the step was due (or, if it waited for a condition, was written), in nanoseconds since the workload began.
    pub at_ns: u64,
    /// Time from the first switch's write to the last switch's confirmation; `None` if the step was skipped because the next
    /// step was due before it was written.
    pub write_ns: Option<u64>,
    /// Time between the first and the last switch's confirmation, with switches in different steps; `None` if it was skipped.
    pub skew_ns: Option<u64>,
}

/// When the workload began, in ns since 1970: when all switches had confirmed the first step (epoch 1); `None` if never.
pub fn start_ns(writes: &[EpochWrite]) -> Option<u64> {
    let first = writes.iter().filter(|write| write.epoch == 1);
    first.map(|write| write.confirmed_ns).max()
}

/// When each epoch (step of the timeline) began, in nanoseconds since the workload began: as the timeline says, or, from the
/// first epoch on that waits for a condition, when it was written. `None` if it never began.
pub fn begun(timeline: &[Epoch], writes: &[EpochWrite]) -> Vec<Option<u64>> {
    let start = start_ns(writes);
    let mut waits = false;
    let begun = timeline.iter().map(|epoch| {
        waits |= epoch.on.is_some();
        if !waits {
            return Some(epoch.at_ns);
        }
        let own = writes.iter().filter(|write| write.epoch == epoch.epoch);
        let sent = own.map(|write| write.sent_ns).min()?;
        Some(sent.saturating_sub(start?))
    });
    begun.collect()
}

/// The named steps that were due while the workload ran, in the order of the timeline.
pub fn steps(timeline: &[Epoch], writes: &[EpochWrite], wall: Duration) -> Vec<StepResult> {
    let mut of_epoch: BTreeMap<u16, Vec<&EpochWrite>> = BTreeMap::new();
    for write in writes {
        of_epoch.entry(write.epoch).or_default().push(write);
    }
    let begun = begun(timeline, writes);
    let due = timeline.iter().zip(begun).filter_map(|(epoch, begun)| {
        let step = epoch.step.clone()?;
        let at_ns = begun?;
        let writes = of_epoch.get(&epoch.epoch).map_or(&[][..], Vec::as_slice);
        let sent = writes.iter().map(|write| write.sent_ns).min();
        let first = writes.iter().map(|write| write.confirmed_ns).min();
        let last = writes.iter().map(|write| write.confirmed_ns).max();
        let between = |from: Option<u64>| Some(last?.saturating_sub(from?));
        let (write_ns, skew_ns) = (between(sent), between(first));
        let is_due = Duration::from_nanos(at_ns) < wall;
        (is_due || write_ns.is_some()).then_some(StepResult {
            step,
            epoch: epoch.epoch,
            at_ns,
            write_ns,
            skew_ns,
        })
    });
    due.collect()
}

/// The longest time for which the switches were in different steps of the timeline, in nanoseconds.
pub fn longest_skew_ns(writes: &[EpochWrite]) -> u64 {
    let mut confirmed: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
    // Epoch 0 is not a step: it disarms the faults.
    for write in writes.iter().filter(|write| write.epoch > 0) {
        let at_ns = write.confirmed_ns;
        let (first, last) = confirmed.entry(write.epoch).or_insert((at_ns, at_ns));
        (*first, *last) = ((*first).min(at_ns), (*last).max(at_ns));
    }
    let skews = confirmed.values().map(|(first, last)| last - first);
    skews.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waited_began_when_it_was_written() {
        let epoch = |epoch, at_ns, on: Option<&str>| Epoch {
            epoch,
            at_ns,
            step: Some("x".to_owned()),
            on: on.map(str::to_owned),
        };
        let timeline = [
            epoch(1, 0, None),
            epoch(2, 50, None),
            epoch(3, 0, Some("fault.x.fired > 3")),
            epoch(4, 20, None),
            epoch(5, 0, Some("fault.x.fired > 9")),
        ];
        let write = |epoch, sent_ns| EpochWrite {
            switch: "sw".to_owned(),
            epoch,
            sent_ns,
            confirmed_ns: sent_ns + 1,
        };
        let writes = [
            write(1, 999),
            write(2, 1_052),
            write(3, 1_300),
            write(4, 1_321),
        ];
        let expected = [Some(0), Some(50), Some(300), Some(321), None];
        assert_eq!(begun(&timeline, &writes), expected);
        let found = steps(&timeline, &writes, Duration::from_nanos(400));
        let found: Vec<_> = found
            .iter()
            .map(|found| (found.epoch, found.at_ns))
            .collect();
        assert_eq!(found, [(1, 0), (2, 50), (3, 300), (4, 321)]);
    }

    #[test]
    fn skew_is_between_confirmations_and_what_was_overtaken_is_told() {
        let epoch = |epoch, at_ns, step: Option<&str>| Epoch {
            epoch,
            at_ns,
            step: step.map(str::to_owned),
            on: None,
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
        // The first step, which has no name, was the worst.
        assert_eq!(longest_skew_ns(&writes), 8);
        assert_eq!(longest_skew_ns(&[]), 0);
    }
}
