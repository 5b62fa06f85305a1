//! Whether captures on both sides of a switch can tell what each fault did there.
//!
//! They see that a frame is missing, came once more or came late, not which fault did it: two faults of one kind that may hit
//! the same packet on one switch would be told of each other's packets, and both be called disproved.

use super::{Injection, Plan, TargetModel, plan};
use crate::check::may_meet;
use crate::diagnostic::{Code, Diagnostics, Sink};
use crate::model::{Effect, Fault, Flow, Scenario};

/// Makes the plan of a scenario whose faults are to be proved by captures, or says why there is none.
pub fn plan_to_prove(scenario: &Scenario, target: &TargetModel) -> Result<Plan, Diagnostics> {
    let plan = plan(scenario, target)?;
    let mut sink = Sink::new(scenario.source());
    let points = plan.injections.iter();
    let points: Vec<_> = points
        .filter_map(|point| Point::of(scenario, point))
        .collect();
    let mut told: Vec<[&str; 2]> = Vec::new();
    for (i, later) in points.iter().enumerate() {
        for earlier in &points[..i] {
            let pair = [earlier.fault.id.as_str(), &later.fault.id];
            if !told.contains(&pair) && earlier.is_confused_with(later) {
                told.push(pair);
                confused(&mut sink, earlier, later);
            }
        }
    }
    if sink.has_errors() {
        return Err(sink.into_diagnostics());
    }
    Ok(plan)
}

/// An injection with what it refers to.
struct Point<'a> {
    fault: &'a Fault,
    flow: &'a Flow,
    switch: &'a str,
}

impl<'a> Point<'a> {
    fn of(scenario: &'a Scenario, injection: &'a Injection) -> Option<Point<'a>> {
        let (mut faults, mut flows) = (scenario.faults.iter(), scenario.flows.iter());
        Some(Point {
            fault: faults.find(|fault| fault.id == injection.fault)?,
            flow: flows.find(|flow| flow.name == injection.flow)?,
            switch: &injection.switch,
        })
    }

    fn is_confused_with(&self, other: &Point<'_>) -> bool {
        self.fault.id != other.fault.id
            && self.switch == other.switch
            && kind(self.fault) == kind(other.fault)
            && (self.flow.name == other.flow.name || may_meet(self.flow, other.flow))
    }
}

/// In the plural.
fn kind(fault: &Fault) -> &'static str {
    match fault.effect {
        Effect::Drop => "drops",
        Effect::Delay { .. } => "delays",
        Effect::Duplicate => "duplicates",
    }
}

fn confused(sink: &mut Sink<'_>, earlier: &Point<'_>, later: &Point<'_>) {
    let (source, kind) = (sink.source(), kind(later.fault));
    let message = format!(
        "captures cannot tell apart what `{}` and `{}` did: both are {kind}, on switch `{}`, and flow `{}` may have packets of both",
        earlier.fault.id, later.fault.id, later.switch, later.flow.name
    );
    sink.error(Code::Unprovable, later.fault.span, message)
        .related(
            &source,
            earlier.fault.span,
            format!("`{}` is declared here", earlier.fault.id),
        )
        .hint("place one of them on another switch with `where`, give them flows that share no packet, or make one fault of the two");
}
