//! Finds stuck chunks: which contributions they lack, for how long they have been stuck, and which ranks wait for them.

use std::collections::BTreeSet;
use std::time::Duration;

use host_agent::doctor::Finding;
use host_agent::metrics::{Status, Waits};
use scenario::model::topology::Mac;

use super::cells::Cell;
use super::ranks::{RankReadings, named};
use super::switch_jobs::SummedJob;
use super::{SwitchReadings, spoken, workers};

const ASK_RANKS: &str = "add --rank IP:PORT for each rank: the doctor then shows which ranks wait, and what the missing ones do";

/// Finds chunks and ranks that have made no progress between the two readings.
pub fn judge(switches: &[SwitchReadings], ranks: &[RankReadings], apart: Duration) -> Vec<Finding> {
    let mut found = Vec::new();
    // Chunks that a finding of a switch names, by job: ranks that wait for these need no finding.
    let mut told: BTreeSet<(u16, u32)> = BTreeSet::new();
    for switch in switches {
        for job in switch.after.told.jobs.values() {
            let stuck = stuck(switch, job);
            told.extend(stuck.iter().map(|cell| (job.number, cell.chunk)));
            found.extend(cells(switch, job, &stuck, ranks, apart));
        }
    }
    for rank in ranks {
        let Some((status, waits)) = waiting(rank) else {
            continue;
        };
        if !told.contains(&(status.job, waits.chunk)) {
            found.push(alone(status, waits, switches));
        }
    }
    found
}

/// A rank's second status and the chunk that it waits for; `None` unless the rank waited for this chunk in both readings.
fn waiting(rank: &RankReadings) -> Option<(&Status, &Waits)> {
    let (before, after) = (rank.before.as_ref().ok()?, rank.after.as_ref().ok()?);
    let waits = after.waits.as_ref()?;
    let before = before.waits.as_ref()?;
    (before.chunk == waits.chunk).then_some((after, waits))
}

/// Cells of a job's incomplete chunks that got no contribution between the two readings of the switch.
fn stuck(switch: &SwitchReadings, job: &SummedJob) -> Vec<Cell> {
    let (Ok(before), Ok(after)) = (&switch.before.cells, &switch.after.cells) else {
        return Vec::new();
    };
    let before = before.incomplete(job);
    let after = after.incomplete(job).into_iter();
    after.filter(|cell| before.contains(cell)).collect()
}

/// Status of each rank of a job that has answered.
fn members(ranks: &[RankReadings], job: u16) -> impl Iterator<Item = &Status> {
    let all = ranks.iter().filter_map(RankReadings::status);
    all.filter(move |status| status.job == job)
}

/// Reports a job's stuck cells. If several chunks lack contributions of the same members, only the oldest is described in full.
fn cells(
    switch: &SwitchReadings,
    job: &SummedJob,
    stuck: &[Cell],
    ranks: &[RankReadings],
    apart: Duration,
) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut done: BTreeSet<Vec<u16>> = BTreeSet::new();
    for cell in stuck {
        let missing = job.missing(cell.bitmap);
        if !done.insert(missing.clone()) {
            continue;
        }
        let same = stuck
            .iter()
            .filter(|other| job.missing(other.bitmap) == missing);
        found.push(cell_waits(
            switch,
            job,
            *cell,
            same.count() - 1,
            ranks,
            apart,
        ));
    }
    found
}

