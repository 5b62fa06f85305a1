//! Passes confirmed steps (writes), announcements of RDMA connections and outages of switches to the judge's thread.

use std::sync::{Mutex, PoisonError};

use proof::{EpochWrite, Outage};
use scenario::plan::announcement::Announcement;

/// Confirmed steps, announced RDMA connections and outages that the judge has not taken yet.
#[derive(Debug, Default)]
pub struct JudgeLog(Mutex<Pending>);

#[derive(Debug, Default)]
struct Pending {
    /// When the controller began to write the present step, in nanoseconds since 1970; `None` if no step is being written.
    writing_ns: Option<u64>,
    writes: Vec<EpochWrite>,
    announcements: Vec<Announcement>,
    outages: Vec<Outage>,
}

/// Confirmed steps, announced RDMA connections and outages since the judge took the last ones.
#[derive(Debug)]
pub struct LogEntries {
    /// Steps of the timeline (epochs) that the switches have confirmed.
    pub writes: Vec<EpochWrite>,
    /// Announcements of RDMA connections to switches.
    pub announcements: Vec<Announcement>,
    /// Outages of switches that began or ended.
    pub outages: Vec<Outage>,
    /// Time in nanoseconds since 1970 before which all sent writes and announcements are in this value or an earlier one.
    pub until_ns: u64,
}

impl JudgeLog {
    /// Records that the controller begins to write a step to the switches.
    pub fn begin(&self) {
        let mut untaken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock: any entry sent from now on is later.
        untaken.writing_ns = Some(super::now_ns());
    }

    /// Records that the switches have confirmed the step, with the time of each switch's write.
    pub fn end(&self, writes: &[EpochWrite]) {
        let mut untaken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        untaken.writes.extend_from_slice(writes);
        untaken.writing_ns = None;
    }

    /// Records announcements of RDMA connections that switches have received.
    pub fn announce(&self, announcements: &[Announcement]) {
        let mut untaken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        untaken.announcements.extend_from_slice(announcements);
    }

    /// Records that an outage of a switch began or ended.
    pub fn down(&self, outage: Outage) {
        let mut untaken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        untaken.outages.push(outage);
    }

    /// Takes all entries; they are complete up to `until_ns`, or up to the start of a step that is being written.
    pub fn take(&self, until_ns: u64) -> LogEntries {
        let mut untaken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let until_ns = untaken.writing_ns.unwrap_or(until_ns).min(until_ns);
        LogEntries {
            writes: std::mem::take(&mut untaken.writes),
            announcements: std::mem::take(&mut untaken.announcements),
            outages: std::mem::take(&mut untaken.outages),
            until_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proof::{Conditions, Digest, OutageCount};
    use testbeds::capture::Handed;

    use super::*;
    use crate::experiment::Planned;
    use crate::experiment::observe::judging::{JudgedRun, Judging, SwitchCounts};
    use crate::target::Kind;

    #[test]
    fn the_judge_of_a_live_run_receives_the_beginning_and_the_end_of_an_outage() {
        let text = "weir: 1\nname: t\ntopology: {star: {hosts: [a, b], switch: sw}}\nworkload: {idle: {for: 9s}}\n\
             timeline: [{name: down, at: 1s, for: 1s}]\nfaults: [{id: reboot, effect: {restart: sw}, during: down}]\n";
        let scenario = scenario::load("t.yaml", text).expect("a scenario");
        let planned = Planned::new(scenario, Kind::Embedded).expect("a plan");
        let conditions = Conditions {
            digest: Digest::of_seed(planned.plan.seed),
            shares_stamps: false,
        };
        let ports = [("sw".to_owned(), 1), ("sw".to_owned(), 2)];
        let log = Arc::new(JudgeLog::default());
        let judging =
            Judging::begin(&planned, &ports, conditions, Arc::clone(&log), None).expect("a thread");
        let outage = |until_ns| Outage {
            switch: "sw".to_owned(),
            from_ns: 1_000_000_000,
            until_ns,
        };
        log.down(outage(None));
        judging.sink()(Handed::Until(1_500_000_000));
        log.down(outage(Some(2_000_000_000)));
        let JudgedRun { proof, .. } = judging.end(SwitchCounts {
            fired: Vec::new(),
            triggers: Vec::new(),
            losses: Vec::new(),
        });
        let count = OutageCount {
            outage: outage(Some(2_000_000_000)),
            frames: Some(0),
        };
        assert_eq!(proof.outages, [count]);
    }
}
