//! Builds a switch's forwarding: table entries and multicast groups for hosts, broadcasts, jobs and copies of packets.

use p4lang::runtime::{ActionCall, FieldMatch, Match, MulticastGroup, Replica, TableEntry};
use parser_gen::engine::Copies;

use super::names::{JOB, forward, group};
use super::runtime::call;
use super::{TargetModel, engine, gradients, multipath};
use crate::model::Scenario;
use crate::model::effect::Duplicate;
use crate::model::job::Job;
use crate::model::topology::Mac;
use crate::model::workload::Workload;

/// The forwarding table entries of a switch: each host by its MAC address, broadcasts, jobs, routes of gradients; on a wire,
/// from each port to the other.
#[must_use]
pub fn forwarding(scenario: &Scenario, switch: &str) -> Vec<TableEntry> {
    if scenario.topology.wire {
        return across(scenario, switch);
    }
    let entry = |mac: Mac, action: &str, name: &str, value: u32| TableEntry {
        table: forward::TABLE.to_owned(),
        key: vec![FieldMatch {
            field: forward::KEY.to_owned(),
            value: Match::exact(mac.value()),
        }],
        priority: 0,
        action: ActionCall {
            name: action.to_owned(),
            params: vec![(name.to_owned(), u128::from(value).into())],
        },
    };
    let to_group = |mac, group| entry(mac, forward::MULTICAST, forward::GROUP, group);
    let to_port_it_came_by = |mac| {
        let mut back = entry(mac, forward::BACK, "", 0);
        back.action.params.clear();
        back
    };
    let mut entries = Vec::new();
    if let Some(ways) = &scenario.ways {
        entries.extend(multipath::entries(scenario, ways, switch));
    } else {
        let towards = scenario.topology.ports_towards(switch);
        for host in &scenario.topology.hosts {
            if let Some(port) = towards.get(host.name.as_str()) {
                entries.push(entry(host.mac, forward::UNICAST, forward::PORT, *port));
            }
        }
    }
    entries.push(to_group(Mac::BROADCAST, group::FLOOD));
    for (number, _) in job_ports(scenario, switch) {
        entries.push(to_group(Mac::of_job(number), group::of_job(number)));
    }
    let gradients = scenario.gradients.iter();
    entries.extend(gradients.flat_map(|gradients| gradients::forwarding(gradients, switch)));
    for job in &scenario.jobs {
        if ports_of(scenario, job, switch).is_none() {
            continue;
        }
        // Frames to be summed, and probes about them, go up until a switch sums them.
        let (sum, question) = (Mac::of_sum(job.number), Mac::of_question(job.number));
        match (
            job.on(switch),
            scenario.topology.next_hop(switch, job.top()),
        ) {
            (Some(_), _) => {
                entries.push(to_group(sum, group::of_job(job.number)));
                entries.push(to_port_it_came_by(question));
            }
            (None, Some(up)) => entries.extend(
                [sum, question].map(|mac| entry(mac, forward::UNICAST, forward::PORT, up.number)),
            ),
            (None, None) => {}
        }
    }
    entries
}

fn across(scenario: &Scenario, switch: &str) -> Vec<TableEntry> {
    let topology = &scenario.topology;
    let ports = topology.ports(switch).filter_map(|port| {
        let other = topology.next_hop(switch, topology.across(port.peer)?)?;
        Some(TableEntry {
            table: forward::WIRE.to_owned(),
            key: vec![FieldMatch {
                field: forward::WIRE_KEY.to_owned(),
                value: Match::exact(u128::from(port.number)),
            }],
            priority: 0,
            action: call(
                forward::UNICAST.to_owned(),
                &[(forward::PORT, u128::from(other.number))],
            ),
        })
    });
    ports.collect()
}

