//! Turns a file's `plan` into the planner's result.

use planner::Method;
use planner::gradient::{self as planners, JobError, Server};

use super::{Gradients, ways};
use crate::diagnostic::{Code, Sink, Spanned};
use crate::names::JOB;
use crate::schema::Raw;
use crate::topology::{Topology, topology_network};
use crate::workload::Training;

/// Lets a planner choose where the training of a file is summed, if the file asks for a plan.
pub(crate) fn resolve(sink: &mut Sink<'_>, raw: &Raw) -> Option<Gradients> {
    let by = raw.plan.as_ref()?;
    let Some((training, _)) = raw.training() else {
        let message = "`plan` says where a `training` is summed, and there is none";
        sink.error(Code::NoEffect, by.span, message)
            .hint("`workload: {training: …}`, or leave `plan` out");
        return None;
    };
    if let Some(on) = &training.aggregate_on {
        let message =
            format!("`plan` says where gradients are summed, and so does `aggregate_on: {on}`");
        sink.error(Code::Contradiction, by.span, message)
            .hint("leave one of them out");
        return None;
    }
    let hosts = training.workers.iter().chain([&training.server]);
    if hosts
        .into_iter()
        .any(|host| raw.topology.host(host).is_none())
    {
        // The workload's error has been reported already.
        return None;
    }
    let asked = Asked {
        first: JOB + 1,
        is_proven: true,
    };
    plan(sink, &raw.topology, training, by, asked)
}

/// A request for a plan.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    /// Number of the first part; the other parts follow it.
    pub first: u16,
    /// Whether to spend time on a bound for how much better another plan could be.
    pub is_proven: bool,
}

pub(super) fn plan(
    sink: &mut Sink<'_>,
    topology: &Topology,
    training: &Training,
    by: &Spanned<Method>,
    asked: Asked,
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
