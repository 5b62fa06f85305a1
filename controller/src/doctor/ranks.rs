//! Finds ranks that are unreachable, have failed or hang, and ranks of one job whose settings differ.

use std::collections::BTreeMap;
use std::time::Duration;

use host_agent::doctor::Finding;
use host_agent::metrics::{Role, Status};

/// Maximum age of a rank's status. A rank with an older one is reported: its thread computes or hangs.
const LATE: Duration = Duration::from_millis(1_000);

/// The answers of a rank to two requests for its status.
#[derive(Debug, Clone)]
pub struct RankReadings {
    /// Address at which the rank serves its metrics.
    pub address: String,
    /// The rank's first answer, or the reason why there was none.
    pub before: Result<Status, String>,
    /// The rank's second answer, or the reason why there was none.
    pub after: Result<Status, String>,
}

impl RankReadings {
    /// The rank's second answer; `None` if it did not answer.
    pub fn status(&self) -> Option<&Status> {
        self.after.as_ref().ok()
    }
}

/// Finds errors of each rank, and differences between the ranks of each job.
pub fn judge(asked: &[RankReadings]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut jobs: BTreeMap<u16, Vec<&Status>> = BTreeMap::new();
    for one in asked {
        match &one.after {
            Err(why) => found.push(Finding::wrong(
                &format!("rank at {}", one.address),
                why.clone(),
            )),
            Ok(status) => {
                found.extend(alone(status));
                jobs.entry(status.job).or_default().push(status);
            }
        }
    }
    for (job, members) in jobs {
        found.extend(together(job, &members));
    }
    found
}

/// Name of a rank with its job, for a finding: `worker 1 of job 7`.
pub fn named(status: &Status) -> String {
    format!("{} of job {}", status.who(), status.job)
}

fn alone(status: &Status) -> Vec<Finding> {
    let about = named(status);
    let mut found = Vec::new();
    if let Some(why) = &status.failed {
        let text = format!("it has given up: {why}");
        found.push(Finding::wrong(&about, text).hint("start the job again"));
    } else if status.age_ms >= LATE.as_secs_f64() * 1e3 {
        let age = super::spoken(Duration::from_secs_f64(status.age_ms / 1e3));
        let text = format!(
            "its status is {age} old: process {} computes or hangs",
            status.process
        );
        found.push(match status.role {
            // The thread of a rank only answers requests.
            Role::Rank => Finding::wrong(&about, text),
            Role::Worker | Role::Server => Finding::note(&about, text),
        });
    } else {
        let text = match &status.waits {
            None => "it runs, and has no operation in progress".to_owned(),
            Some(waits) => format!("it runs, and sums chunk #{}", waits.chunk),
        };
        found.push(Finding::fine(&about, text));
    }
    let count = |name: &str| status.counters.get(name).copied().unwrap_or(0);
    let lost = count("weir_lost_frames_total");
    if lost > 0 {
        let text = format!("the kernel dropped {lost} frames before it read them");
        let hint = "the host is too slow, or the receive buffer too small: sysctl net.core.rmem_max=16777216";
        found.push(Finding::note(&about, text).hint(hint));
    }
    found
}

fn together(job: u16, members: &[&Status]) -> Vec<Finding> {
    let about = format!("job {job}");
    let mut found = Vec::new();
    let mut by_rank: BTreeMap<Option<u16>, Vec<&Status>> = BTreeMap::new();
    for status in members {
        by_rank.entry(status.rank).or_default().push(status);
    }
    for same in by_rank.values().filter(|same| same.len() > 1) {
        let mut processes: Vec<u32> = same.iter().map(|status| status.process).collect();
        processes.sort_unstable();
        processes.dedup();
        let mut addresses: Vec<&str> = same
            .iter()
            .filter_map(|status| status.address.as_deref())
            .collect();
        addresses.sort_unstable();
        addresses.dedup();
        // Process numbers are local to a host: two hosts may have equal ones, and one process may be reached by two names.
        if processes.len() > 1 || addresses.len() > 1 {
            let text = format!(
                "{} runs {} times, at {}",
                same[0].who(),
                same.len(),
                addresses.join(" and ")
            );
            found.push(Finding::wrong(&about, text).hint("end all but one"));
        }
    }
    let Some(first) = members.first() else {
        return found;
    };
    for other in members {
        if other.ranks != first.ranks {
            let text = format!(
                "{} reports a job of {} ranks, {} one of {}",
                first.who(),
                first.ranks,
                other.who(),
                other.ranks
            );
            found.push(Finding::wrong(&about, text));
        }
        if other.window != first.window {
            let text = format!(
                "{} reports a window of {}, {} one of {}",
                first.who(),
                first.window,
                other.who(),
                other.window
            );
            found.push(Finding::wrong(&about, text));
        }
    }
    found
}
