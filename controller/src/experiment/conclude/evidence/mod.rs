//! The evidence that a run left, and what it proves.

#[cfg(test)]
mod tests;

use proof::{
    Conditions, Digest, EpochWrite, Hit, Judge, Loser, Loss, Proof, STEP_NS, Sight, TriggerCount,
    Way,
};
use scenario::Plan;
use scenario::model::Scenario;
use scenario::telling::Telling;
use testbeds::bed::PortRecording;
use testbeds::capture::{Direction, Frame};

use crate::experiment::carry_out::disruption::{self, DisruptionExecution};
use crate::experiment::observe::captures::KeptFrames;
use crate::experiment::observe::hit_log::InOrder;

/// Period before the next frame in which the replay skips no step, in nanoseconds.
const LONG_NS: u64 = 600_000_000_000;

/// The evidence of a run: everything that proves its faults. It comes from the run, or from the folder that kept it.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Frames at the switches' ports, if a run is judged from its folder.
    pub recordings: Vec<PortRecording>,
    /// Counts of the frames that the folder keeps.
    pub kept: KeptFrames,
    /// The writes of epochs, in the order in which they were sent.
    pub writes: Vec<EpochWrite>,
    /// Announcements of RDMA connections to switches.
    pub announcements: Vec<Telling>,
    /// The switches' count of hits for each injection of the plan.
    pub fired: Vec<u64>,
    /// The switches' count of packets whose key had no cell, for each injection of the plan.
    pub keyless: Vec<u64>,
    /// The switches' count of each trigger of the scenario.
    pub triggers: Vec<TriggerCount>,
    /// Frames that the switches report as lost.
    pub losses: Vec<Loss>,
    /// Faults of programs and switches that the controller carried out.
    pub carried: Vec<DisruptionExecution>,
    /// Whether the switches' programs and the recordings have the same time stamps of received frames.
    pub shares_stamps: bool,
}

impl Evidence {
    /// Number of judged frames, and number of those that the folder keeps.
    pub fn frames(&self) -> (u64, u64) {
        let ports = self.kept.ports.iter();
        ports.fold((0, 0), |(passed, kept), port| {
            (passed + port.passed, kept + port.kept)
        })
    }

    /// When the workload began, in nanoseconds since 1970: its first step came into force then.
    pub fn start_ns(&self) -> Option<u64> {
        let first = self.writes.iter().filter(|write| write.epoch == 1);
        first.map(|write| write.confirmed_ns).max()
    }

    /// Compares what was observed with what had to happen. Also returns the hits of the faults, in the order of the log.
    pub fn prove(&self, scenario: &Scenario, plan: &Plan) -> (Proof, Vec<Hit>) {
        let mut in_order = InOrder::default();
        let mut recordings: Vec<&PortRecording> = self.recordings.iter().collect();
        recordings.sort_by_key(|port| (&port.switch, port.port));
        let ports = recordings
            .iter()
            .map(|port| (port.switch.clone(), port.port));
        let ports: Vec<(String, u32)> = ports.collect();
        let digest = Digest::of_seed(plan.seed);
        let conditions = Conditions {
            digest,
            shares_stamps: self.shares_stamps,
        };
        let mut judge = Judge::new(scenario, plan, &ports, conditions);
        for loss in lacking(&self.recordings).chain(self.losses.iter().cloned()) {
            judge.lose(loss);
        }
        let outages = disruption::outages(scenario, &self.carried);
        outages.for_each(|outage| judge.down(&outage));
        let mut writes = self.writes.iter().peekable();
        let mut announcements = self.announcements.iter().peekable();
        let mut frames: Vec<_> = recordings
            .iter()
            .map(|port| port.recording.frames.iter().peekable())
            .collect();
        let next_ns = |frame: Option<&&Frame>| frame.map(|frame| frame.at_ns);
        let mut now_ns: u64 = 0;
        while let Some(first_ns) = frames.iter_mut().filter_map(|of| next_ns(of.peek())).min() {
            // In a long period without frames no frame is undecided.
            now_ns = (now_ns + STEP_NS).max(first_ns.saturating_sub(LONG_NS) / STEP_NS * STEP_NS);
            while let Some(write) = writes.next_if(|write| write.sent_ns < now_ns) {
                judge.write(write);
            }
            while let Some(announcement) =
                announcements.next_if(|announcement| announcement.sent_ns < now_ns)
            {
                judge.tell(announcement);
            }
            for (port, frames) in frames.iter_mut().enumerate() {
                while let Some(frame) = frames.next_if(|frame| frame.at_ns < now_ns) {
                    judge.see(port, &sight(digest, frame));
                }
            }
            judge.advance(now_ns, |hit| in_order.add(hit));
        }
        writes.for_each(|write| judge.write(write));
        announcements.for_each(|announcement| judge.tell(announcement));
        judge.end(|hit| in_order.add(hit));
        let mut hits = in_order.take(u64::MAX);
        let proof = judge.conclude(&self.fired, &self.triggers, |hit| in_order.add(hit));
        hits.extend(in_order.take(u64::MAX));
        (proof, hits)
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

/// Losses of the recordings.
fn lacking(recordings: &[PortRecording]) -> impl Iterator<Item = Loss> {
    let at = |port: &PortRecording| {
        let loss = |frames, by| Loss {
            since_ns: None,
            switch: port.switch.clone(),
            port: Some(port.port),
            frames,
            by,
        };
        [
            loss(port.recording.lost, Loser::Recorder),
            loss(port.recording.over_limit, Loser::Limit),
            loss(port.undelivered, Loser::Link),
        ]
    };
    let losses = recordings.iter().flat_map(at);
    losses.filter(|loss| loss.frames > 0)
}
