//! What a switch is told so that it sums a job's updates.

use p4lang::runtime::{ActionCall, FieldMatch, Match, TableEntry};
use scenario::job::Job;
use scenario::model::Scenario;
use scenario::names::aggregate;

/// Entries that make a switch sum a job's updates: the job, and its members by the port that leads to them.
pub fn aggregation_entries(scenario: &Scenario, job: &Job) -> Vec<TableEntry> {
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
    let all_workers = (1_u128 << job.ranks.len()) - 1;
    let admission = TableEntry {
        table: aggregate::JOBS.to_owned(),
        key: vec![exact(aggregate::KEY_JOB, job.number.into())],
        priority: 0,
        action: call(
            aggregate::AGGREGATE_JOB,
            &[
                (aggregate::ALL_WORKERS, all_workers),
                (aggregate::BASE, job.base.into()),
                (aggregate::WINDOW, job.window.into()),
                (aggregate::SLOT_MASK, u128::from(job.window) - 1),
            ],
        ),
    };
    let members = job
        .ranks
        .iter()
        .enumerate()
        .filter_map(|(rank, worker)| {
            let port = scenario.topology.next_hop(&job.on, worker)?.number;
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
