//! Decides the lease of a plan: whether the switches end the faults by themselves when the controller is gone.

use crate::diagnostic::{Code, Sink};
use crate::model::Scenario;
use crate::model::lease::Leased;

use super::{SwitchPlan, TargetModel};

/// The lease of a plan. If the target does not support leases, a lease in the file is refused; without one in the file, the
/// plan reports that there is none.
pub(super) fn plan(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    target: &TargetModel,
    switches: &[SwitchPlan],
) -> Leased {
    let Some(lease) = scenario.lease.lease else {
        return Leased::Off;
    };
    let Some(why) = cannot(target, switches) else {
        return Leased::For(lease);
    };
    if let Some(span) = scenario.lease.span {
        sink.error(
            Code::Effect,
            span,
            format!("this plan cannot have a lease: {why}"),
        )
        .hint("write `lease: off`: faults then hold until they are disarmed");
    }
    Leased::Cannot(why)
}

fn cannot(target: &TargetModel, switches: &[SwitchPlan]) -> Option<&'static str> {
    if !target.tells_time {
        return Some("the controller cannot read this target's clock");
    }
    // Such a fault is armed in the parser, and no later stage is free to compare the clock.
    let is_early = switches.iter().any(|switch| switch.before_sum.is_some());
    is_early
        .then_some("a fault that acts before a sum leaves the switch no stage to read the clock")
}
