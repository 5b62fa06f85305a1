//! Frames that a switch let through while a disruption had it down.
//!
//! A frame counts if it left the switch during an [`Outage`], and no frame with the same bytes arrived at the switch before the
//! outage began. A frame that waited for the rate of its link leaves during the outage, but it arrived before.
//!
//! A live run announces an outage after some of its frames have passed. Therefore a departure is counted one horizon (a frame's
//! longest time in the switch) after it was seen, and arrivals are kept for one horizon more. An outage that is announced later
//! than that has no count.

use std::collections::{BTreeSet, VecDeque};

use scenario::model::Scenario;
use scenario::model::disruption::Subject;
use scenario::model::topology::QUEUE_BYTES;

use super::STEP_NS;
use super::frame::{Identity, Sight, Way};
use super::witness::horizon_ns;

/// A time during which a disruption had a switch down. Times are in nanoseconds since 1970, as those of captures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// Name of the switch.
    pub switch: String,
    /// Time at which the process of the switch was found dead.
    pub from_ns: u64,
    /// Time at which the controller began to restart the switch. `None`: not yet, or never.
    pub until_ns: Option<u64>,
}

/// Number of frames that a switch let through during an outage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutageCount {
    /// The outage.
    pub outage: Outage,
    /// Number of frames. `None`: the outage was announced after the judge had forgotten its frames.
    pub frames: Option<u64>,
}

/// The frames that passed, in the last seconds, a switch that a disruption can take down.
pub struct Downtime<'a> {
    /// Name of the switch.
    pub switch: &'a str,
    /// The longest time from a frame's arrival to its departure, in nanoseconds: a multiple of [`STEP_NS`].
    horizon_ns: u64,
    came: BTreeSet<(Identity, u64)>,
    left: VecDeque<(u64, Identity)>,
    /// All departures before this time are counted and forgotten.
    counted_ns: u64,
    /// All arrivals more than the longest stay of a frame in the switch (`horizon_ns`) before this time are forgotten.
    swept_ns: u64,
    outages: Vec<OutageCount>,
}

