//! Resolves the section `plan`: a planner chooses which switches sum the gradients of the file's training.

use crate::diagnostic::{Code, Sink};
use crate::file::schema::Raw;
use crate::model::gradient::{Gradients, PlanRequest, plan};
use crate::model::job::JOB;

/// The gradient plan of the file's training; `None` if the file does not ask for a plan, or the plan was refused.
pub(super) fn resolve(sink: &mut Sink<'_>, raw: &Raw) -> Option<Gradients> {
    let by = raw.plan.as_ref()?;
    let Some((training, _)) = raw.training() else {
        let message =
            "`plan` chooses the switches that sum a `training`, but the file has no `training`";
        sink.error(Code::NoEffect, by.span, message)
            .hint("write `workload: {training: …}`, or leave `plan` out");
        return None;
    };
    if let Some(on) = &training.aggregate_on {
        let message =
            format!("`plan` and `aggregate_on: {on}` both choose where gradients are summed");
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
    let asked = PlanRequest {
        first: JOB + 1,
        is_proven: true,
    };
    plan(sink, &raw.topology, training, by, asked)
}
