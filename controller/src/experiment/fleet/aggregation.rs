//! Builds the table entries with which a switch of a scenario sums a job's updates.

use p4lang::runtime::TableEntry;
use scenario::model::Scenario;
use scenario::model::job::{Job, Summing};
use scenario::plan::SwitchPlan;

use crate::jobs::contacts::{self, Contact};
use crate::jobs::entries::{self, Summed};
use crate::target::Item;

/// Table entries that make a switch sum a job: the job's entry, its members with the ports that lead to them, and, if the
/// program checks senders, the ports that may send for the job.
pub fn aggregation_entries(
    scenario: &Scenario,
    switch: &SwitchPlan,
    job: &Job,
    summing: &Summing,
) -> Vec<TableEntry> {
    let Some(summed) = summed(scenario, job, summing) else {
        return Vec::new();
    };
    let mut told = summed.entries();
    if job.is_rdma() {
        told.extend(contacts(scenario, job, summing, &summed));
    }
    if switch.guards_jobs {
        told.push(entries::lease(job.number, None));
        told.extend(summed.senders());
    }
    told
}

/// Table entries by which a switch recognizes the RDMA queue pairs of a job's ranks.
fn contacts(scenario: &Scenario, job: &Job, summing: &Summing, summed: &Summed) -> Vec<TableEntry> {
    let ranks = summing
        .children
        .iter()
        .zip(&summed.ports)
        .zip(job.contact..);
    let ranks = ranks.filter_map(|((rank, port), number)| {
        let host = scenario.topology.host(rank)?;
        Some(Contact {
            number,
            port: *port,
            mac: host.mac,
            ip: host.ip,
        })
    });
    contacts::entries(job.number, job.window, &ranks.collect::<Vec<_>>())
}

/// Meter configurations that limit the rates of the jobs on a switch; empty if the program does not check senders.
pub fn rates(scenario: &Scenario, switch: &SwitchPlan) -> Vec<Item> {
    if !switch.guards_jobs {
        return Vec::new();
    }
    let here = scenario.jobs.iter().filter_map(|job| {
        let summed = summed(scenario, job, job.on(&switch.name)?)?;
        Some(summed.rate(job.rate.as_ref().map(|rate| rate.value)))
    });
    here.collect()
}

/// The slots and ports of a job on one switch; `None` if a port is missing in the topology.
pub(crate) fn summed(scenario: &Scenario, job: &Job, summing: &Summing) -> Option<Summed> {
    let port_to = |node: &String| Some(scenario.topology.next_hop(&summing.switch, node)?.number);
    let up = match &summing.parent {
        Some((parent, number)) => Some((port_to(parent)?, *number)),
        None => None,
    };
    let planned = scenario.gradients.as_ref();
    let ports: Option<Vec<u32>> = match planned.and_then(|planned| planned.part(job.number)) {
        // Gradients arrive on the routes of their plan.
        Some(part) => part.members.iter().map(|member| member.port).collect(),
        None => summing.children.iter().map(port_to).collect(),
    };
    Some(Summed {
        number: job.number,
        base: job.base,
        window: job.window,
        ports: ports?,
        up,
        closes: job.deadline.is_some(),
    })
}

/// Number of chunks with values in one iteration of the training.
pub fn chunks_per_iteration() -> usize {
    host_agent::train::PARAMETERS.div_ceil(wire::VALUES_PER_PACKET)
}
