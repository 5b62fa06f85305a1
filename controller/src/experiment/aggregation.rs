//! What a switch is told so that it sums a job's updates.

use p4lang::runtime::{ActionCall, FieldMatch, Match, TableEntry};
use scenario::job::{Job, Summing};
use scenario::model::Scenario;
use scenario::names::aggregate;

/// Entries that make a switch sum updates of a job: the job, and those whose updates they are by the port that leads to them.
pub fn aggregation_entries(scenario: &Scenario, job: &Job, summing: &Summing) -> Vec<TableEntry> {
    let exact = |field: &str, value: u128| FieldMatch {
        field: field.to_owned(),
        value: Match::exact(value),
    };
    let call = |name: &str, params: &[(&str, u128)]| ActionCall {
        name: name.to_owned(),
        params: params
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).into()))
            .collect(),
    };
    let topology = &scenario.topology;
    let mut params = vec![
        (
            aggregate::ALL_WORKERS,
            (1_u128 << summing.children.len()) - 1,
        ),
        (aggregate::BASE, job.base.into()),
        (aggregate::WINDOW, job.window.into()),
        (aggregate::SLOT_MASK, u128::from(job.window) - 1),
    ];
    let mut action = match job.deadline {
        Some(_) => aggregate::AGGREGATE_UNTIL,
        None => aggregate::AGGREGATE_JOB,
    };
    if let Some((parent, number)) = &summing.parent
        && let Some(up) = topology.next_hop(&summing.switch, parent)
    {
        action = aggregate::AGGREGATE_PART;
        params.push((aggregate::UP_PORT, up.number.into()));
        params.push((aggregate::UP_WORKER, (*number).into()));
    }
    let admission = TableEntry {
        table: aggregate::JOBS.to_owned(),
        key: vec![exact(aggregate::KEY_JOB, job.number.into())],
        priority: 0,
        action: call(action, &params),
    };
    let members = summing
        .children
        .iter()
        .enumerate()
        .filter_map(|(rank, worker)| {
            let port = topology.next_hop(&summing.switch, worker)?.number;
            Some([(0, 1 << rank), (1, 0)].map(|(probe, bit)| TableEntry {
                table: aggregate::MEMBERS.to_owned(),
                key: vec![
                    exact(aggregate::KEY_JOB, job.number.into()),
                    exact(aggregate::KEY_WORKER, rank as u128),
                    exact(aggregate::KEY_PROBE, probe),
                    exact(aggregate::KEY_PORT, port.into()),
                ],
                priority: 0,
                action: call(aggregate::MEMBER, &[(aggregate::WORKER_BIT, bit)]),
            }))
        })
        .flatten();
    std::iter::once(admission).chain(members).collect()
}

/// Chunks of one iteration that carry values.
pub fn chunks_per_iteration() -> usize {
    host_agent::train::PARAMETERS.div_ceil(wire::VALUES_PER_PACKET)
}