/// For each job, its number and the ports by which the switch sends sums, or the server's results, down to the ranks.
fn job_ports(scenario: &Scenario, switch: &str) -> Vec<(u16, Vec<u32>)> {
    let topology = &scenario.topology;
    if let Some(Workload::Training(training)) = &scenario.workload {
        let gradients = scenario.gradients.as_ref();
        if let Some(ports) = gradients.and_then(|gradients| gradients.answer_ports(switch)) {
            let ports = sorted(ports.into_iter());
            return (!ports.is_empty())
                .then_some((JOB, ports))
                .into_iter()
                .collect();
        }
        let workers = training.workers.iter().filter(|worker| {
            let path = topology.path(&training.server, worker);
            path.is_some_and(|path| path.contains(&switch))
        });
        let ports = workers.filter_map(|worker| topology.next_hop(switch, worker));
        let ports = sorted(ports.map(|port| port.number));
        return (!ports.is_empty())
            .then_some((JOB, ports))
            .into_iter()
            .collect();
    }
    let jobs = scenario.jobs.iter();
    jobs.filter_map(|job| ports_of(scenario, job, switch))
        .collect()
}

/// Number of a job, and the ports of a switch that lead down to its ranks; `None` if the switch is not on the way to any.
fn ports_of(scenario: &Scenario, job: &Job, switch: &str) -> Option<(u16, Vec<u32>)> {
    if let Some(Workload::Training(_)) = &scenario.workload {
        return None;
    }
    let topology = &scenario.topology;
    let below = job.ranks.iter().filter(|rank| {
        let way = topology.way_up(rank, job.top());
        way.is_some_and(|way| way.contains(&switch))
    });
    let ports = below.filter_map(|rank| topology.next_hop(switch, rank));
    let ports = sorted(ports.map(|port| port.number));
    (!ports.is_empty()).then_some((job.number, ports))
}

fn sorted(ports: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut ports: Vec<u32> = ports.collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// The multicast groups of a switch: for broadcasts, sums and results of jobs, and copies of packets.
#[must_use]
pub fn groups(scenario: &Scenario, switch: &str, target: &TargetModel) -> Vec<MulticastGroup> {
    let numbered = |ports: Vec<u32>| {
        ports
            .into_iter()
            .zip(1..)
            .map(|(port, instance)| Replica { port, instance })
            .collect()
    };
    let mut groups = Vec::new();
    if target.multicast_recirculates {
        groups.push(MulticastGroup {
            id: group::DUPLICATE,
            replicas: numbered(vec![target.recirculation_port; 2]),
        });
    }
    let duplicates = scenario.faults.iter();
    let duplicates = duplicates.filter_map(|fault| fault.effect.duplicate());
    let mut more: Vec<Copies> = duplicates
        .filter(|duplicate| *duplicate != Duplicate::ONCE && target.multicast_recirculates)
        .map(|duplicate| engine::copies(scenario, duplicate))
        .collect();
    more.sort_unstable_by_key(|copies| copies.group);
    more.dedup();
    groups.extend(more.iter().map(|copies| {
        MulticastGroup {
            id: copies.group.into(),
            replicas: copies
                .later_ns
                .iter()
                .map(|(instance, _)| Replica {
                    port: target.recirculation_port,
                    instance: *instance,
                })
                .collect(),
        }
    }));
    groups.push(MulticastGroup {
        id: group::FLOOD,
        replicas: numbered(scenario.topology.flood_ports(switch)),
    });
    let job_groups = job_ports(scenario, switch).into_iter();
    groups.extend(job_groups.map(|(number, ports)| {
        let mut jobs = scenario.jobs.iter();
        let job = jobs.find(|job| job.number == number && job.is_rdma());
        let each = job.and_then(|job| copies_of_ranks(scenario, job, switch));
        MulticastGroup {
            id: group::of_job(number),
            replicas: each.unwrap_or_else(|| numbered(ports)),
        }
    }));
    let gradients = scenario.gradients.iter();
    groups.extend(gradients.flat_map(|gradients| gradients::groups(gradients, switch)));
    groups
}

/// For a switch that sends each rank its own frame: one multicast replica per rank, whose instance is the rank's number at this
/// switch plus one. `None` if the switch does not sum for the job.
fn copies_of_ranks(scenario: &Scenario, job: &Job, switch: &str) -> Option<Vec<Replica>> {
    let ranks = job.on(switch)?.children.iter().zip(1..);
    let copies = ranks.map(|(rank, instance)| {
        let port = scenario.topology.next_hop(switch, rank)?.number;
        Some(Replica { port, instance })
    });
    copies.collect()
}
