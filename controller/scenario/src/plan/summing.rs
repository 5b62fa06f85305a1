//! Compares what jobs require of the switches that sum for them with the target's capabilities.

use parser_gen::FrameValues;

use super::TargetModel;
use crate::diagnostic::{Code, Sink, Spanned};
use crate::model::Scenario;
use crate::model::job::Job;

/// Number of values in the frames that a switch sums, or may have to sum later: that of its jobs, but at most the chip's
/// `most`. A job with more is refused if the file declares the number, or if `weir run` starts the programs that rely on it.
pub(super) fn frame_values(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    switch: &str,
    (most, is_faultless): (FrameValues, bool),
    target: &TargetModel,
) -> Option<FrameValues> {
    let mut jobs = scenario.jobs.iter();
    let job = jobs
        .find(|job| job.on(switch).is_some())
        .or_else(|| may_come_to_sum(scenario, switch, is_faultless))?;
    if job.values > most && (job.values_span.is_some() || target.runs_hosts) {
        let message = format!(
            "switch `{switch}` sums frames of {} values for job `{}`, and this target sums at most {}",
            job.values.count(),
            job.name,
            most.count()
        );
        sink.error(Code::Capacity, job.values_span.unwrap_or(job.span), message)
            .hint(format!("`values: {}`", most.count()));
    }
    Some(job.values.min(most))
}

/// The job whose frames a switch may have to sum when another switch of the gradient plan dies; `None` if it cannot. A switch
/// with faults cannot, because captures could then not prove the faults.
fn may_come_to_sum<'s>(
    scenario: &'s Scenario,
    switch: &str,
    is_faultless: bool,
) -> Option<&'s Job> {
    scenario.gradients.as_ref()?;
    let can = is_faultless && scenario.topology.capacity(switch).programmable;
    scenario.jobs.first().filter(|_| can)
}

/// Refuses a switch that sums for more children (ranks and switches) than the target's bitmaps have bits.
pub(super) fn check_children(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    switch: &str,
    target: &TargetModel,
) {
    for job in &scenario.jobs {
        let children = job.on(switch).map_or(0, |summing| summing.children.len());
        if children > target.sum_children {
            let message = format!(
                "switch `{switch}` sums {children} ranks and switches of job `{}`, and this target sums at most {}",
                job.name, target.sum_children
            );
            sink.error(Code::Capacity, job.span, message)
                .hint("add switches below it to `on`, the topmost switch first");
        }
    }
}

/// Refuses jobs with a deadline if the target cannot complete a sum before all ranks have contributed.
pub(super) fn check_deadlines(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    switch: &str,
    target: &TargetModel,
) {
    let summed = scenario.jobs.iter().filter(|job| job.on(switch).is_some());
    for deadline in summed.filter_map(|job| job.deadline) {
        if !target.closes_chunks {
            let message = format!(
                "switch `{switch}` cannot apply a `deadline`: on this target, its slots have no space for one"
            );
            sink.error(Code::Capacity, deadline.span, message)
                .hint("leave `deadline` out, or use the embedded switch or BMv2");
        }
    }
}

/// Refuses jobs over RDMA if the target cannot verify and compute an ICRC.
pub(super) fn check_transport(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    switch: &str,
    target: &TargetModel,
) {
    let here = scenario.jobs.iter().filter(|job| job.on(switch).is_some());
    for job in here.filter(|job| job.is_rdma() && !target.sums_roce) {
        let message = format!(
            "switch `{switch}` cannot sum RoCEv2 for job `{}`: the ICRC, a CRC-32 over all of a packet, cannot be computed there",
            job.name
        );
        sink.error(Code::Capacity, job.transport.span, message)
            .hint("write `transport: udp`, or use the embedded switch or simple_switch_grpc");
    }
}

/// The jobs with a rate limit whose values a switch sums.
pub(super) fn rated<'s>(
    scenario: &'s Scenario,
    switch: &str,
) -> impl Iterator<Item = (&'s Job, &'s Spanned<u64>)> {
    let here = scenario
        .jobs
        .iter()
        .filter(move |job| job.on(switch).is_some());
    here.filter_map(|job| Some((job, job.rate.as_ref()?)))
}

/// Refuses jobs with a rate limit if the target cannot meter frames before the sum.
pub(super) fn check_rates(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    switch: &str,
    target: &TargetModel,
) {
    if target.guards_jobs {
        return;
    }
    for (job, rate) in rated(scenario, switch) {
        let message = format!(
            "this target cannot limit the rate of job `{}`: it has no meter before its sums",
            job.name
        );
        sink.error(Code::Capacity, rate.span, message)
            .hint("lower the `rate` of the ranks' links instead, or use the embedded switch or simple_switch_grpc");
    }
}