fn cell_waits(
    switch: &SwitchReadings,
    job: &SummedJob,
    cell: Cell,
    others: usize,
    ranks: &[RankReadings],
    apart: Duration,
) -> Finding {
    let about = format!("switch {}", switch.name);
    let Cell {
        slot,
        chunk,
        bitmap,
    } = cell;
    let missing = job.missing(bitmap);
    let place = format!("slot {slot} of job {}", job.number);
    let mut known = members(ranks, job.number);
    let is_known = known.next().is_some();
    let waits = members(ranks, job.number).filter_map(|status| {
        let waits = status.waits.as_ref().filter(|waits| waits.chunk == chunk)?;
        Some(waits.since_ms)
    });
    let longest = waits.max_by(f64::total_cmp);
    let all = members(ranks, job.number).filter_map(|status| status.rank);
    let all: BTreeSet<u16> = all.collect();
    let job_ranks = members(ranks, job.number).map(|status| status.ranks).max();
    if longest.is_none() && job_ranks.is_some_and(|ranks| all.len() == usize::from(ranks)) {
        let text = format!(
            "{place} holds chunk #{chunk} without {}, and no rank waits for it: an earlier use of the job left it",
            workers(&missing)
        );
        return Finding::note(&about, text);
    }
    if longest.is_none() && is_quiet(switch, job, bitmap) {
        let text = format!(
            "{place} holds chunk #{chunk} without {}, and within {} no rank sent anything that could wait for it: the job \
             has finished, or sums from host to host now",
            workers(&missing),
            spoken(apart)
        );
        return Finding::note(&about, text).hint(ASK_RANKS);
    }
    let since = match longest {
        Some(since_ms) => format!("for {}", spoken(Duration::from_secs_f64(since_ms / 1e3))),
        None => format!("for more than {}", spoken(apart)),
    };
    let seen: Vec<String> = missing
        .iter()
        .map(|one| last_seen(switch, job, *one, apart))
        .collect();
    let mut text = format!(
        "{place} has waited for {} {since}, {}",
        workers(&missing),
        seen.join("; ")
    );
    text += &format!(" (chunk #{chunk}");
    match others {
        0 => {}
        1 => text += ", and one more slot the same",
        _ => text += &format!(", and {others} more slots the same"),
    }
    text += ")";
    let answers = missing
        .iter()
        .filter_map(|one| of_member(ranks, job, *one, chunk));
    let answers: Vec<String> = answers.collect();
    if !answers.is_empty() {
        text += &format!(". {}", answers.join(". "));
    }
    let finding = Finding::wrong(&about, text);
    match is_known {
        true => finding,
        false => finding.hint(ASK_RANKS),
    }
}

/// Whether the chunk's contributors sent the switch no frame between its two readings. Then no rank waits for the chunk, as a
/// waiting rank repeats its request. `false` if the switch has no counts, and for workers of a parameter server.
fn is_quiet(switch: &SwitchReadings, job: &SummedJob, contributed: u64) -> bool {
    if let (Some(before), Some(after)) = (&switch.before.guard, &switch.after.guard)
        && after.knows(job.number)
    {
        return before.passed(job.number) == after.passed(job.number);
    }
    let question = Mac::of_question(job.number).value() as u64;
    if !switch.after.told.ways.contains_key(&question) {
        return false;
    }
    let waiting = job.expected().filter(|one| contributed >> one & 1 == 1);
    let mut ports = waiting.flat_map(|one| job.ports(one)).peekable();
    let (before, after) = (&switch.before.arrived, &switch.after.arrived);
    ports.peek().is_some()
        && ports.all(|port| before.contains_key(&port) && before.get(&port) == after.get(&port))
}

/// Describes a member's ports, its newest chunk in the register cells, and how many frames it sent between the readings.
fn last_seen(switch: &SwitchReadings, job: &SummedJob, member: u16, apart: Duration) -> String {
    let ports = job.ports(member);
    let name: Vec<String> = ports.iter().map(u32::to_string).collect();
    if ports.is_empty() {
        return "whose port is unknown".to_owned();
    }
    let by = format!("on port {}", name.join(" or "));
    let last = switch.after.cells.as_ref().ok();
    let last = last.and_then(|cells| cells.last_of(job, member));
    let mut told = match last {
        Some(chunk) => format!("last seen {by} with chunk #{chunk}"),
        None => format!("never seen {by}"),
    };
    let (before, after) = (&switch.before.arrived, &switch.after.arrived);
    let came = ports.iter().map(|port| {
        let (before, after) = (before.get(port)?, after.get(port)?);
        Some(after.saturating_sub(*before))
    });
    if let Some(came) = came.sum::<Option<u64>>() {
        told += &match came {
            0 => format!(", from which no frame arrived within {}", spoken(apart)),
            1 => format!(", from which 1 frame arrived within {}", spoken(apart)),
            _ => format!(
                ", from which {came} frames arrived within {}",
                spoken(apart)
            ),
        };
    }
    told
}

