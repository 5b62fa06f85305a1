//! Whether a target's faults end by themselves.

use crate::diagnostic::{Code, Sink};
use crate::lease::Leased;
use crate::model::Scenario;

use super::{SwitchPlan, TargetModel};

/// The lease of a plan. One that the file asks for is refused where the target has no means for it; the one that it has by
/// default is told to be missing.
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
        sink.error(Code::Effect, span, format!("a lease cannot be held: {why}"))
            .hint("write `lease: off`: faults then hold until they are disarmed");
    }
    Leased::Cannot(why)
}

fn cannot(target: &TargetModel, switches: &[SwitchPlan]) -> Option<&'static str> {
    if !target.tells_time {
        return Some("no controller can read this target's clock");
    }
    // That fault is armed by the ports that the parser looks at, and no later stage is free to ask the time.
    let is_early = switches.iter().any(|switch| switch.before_sum.is_some());
    is_early.then_some("a fault before a sum leaves the switch no stage to look at the clock")
}
