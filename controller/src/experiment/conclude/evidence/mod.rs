//! The evidence of a run (counts and logs besides the captured frames), and the judgment of evidence and frames.

#[cfg(test)]
pub(crate) mod tests;

use proof::{
    Conditions, Digest, EpochWrite, Hit, Judge, Loss, Proof, STEP_NS, Sight, TriggerCount, Way,
};
use scenario::Plan;
use scenario::model::Scenario;
use scenario::plan::announcement::Announcement;
use testbeds::capture::{Direction, Frame};

use crate::experiment::carry_out::disruption::{self, DisruptionExecution};
use crate::experiment::observe::captures::KeptFrames;
use crate::experiment::observe::hit_log::InOrder;

/// In a longer period without frames, the replay skips all but the last 600 s before the next frame; in nanoseconds.
const LONG_NS: u64 = 600_000_000_000;

/// Everything that proves a run's faults, besides the captured frames: counts and logs. It comes from a run that has just
/// ended, or from a run's folder.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Counts of the captured frames that the run's folder keeps.
    pub kept: KeptFrames,
    /// When each switch confirmed each step of the timeline (epoch), in the order in which the steps were sent.
    pub writes: Vec<EpochWrite>,
    /// Announcements of RDMA connections that the controller sent to switches.
    pub announcements: Vec<Announcement>,
    /// For each injection of the plan (a fault on a flow at a switch): number of hits that the switch counted.
    pub fired: Vec<u64>,
    /// For each injection: number of packets whose key (such as a connection) had no register cell, as the switch counted them.
    pub keyless: Vec<u64>,
    /// Counts of each trigger of the scenario on its switch, in declared order.
    pub triggers: Vec<TriggerCount>,
    /// Frames that the switches and the recorder report as lost.
    pub losses: Vec<Loss>,
    /// Executions of faults of programs and switches.
    pub carried: Vec<DisruptionExecution>,
    /// Whether the P4 programs of the switches see the same time stamps of received frames as the captures.
    pub shares_stamps: bool,
}

impl Evidence {
    /// Number of frames that the run judged, and number of these frames that its folder keeps.
    pub fn frames(&self) -> (u64, u64) {
        let ports = self.kept.ports.iter();
        ports.fold((0, 0), |(passed, kept), port| {
            (passed + port.passed, kept + port.kept)
        })
    }

    /// When the workload began, in ns since 1970: when all switches had confirmed the first step (epoch 1); `None` if never.
    pub fn start_ns(&self) -> Option<u64> {
        let first = self.writes.iter().filter(|write| write.epoch == 1);
        first.map(|write| write.confirmed_ns).max()
    }

    /// Judges captured frames again. `ports`: switch and port number. `frames`: index in `ports` and frame, in order of time;
    /// frames of one port keep their order even if their times decrease. `hit` receives hits in the order of the log.
    ///
    /// # Errors
    ///
    /// Returns the first error of `frames`.
    pub fn prove<E>(
        &self,
        scenario: &Scenario,
        plan: &Plan,
        ports: &[(String, u32)],
        frames: impl IntoIterator<Item = Result<(usize, Frame), E>>,
        mut hit: impl FnMut(Hit),
    ) -> Result<Proof, E> {
        let mut in_order = InOrder::default();
        let digest = Digest::of_seed(plan.seed);
        let conditions = Conditions {
            digest,
            shares_stamps: self.shares_stamps,
        };
        let mut judge = Judge::new(scenario, plan, ports, conditions);
        self.losses.iter().for_each(|loss| judge.lose(loss.clone()));
        let outages = disruption::outages(scenario, &self.carried);
        outages.for_each(|outage| judge.down(&outage));
        let mut writes = self.writes.iter().peekable();
        let mut announcements = self.announcements.iter().peekable();
        let mut frames = frames.into_iter();
        let mut step = Vec::new();
        let mut now_ns: u64 = 0;
        let mut next = frames.next().transpose()?;
        while let Some((_, first)) = &next {
            // In a long period without frames no frame is undecided.
            let quiet_ns = first.at_ns.saturating_sub(LONG_NS) / STEP_NS * STEP_NS;
            now_ns = (now_ns + STEP_NS).max(quiet_ns);
            while let Some(write) = writes.next_if(|write| write.sent_ns < now_ns) {
                judge.write(write);
            }
            while let Some(announcement) =
                announcements.next_if(|announcement| announcement.sent_ns < now_ns)
            {
                judge.announce(announcement);
            }
            while let Some(passed) = next.take_if(|(_, frame)| frame.at_ns < now_ns) {
                step.push(passed);
                next = frames.next().transpose()?;
            }
            // As during the run, one port after another.
            step.sort_by_key(|(port, _)| *port);
            for (port, frame) in step.drain(..) {
                judge.see(port, &sight(digest, &frame));
            }
            judge.advance(now_ns, |hit| in_order.add(hit));
            let decided_ns = judge.decided_ns().min(now_ns);
            in_order.take(decided_ns).into_iter().for_each(&mut hit);
        }
        writes.for_each(|write| judge.write(write));
        announcements.for_each(|announcement| judge.announce(announcement));
        judge.end(|hit| in_order.add(hit));
        in_order.take(u64::MAX).into_iter().for_each(&mut hit);
        let proof = judge.conclude(&self.fired, &self.triggers, |hit| in_order.add(hit));
        in_order.take(u64::MAX).into_iter().for_each(&mut hit);
        Ok(proof)
    }
}

fn sight(digest: Digest, frame: &Frame) -> Sight<'_> {
    Sight {
        at_ns: frame.at_ns,
        way: match frame.direction {
            Direction::In => Way::In,
            Direction::Out => Way::Out,
        },
        wire_len: frame.wire_len,
        identity: digest.of(&frame.bytes, frame.wire_len),
        bytes: &frame.bytes,
    }
}