/// Describes the status of a rank whose contribution to a chunk is missing; `None` if this rank did not answer.
fn of_member(ranks: &[RankReadings], job: &SummedJob, member: u16, chunk: u32) -> Option<String> {
    let expected = job.expected().count() as u8;
    let mut all = members(ranks, job.number);
    let status = all.find(|status| match status.child {
        // In a tree, the same number belongs to another rank at each switch.
        Some((child, siblings)) => {
            child == member && siblings == expected && u16::from(siblings) == status.ranks
        }
        None => status.rank == Some(member),
    })?;
    let who = status.who();
    let who = format!("{}{}", who[..1].to_uppercase(), &who[1..]);
    Some(match (&status.failed, &status.waits) {
        (Some(why), _) => format!("{who} has given up: {why}"),
        (None, None) => format!(
            "{who} runs (process {}), but has contributed nothing",
            status.process
        ),
        (None, Some(waits)) if waits.chunk == chunk => {
            format!("{who} has sent its part: the frames do not arrive at this switch")
        }
        (None, Some(waits)) => format!("{who} is at chunk #{}", waits.chunk),
    })
}

/// Reports a rank that waits for a chunk that no switch reports as stuck.
fn alone(status: &Status, waits: &Waits, switches: &[SwitchReadings]) -> Finding {
    let about = named(status);
    let Waits {
        chunk,
        slot,
        since_ms,
        misses,
    } = waits;
    let since = spoken(Duration::from_secs_f64(since_ms / 1e3));
    let place = format!("slot {slot} of job {}", status.job);
    let mut at = switches.iter().filter_map(|switch| {
        let job = switch.after.told.jobs.get(&status.job)?;
        let cells = switch.after.cells.as_ref().ok()?;
        Some((switch, job, cells.for_chunk(job, *chunk)?))
    });
    // The topmost switch reports most; of the switches below, the first one is named.
    let topmost = at.clone().find(|(_, job, _)| job.up.is_none());
    if let Some((switch, job, cell)) = topmost.or_else(|| at.next()) {
        let name = &switch.name;
        let ahead = chunk.wrapping_sub(cell.chunk) as i32;
        let text = if ahead < 0 {
            format!(
                "{place} has waited {since} for chunk #{chunk}, but holds #{} at switch {name}: another use of the job has begun",
                cell.chunk
            )
        } else if ahead > 0 || cell.bitmap == 0 {
            format!(
                "{place} has waited {since} for chunk #{chunk}, of which switch {name} has nothing: the ranks' frames do not arrive there, or the switch drops them"
            )
        } else if cell.bitmap & job.all == job.all && job.up.is_some() {
            format!(
                "{place} has waited {since} for chunk #{chunk}, which is complete at switch {name}: the switch above has not \
                 answered"
            )
        } else if cell.bitmap & job.all == job.all {
            format!(
                "{place} has waited {since} for chunk #{chunk}, which is complete at switch {name}: the switch's frames do not \
                 arrive here"
            )
        } else {
            format!(
                "{place} has waited {since} for chunk #{chunk}, to which a rank contributed just now at switch {name}"
            )
        };
        return Finding::wrong(&about, text);
    }
    let text = match &misses[..] {
        [] => format!(
            "{place} has waited {since} for chunk #{chunk}, and the switch has not reported whose part is missing"
        ),
        some => format!(
            "{place} has waited for {} for {since} (chunk #{chunk}), as the switch reports",
            workers(some)
        ),
    };
    Finding::wrong(&about, text).hint("add --switch NAME=IP:PORT: the switch knows more")
}
