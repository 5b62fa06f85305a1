//! What a switch is told so that it sums a job's updates.

use p4lang::runtime::{ActionCall, FieldMatch, Match, TableEntry};
use scenario::model::Scenario;
use scenario::plan::JOB;
use scenario::workload::Training;

/// Entries that make a switch sum a job's updates: the job, and its members by the port that leads to them.
pub fn aggregation_entries(
    scenario: &Scenario,
    training: &Training,
    switch: &str,
) -> Vec<TableEntry> {
    let exact = |field: &str, value: u128| FieldMatch {
        field: field.to_owned(),
        value: Match::exact(value),
    };
    let call = |name: &str, params: &[(&str, u128)]| ActionCall {
        name: format!("SwitchIngress.aggregate.{name}"),
        params: params
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).into()))
            .collect(),
    };
    let all_workers = (1_u128 << training.workers.len()) - 1;
    let job = TableEntry {
        table: "SwitchIngress.aggregate.jobs".to_owned(),
        key: vec![exact("hdr.agg.job", JOB.into())],
        priority: 0,
        action: call(
            "aggregate_job",
            &[
                ("all_workers_", all_workers),
                ("base_", 0),
                ("window_", training.window.into()),
                ("slot_mask_", u128::from(training.window) - 1),
            ],
        ),
    };
    let members = training
        .workers
        .iter()
        .enumerate()
        .filter_map(|(rank, worker)| {
            let port = scenario.topology.next_hop(switch, worker)?.number;
            Some(TableEntry {
                table: "SwitchIngress.aggregate.members".to_owned(),
                key: vec![
                    exact("hdr.agg.job", JOB.into()),
                    exact("hdr.agg.worker", rank as u128),
                    exact("meta.port", port.into()),
                ],
                priority: 0,
                action: call("member", &[("worker_bit_", 1 << rank)]),
            })
        });
    std::iter::once(job).chain(members).collect()
}

/// Chunks of one iteration that carry values.
pub fn chunks_per_iteration() -> usize {
    host_agent::train::PARAMETERS.div_ceil(wire::VALUES_PER_PACKET)
}
