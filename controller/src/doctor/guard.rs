//! Finds jobs whose frames a switch drops: the job's lease has ended, or the frame's port belongs to no rank of the job.

use std::time::Duration;

use admission::{Grant, State};
use host_agent::doctor::Finding;
use scenario::plan::names::guard::{Guarded, outcome_cell};

use super::{SwitchReadings, spoken};

/// State of admitted jobs and dropped frames on a switch that `weir job setup` has prepared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardReading {
    /// Jobs that `weir job` admitted, including ended jobs whose numbers are still reserved.
    pub grants: Vec<Grant>,
    /// The switch's clock in nanoseconds; `None` if the switch does not report it.
    pub now_ns: Option<u64>,
    /// Number of each job's frames by outcome (passed, dropped …), since the job was admitted; `outcome_cell` gives the index.
    pub outcomes: Vec<u64>,
    /// By port: number of frames that arrived there for a job with no rank behind this port, since the program was loaded.
    pub strangers: Vec<u64>,
}

impl GuardReading {
    /// Whether `weir job` admitted this job on the switch.
    pub(super) fn knows(&self, job: u16) -> bool {
        self.grants.iter().any(|grant| grant.number == job)
    }

    /// Number of frames of a job that the switch let pass.
    pub(super) fn passed(&self, job: u16) -> u64 {
        self.count(job, Guarded::Passed)
    }

    fn count(&self, job: u16, outcome: Guarded) -> u64 {
        let cell = usize::try_from(outcome_cell(job, outcome)).ok();
        cell.and_then(|cell| self.outcomes.get(cell))
            .copied()
            .unwrap_or(0)
    }
}

/// Finds jobs that send after their lease, and ranks that send through a wrong port; `apart`: time between the two readings.
pub fn judge(switch: &SwitchReadings, apart: Duration) -> Vec<Finding> {
    let about = format!("switch {}", switch.name);
    let apart = spoken(apart);
    let mut found = Vec::new();
    let foreign = switch.after.foreign.saturating_sub(switch.before.foreign);
    if foreign > 0 {
        let text = format!(
            "the switch dropped {foreign} frames within {apart}: they name a rank that is behind another port"
        );
        let hint = "two ranks have each other's numbers, or a rank runs on another rank's machine: \
                    `weir job list` shows the port of each rank";
        found.push(Finding::wrong(&about, text).hint(hint));
    } else if switch.after.foreign > 0 {
        let text = format!(
            "the switch dropped {} frames that name a rank behind another port, none of them within {apart}",
            switch.after.foreign
        );
        found.push(Finding::note(&about, text));
    }
    let (Some(before), Some(after)) = (&switch.before.guard, &switch.after.guard) else {
        return found;
    };
    for grant in &after.grants {
        let job = format!("job {} (`{}`)", grant.number, grant.name);
        if let Some((now_ns, until_ns)) = after.now_ns.zip(grant.until_ns)
            && grant.state(now_ns) != State::Running
        {
            let ago = spoken(Duration::from_nanos(now_ns.saturating_sub(until_ns)));
            let came = after.count(grant.number, Guarded::Lapsed)
                + after.count(grant.number, Guarded::Stranger);
            let text = format!("{job}: its lease ran out, or it was released, {ago} ago");
            found.push(match came {
                0 => Finding::note(&about, text),
                _ => Finding::wrong(
                    &about,
                    format!("{text}; the switch has dropped {came} frames that ranks sent since"),
                )
                .hint(
                    "admit the job again (`weir job admit`) and start its ranks with the options that it prints; \
                     `weir job keep` renews a lease in time",
                ),
            });
            continue;
        }
        let total = after.count(grant.number, Guarded::Stranger);
        let now = total.saturating_sub(before.count(grant.number, Guarded::Stranger));
        let ports = ports(grant.ports.iter().copied());
        if now > 0 {
            let rising = (0..)
                .zip(after.strangers.iter().enumerate())
                .filter(|(_, (at, count))| {
                    **count > before.strangers.get(*at).copied().unwrap_or(0)
                })
                .map(|(port, _)| port);
            let text = format!(
                "{job}: the switch dropped {now} of its frames within {apart}: they arrived from {}, but its ranks are behind {ports}",
                self::ports(rising)
            );
            let hint = "a rank is behind another port than the job was admitted for: admit the job with the ports of its ranks";
            found.push(Finding::wrong(&about, text).hint(hint));
        } else if total > 0 {
            let text = format!(
                "{job}: {total} of its frames arrived from ports other than {ports}, none of them within {apart}"
            );
            found.push(Finding::note(&about, text));
        }
    }
    found
}

/// Formats port numbers with their noun: `port 1`, or `ports 1, 2, 5`.
fn ports(numbers: impl Iterator<Item = u32>) -> String {
    let all: Vec<String> = numbers.map(|port| port.to_string()).collect();
    match all.len() {
        1 => format!("port {}", all[0]),
        _ => format!("ports {}", all.join(", ")),
    }
}
