//! Writes the counts of each fault every minute to the folder of a run, for users who watch a long run.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use proof::Observation;
use serde::Serialize;

use crate::experiment::Planned;

/// Name of the log of counts in the folder of a run; the log gets one line each minute.
pub const MINUTES: &str = "minutes.jsonl";

const MINUTE_NS: u64 = 60_000_000_000;

/// Counts of one fault since the run began, of frames that the judge has decided on.
#[derive(Debug, Default, Serialize)]
struct Counts {
    met: u64,
    observed: u64,
    missed: u64,
    collateral: u64,
}

#[derive(Serialize)]
struct Minute<'p> {
    /// Time of the line, in nanoseconds since 1970.
    at_ns: u64,
    faults: BTreeMap<&'p str, Counts>,
}

/// The log of counts of a running experiment. A run of less than a minute writes none.
pub struct MinuteLog {
    path: Option<PathBuf>,
    next_ns: u64,
}

impl MinuteLog {
    /// Creates the log in `folder` when the first line is due; without a folder, writes nothing.
    pub fn new(folder: Option<&Path>) -> MinuteLog {
        MinuteLog {
            path: folder.map(|folder| folder.join(MINUTES)),
            next_ns: 0,
        }
    }

    /// Writes a line if a minute has passed. A line that cannot be written is left out: the next line includes its counts.
    pub fn write(&mut self, planned: &Planned, so_far: &[Observation], now_ns: u64) {
        let Some(path) = self.path.as_ref().filter(|_| now_ns >= self.next_ns) else {
            return;
        };
        let is_first = self.next_ns == 0;
        self.next_ns = now_ns + MINUTE_NS;
        if is_first {
            return;
        }
        let mut faults: BTreeMap<&str, Counts> = BTreeMap::new();
        for (injection, seen) in planned.plan.injections.iter().zip(so_far) {
            let counts = faults.entry(&injection.fault).or_default();
            counts.met += seen.met;
            counts.observed += seen.observed;
            counts.missed += seen.missed;
            counts.collateral += seen.collateral;
        }
        let minute = Minute {
            at_ns: now_ns,
            faults,
        };
        let file = OpenOptions::new().create(true).append(true).open(path);
        if let (Ok(mut file), Ok(line)) = (file, serde_json::to_string(&minute)) {
            let _ = writeln!(file, "{line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Kind;

    #[test]
    fn each_minute_has_a_line_with_the_counts_so_far() {
        let text = "weir: 1\nname: t\ntopology: {star: {hosts: [a, b], switch: sw}}\nflows: {all: {from: a, to: b}}\n\
             faults: [{id: lost, flows: all, effect: drop}]\n";
        let scenario = scenario::load("t.yaml", text).unwrap();
        let planned = Planned::new(scenario, Kind::Embedded).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut log = MinuteLog::new(Some(folder.path()));
        let mut seen = vec![Observation::default(); planned.plan.injections.len()];
        for second in 0..150 {
            seen[0].met += 1;
            log.write(&planned, &seen, (1_000 + second) * 1_000_000_000);
        }
        let lines = std::fs::read_to_string(folder.path().join(MINUTES)).unwrap();
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(
            lines[1],
            "{\"at_ns\":1120000000000,\"faults\":{\"lost\":{\"met\":121,\"observed\":0,\"missed\":0,\"collateral\":0}}}"
        );
    }
}