impl<'a> Downtime<'a> {
    /// One record for each switch that a disruption of the scenario can take down.
    pub fn all(scenario: &'a Scenario) -> Vec<Downtime<'a>> {
        let subjects = scenario.disruptions.iter().map(|of| of.does.subject());
        let switches = subjects.filter_map(|subject| match subject {
            Subject::Switch(switch) => Some(switch),
            Subject::Command(_) => None,
        });
        let switches: BTreeSet<&str> = switches.collect();
        let downtime = |switch| {
            let ports = scenario.topology.ports(switch);
            // A full queue in front of the slowest link.
            let queue_ns = ports
                .map(|port| u64::from(QUEUE_BYTES) * 8_000_000_000 / port.link.rate_bps.max(1));
            let queue_ns = queue_ns.max().unwrap_or(0);
            Downtime::new(
                switch,
                horizon_ns(scenario, switch).saturating_add(queue_ns),
            )
        };
        switches.into_iter().map(downtime).collect()
    }

    fn new(switch: &'a str, horizon_ns: u64) -> Downtime<'a> {
        Downtime {
            switch,
            horizon_ns: horizon_ns.div_ceil(STEP_NS).saturating_mul(STEP_NS),
            came: BTreeSet::new(),
            left: VecDeque::new(),
            counted_ns: 0,
            swept_ns: 0,
            outages: Vec::new(),
        }
    }

    /// Records an outage of the switch; if one with the same `from_ns` was recorded without an end, sets its end.
    pub fn down(&mut self, outage: &Outage) {
        let is_open = |count: &OutageCount| {
            count.outage.from_ns == outage.from_ns && count.outage.until_ns.is_none()
        };
        let counted_ns = self.counted_ns;
        match self.outages.iter_mut().find(|count| is_open(count)) {
            Some(count) => {
                count.outage.until_ns = outage.until_ns;
                let is_known = outage
                    .until_ns
                    .is_none_or(|until_ns| until_ns >= counted_ns);
                count.frames = count.frames.filter(|_| is_known);
            }
            None => self.outages.push(OutageCount {
                frames: (outage.from_ns >= counted_ns).then_some(0),
                outage: outage.clone(),
            }),
        }
    }

    /// Takes a frame that passed a port of the switch.
    pub fn see(&mut self, sight: &Sight<'_>) {
        match sight.way {
            Way::In => {
                self.came.insert((sight.identity, sight.at_ns));
            }
            Way::Out => self.left.push_back((sight.at_ns, sight.identity)),
        }
    }

    /// Counts the departures during outages and forgets older frames, once all frames until `now_ns` are in.
    pub fn advance(&mut self, now_ns: u64) {
        self.count(now_ns.saturating_sub(self.horizon_ns));
        if self.counted_ns - self.swept_ns >= self.horizon_ns / 2 {
            self.swept_ns = self.counted_ns;
            let oldest_ns = self.counted_ns.saturating_sub(self.horizon_ns);
            self.came.retain(|(_, came_ns)| *came_ns >= oldest_ns);
        }
    }

    /// Counts the remaining departures during outages at the end of the run.
    pub fn conclude(mut self) -> Vec<OutageCount> {
        self.count(u64::MAX);
        self.outages
    }

    /// Counts the departures before `until_ns` that fall into an outage.
    fn count(&mut self, until_ns: u64) {
        self.counted_ns = self.counted_ns.max(until_ns);
        while let Some((left_ns, identity)) = self.left.pop_front_if(|(at, _)| *at < until_ns) {
            let oldest_ns = left_ns.saturating_sub(self.horizon_ns);
            for OutageCount { outage, frames } in &mut self.outages {
                let (from_ns, until_ns) = (outage.from_ns, outage.until_ns.unwrap_or(u64::MAX));
                // Replication decides how many copies of a frame leave.
                let came_before = || {
                    let since = (identity, oldest_ns.min(from_ns));
                    self.came.range(since..(identity, from_ns)).next().is_some()
                };
                if (from_ns..until_ns).contains(&left_ns) && !came_before() {
                    *frames = frames.map(|frames| frames + 1);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::Digest;
    use super::*;
    use Way::{In, Out};

    const S: u64 = 1_000_000_000;

    fn outage(from_ns: u64, until_ns: Option<u64>) -> Outage {
        Outage {
            switch: "sw".to_owned(),
            from_ns,
            until_ns,
        }
    }

    /// Shows frames, each with its time and number, in steps as the judge does.
    fn show(downtime: &mut Downtime<'_>, frames: &[(Way, u64, u64)]) {
        for (way, at_ns, number) in frames {
            downtime.advance(at_ns / STEP_NS * STEP_NS);
            downtime.see(&Sight {
                at_ns: *at_ns,
                way: *way,
                wire_len: 60,
                identity: Digest::of_seed(1).of(&number.to_le_bytes(), 60),
                bytes: &[],
            });
        }
    }

    fn counts(downtime: Downtime<'_>) -> Vec<Option<u64>> {
        let counts = downtime.conclude().into_iter();
        counts.map(|count| count.frames).collect()
    }

    #[test]
    fn each_of_two_outages_counts_the_frames_that_the_switch_let_through() {
        let mut downtime = Downtime::new("sw", S);
        let outages = [outage(10 * S, Some(12 * S)), outage(20 * S, Some(21 * S))];
        outages.iter().for_each(|outage| downtime.down(outage));
        show(
            &mut downtime,
            &[
                // Arrived before the outage and waited for its link.
                (In, 10 * S - 1, 1),
                (Out, 10 * S + S / 2, 1),
                // Arrived during the outage and left.
                (In, 11 * S, 2),
                (Out, 11 * S + 1, 2),
                // Left without having arrived.
                (Out, 12 * S - 1, 3),
                // The new process forwards.
                (In, 12 * S, 4),
                (Out, 12 * S, 4),
                (In, 20 * S, 5),
                (Out, 20 * S, 5),
            ],
        );
        assert_eq!(counts(downtime), [Some(2), Some(1)]);
    }

    #[test]
    fn a_frame_like_one_that_came_before_the_outage_may_be_its_copy_for_one_horizon() {
        let mut downtime = Downtime::new("sw", S);
        downtime.down(&outage(10 * S, None));
        show(&mut downtime, &[(In, 10 * S - 1, 1), (Out, 10 * S - 1, 1)]);
        show(&mut downtime, &[(In, 10 * S + 2, 1), (Out, 10 * S + 3, 1)]);
        show(&mut downtime, &[(In, 11 * S, 1), (Out, 11 * S, 1)]);
        assert_eq!(counts(downtime), [Some(1)]);
    }

    #[test]
    fn an_outage_may_be_announced_and_ended_while_its_frames_are_known() {
        let frames = [(Out, 10 * S, 1), (Out, 11 * S - 1, 2), (Out, 11 * S, 3)];
        let mut downtime = Downtime::new("sw", S);
        show(&mut downtime, &frames);
        downtime.down(&outage(10 * S, None));
        downtime.advance(12 * S);
        downtime.down(&outage(10 * S, Some(11 * S)));
        assert_eq!(counts(downtime), [Some(2)]);
    }

    #[test]
    fn an_outage_that_is_announced_or_ended_too_late_has_no_count() {
        let mut downtime = Downtime::new("sw", S);
        downtime.down(&outage(9 * S, None));
        downtime.advance(12 * S);
        downtime.down(&outage(9 * S, Some(11 * S - 1)));
        downtime.down(&outage(11 * S - 1, None));
        downtime.down(&outage(11 * S, None));
        assert_eq!(counts(downtime), [None, None, Some(0)]);
    }

    #[test]
    fn memory_is_bounded_by_the_horizon() {
        let mut downtime = Downtime::new("sw", S);
        downtime.down(&outage(30 * S, Some(31 * S)));
        // One frame per millisecond.
        for at_ms in 0..60_000 {
            let at_ns = at_ms * S / 1000;
            show(&mut downtime, &[(In, at_ns, at_ms), (Out, at_ns, at_ms)]);
            let (came, left) = (downtime.came.len(), downtime.left.len());
            assert!(came <= 2_600 && left <= 1_100, "{came} {left}");
        }
        assert_eq!(counts(downtime), [Some(1000)]);
    }
}
