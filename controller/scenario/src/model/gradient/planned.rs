//! Runs a planner that chooses which switches sum a training's gradients.

use planner::Method;
use planner::gradient::{self as planners, JobError, Server};

use super::{Gradients, ways};
use crate::diagnostic::{Code, Sink, Spanned};
use crate::model::topology::{Topology, topology_network};
use crate::model::workload::Training;

/// Parameters for the planner: the number of the plan's first part, and whether to search for a bound.
#[derive(Clone, Copy)]
pub(crate) struct PlanRequest {
    /// Number of the plan's first part in frames; the other parts have the following numbers.
    pub first: u16,
    /// Whether the planner spends time on a bound for how much better another plan could be.
    pub is_proven: bool,
}

pub(crate) fn plan(
    sink: &mut Sink<'_>,
    topology: &Topology,
    training: &Training,
    by: &Spanned<Method>,
    asked: PlanRequest,
) -> Option<Gradients> {
    let network = match topology_network(topology) {
        Ok(network) => network,
        Err(error) => {
            sink.error(Code::Topology, by.span, error.to_string());
            return None;
        }
    };
    let node = |name: &String| network.node(name).ok();
    let job = planners::Job {
        name: "training".to_owned(),
        workers: training.workers.iter().filter_map(node).collect(),
        servers: vec![Server::on(node(&training.server)?)],
    };
    let planned = by.value.plan(&network, &job);
    let proven = planned.and_then(|mut plan| {
        if asked.is_proven {
            by.value.prove(&network, &job, &mut plan)?;
        }
        Ok(plan)
    });
    let planned = match proven {
        Ok(planned) => planned,
        Err(error) => {
            let code = match error {
                JobError::NoWay { .. } | JobError::NoIngress(..) => Code::Unreachable,
                _ => Code::Topology,
            };
            sink.error(code, by.span, error.to_string());
            return None;
        }
    };
    let answers = planned.answers.iter();
    let answers = answers.flat_map(|answers| ways::hops((&network, topology), &answers.tree));
    let answers = answers.collect();
    let parts = ways::parts(
        sink,
        (&network, topology),
        training,
        &planned,
        (by.span, asked.first),
    )?;
    Some(Gradients {
        by: by.value,
        rate_bps: planned.rate_bps,
        bound_bps: planned.bound_bps,
        is_optimal: planned.is_optimal,
        parts,
        answers,
    })
}
