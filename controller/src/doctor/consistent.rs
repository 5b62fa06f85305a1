//! Finds contradictions in the table entries with which a switch sums jobs.

use std::collections::BTreeMap;

use host_agent::doctor::Finding;
use scenario::model::topology::Mac;

use super::switch_jobs::{Destination, SummedJob, SwitchJobs};
use super::workers;

/// Finds contradictions in a switch's table entries. `pairs`: number of the switch's slots, each a pair of cells, if known.
pub fn judge(switch: &str, told: &SwitchJobs, pairs: Option<u32>) -> Vec<Finding> {
    let about = format!("switch {switch}");
    if !told.sums {
        let text = "its program sums nothing: it forwards frames of jobs unchanged";
        let hint =
            "load a program that sums: `weir plan --emit-p4` writes the program of a scenario";
        return vec![Finding::wrong(&about, text).hint(hint)];
    }
    if told.jobs.is_empty() && told.strays.is_empty() && told.guards {
        let text = "its program is loaded, but no job is admitted";
        return vec![Finding::fine(&about, text).hint("admit a job with `weir job admit`")];
    }
    if told.jobs.is_empty() {
        return vec![Finding::wrong(
            &about,
            "it has no entries for jobs, so it sums nothing",
        )];
    }
    let mut found = Vec::new();
    for stray in &told.strays {
        let text =
            format!("job {stray} has members, but no entry sums it: its frames pass unchanged");
        found.push(Finding::wrong(&about, text));
    }
    for job in told.jobs.values() {
        let mut wrong = members(job);
        wrong.extend(slots(job, told, pairs));
        wrong.extend(addresses(job, told));
        let number = job.number;
        if wrong.is_empty() {
            let text = format!(
                "job {number}: {} members, {} slots from {}, consistent",
                job.expected().count(),
                job.window,
                job.base
            );
            found.push(Finding::fine(&about, text));
        }
        let findings = wrong.into_iter();
        found.extend(findings.map(|text| Finding::wrong(&about, format!("job {number}: {text}"))));
    }
    found
}

fn members(job: &SummedJob) -> Vec<String> {
    let mut wrong = Vec::new();
    if job.all == 0 {
        wrong.push("it has no members: no chunk is ever complete".to_owned());
    }
    let without: Vec<u16> = job
        .expected()
        .filter(|one| job.ports(*one).is_empty())
        .collect();
    if !without.is_empty() {
        let text = format!(
            "no entry names a port of {}: the switch accepts no updates from there, so no chunk is ever complete",
            workers(&without)
        );
        wrong.push(text);
    }
    for (number, member) in &job.members {
        let bit = 1u64.checked_shl(u32::from(*number)).unwrap_or(0);
        if job.all & bit == 0 {
            let text = format!(
                "worker {number} is a member, but the bitmap of a complete chunk lacks its bit: after it has sent, no chunk is ever complete"
            );
            wrong.push(text);
            continue;
        }
        for (port, set) in member.updates.iter().filter(|(_, set)| **set != bit) {
            let text = format!(
                "worker {number}'s updates from port {port} set the bits {set:#x}, not {bit:#x}"
            );
            wrong.push(text);
        }
        for (port, set) in &member.questions {
            if *set != 0 {
                let text = format!(
                    "the switch treats requests of worker {number} from port {port} as updates: they set the bits {set:#x}"
                );
                wrong.push(text);
            }
        }
        for port in member.updates.keys() {
            if !member.questions.contains_key(port) {
                let text = format!(
                    "worker {number} may send updates from port {port}, but no requests: it cannot request a lost sum again"
                );
                wrong.push(text);
            }
        }
    }
    wrong
}

fn slots(job: &SummedJob, told: &SwitchJobs, pairs: Option<u32>) -> Vec<String> {
    let mut wrong = Vec::new();
    let SummedJob {
        base,
        window,
        slot_mask,
        ..
    } = *job;
    if !window.is_power_of_two() {
        wrong.push(format!("its window of {window} is not a power of two"));
    } else if slot_mask != window - 1 {
        wrong.push(format!(
            "its slot mask is {slot_mask:#x}, but its window is {window}"
        ));
    }
    let end = u64::from(base) + u64::from(window);
    if let Some(pairs) = pairs.filter(|pairs| end > u64::from(*pairs)) {
        wrong.push(format!(
            "its slots end at {end}, but the switch has only {pairs}"
        ));
    }
    for other in told.jobs.values().filter(|other| other.number < job.number) {
        let theirs = u64::from(other.base) + u64::from(other.window);
        if u64::from(base) < theirs && u64::from(other.base) < end {
            wrong.push(format!("it shares slots with job {}", other.number));
        }
        if job.number % 256 == other.number % 256 {
            let text = format!(
                "its addresses are those of job {}: the numbers of the jobs are equal mod 256",
                other.number
            );
            wrong.push(text);
        }
    }
    wrong
}

fn addresses(job: &SummedJob, told: &SwitchJobs) -> Vec<String> {
    let mut wrong = Vec::new();
    let way = |mac: Mac| told.ways.get(&(mac.value() as u64)).copied();
    let number = job.number;
    let (group, sum, question) = (
        Mac::of_job(number),
        Mac::of_sum(number),
        Mac::of_question(number),
    );
    let mut to_all = |mac: Mac, what: &str| match way(mac) {
        None => {
            wrong.push(format!(
                "no entry forwards {mac}: {what} does not reach its members"
            ));
            None
        }
        Some(Destination::Group(group)) => Some(group),
        Some(other) => {
            let destination = match other {
                Destination::Port(port) => format!("to port {port}"),
                _ => "back".to_owned(),
            };
            wrong.push(format!(
                "{mac} goes {destination}, not to a multicast group: {what} does not reach its members"
            ));
            None
        }
    };
    let mut groups = BTreeMap::new();
    // A parameter server's job has neither of the two: its workers send to the server.
    let is_all_reduce = way(sum).is_some() || way(question).is_some();
    // Frames to the group come from a parameter server, or from the switch above. The only switch of an all-reduce multicasts
    // the sum itself, and needs no entry.
    let from_outside = !is_all_reduce || job.up.is_some();
    if (from_outside || way(group).is_some())
        && let Some(group) = to_all(group, "the result")
    {
        groups.insert(group, "the result");
    }
    if is_all_reduce {
        if let Some(group) = to_all(sum, "its sum") {
            groups.entry(group).or_insert("its sum");
        }
        if way(question) != Some(Destination::Back) {
            let text = format!(
                "{question} does not go back to the sender: requests of ranks get no reply"
            );
            wrong.push(text);
        }
    }
    for (group, what) in groups {
        let Some(ports) = told.groups.get(&group) else {
            wrong.push(format!(
                "multicast group {group} does not exist: {what} reaches no member"
            ));
            continue;
        };
        let expected = job.expected();
        let without: Vec<(u16, u32)> = expected
            .flat_map(|one| job.ports(one).into_iter().map(move |port| (one, port)))
            .filter(|(_, port)| !ports.contains(port))
            .collect();
        for (worker, port) in without {
            wrong.push(format!(
                "port {port} is not in multicast group {group}: {what} does not reach worker {worker}"
            ));
        }
    }
    wrong
}
