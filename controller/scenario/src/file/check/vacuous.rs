//! Warns of faults and expectations whose outcome is known before the run: a run in which nothing can happen proves nothing.

use std::ops::RangeInclusive;

use crate::diagnostic::{Code, Sink};
use crate::model::Scenario;
use crate::model::traffic::no_packets;
use crate::model::workload::Workload;
use crate::units::show_duration;

/// Warns of faults that cannot hit any packet, according to the file.
pub(crate) fn check(sink: &mut Sink<'_>, scenario: &Scenario) {
    check_disruptions(sink, scenario);
    check_expectations(sink, scenario);
    for fault in &scenario.faults {
        if scenario.expects_nothing_of(&fault.id) {
            continue;
        }
        let why = start_after_end(scenario, &fault.epochs).or_else(|| no_packets(scenario, fault));
        if let Some(why) = why {
            let message = format!("fault `{}` will hit nothing: {why}", fault.id);
            sink.warning(Code::Suspicious, fault.span, message)
                .hint(format!(
                    "the run then fails, unless it expects `fault.{}.fired == 0`",
                    fault.id
                ));
        }
    }
}

/// Warns of expectations whose outcome is known before the run.
fn check_expectations(sink: &mut Sink<'_>, scenario: &Scenario) {
    for line in &scenario.expectations {
        let told = match line.foregone() {
            Some(true) => "holds",
            Some(false) => "fails",
            None => continue,
        };
        let message = format!("`{}` {told} whatever happens", line.text);
        sink.warning(Code::Suspicious, line.span, message)
            .hint("compare a metric with its expected value, such as `fault.ID.fired == 3`");
    }
}

/// Warns of faults on programs and switches that cannot take place.
fn check_disruptions(sink: &mut Sink<'_>, scenario: &Scenario) {
    for disruption in &scenario.disruptions {
        if scenario.expects_nothing_of(&disruption.id) {
            continue;
        }
        if let Some(why) = start_after_end(scenario, &disruption.epochs) {
            let message = format!("fault `{}` will not act: {why}", disruption.id);
            sink.warning(Code::Suspicious, disruption.span, message);
        }
    }
}

fn start_after_end(scenario: &Scenario, epochs: &[RangeInclusive<u16>]) -> Option<String> {
    let at_ns = scenario.begins_ns(*epochs.first()?.start())?;
    let (end_ns, what) = match scenario.workload {
        Some(Workload::Idle { for_ns }) => (for_ns, "the workload ends after"),
        // The file does not determine how long the machines of a wire stay connected.
        _ if scenario.topology.wire && scenario.limits.time_span.is_none() => return None,
        _ => (scenario.limits.time_ns, "the run's time limit is"),
    };
    (at_ns >= end_ns).then(|| {
        format!(
            "its step starts {} after the start, and {what} {}",
            show_duration(at_ns),
            show_duration(end_ns)
        )
    })
}
