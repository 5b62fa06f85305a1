//! Scenarios on switches and in a network that already run: finds the sections of the file that have no effect there. On the
//! hosts of such a network weir runs no program, sends no probe and captures on no link.
//!
//! A file for `weir run` may contain these sections; each ignored section is reported. A condition that would wait for a value
//! that never comes is refused.

use crate::diagnostic::{Code, Diagnostics, Sink, Span};
use crate::model::Scenario;
use crate::model::expect::{Expectation, Metric};
use crate::model::workload::{Training, Workload};

/// A section or key of the file that has no effect in a network that already runs.
struct Idle {
    /// Name of the section, or of a key in a section.
    name: &'static str,
    span: Span,
    why: &'static str,
    hint: &'static str,
}

/// Names of the file's sections and keys that have no effect in a network that already runs, in the order of the file.
#[must_use]
pub fn ignored(scenario: &Scenario) -> Vec<&'static str> {
    idle(scenario).iter().map(|part| part.name).collect()
}

/// Reports the sections and keys that have no effect in a network that already runs, as warnings.
///
/// # Errors
///
/// Returns an error for conditions on probes and on capture results, which would never hold.
pub fn check(scenario: &Scenario) -> Result<Diagnostics, Diagnostics> {
    let mut sink = Sink::new(scenario.source());
    refuse_unknown(
        &mut sink,
        &scenario.abort_if,
        "this condition never holds, so it never ends the run",
        "end the run yourself: `weir control` disarms all faults when you close its standard input",
    );
    refuse_unknown(
        &mut sink,
        &scenario.awaited,
        "this step would never start",
        "name a time in `at`, or wait for `fault.ID.fired` or `trigger.NAME.on`",
    );
    if sink.has_errors() {
        return Err(sink.into_diagnostics());
    }
    for part in idle(scenario) {
        let message = format!("`{}` has no effect here: {}", part.name, part.why);
        sink.warning(Code::NoEffect, part.span, message)
            .hint(part.hint);
    }
    Ok(sink.into_diagnostics())
}

fn refuse_unknown(sink: &mut Sink<'_>, conditions: &[Expectation], what: &str, hint: &str) {
    for (metric, span) in conditions.iter().flat_map(Expectation::metrics) {
        let message = match metric {
            Metric::Probe { .. } => {
                format!("`weir control` runs no probes, so it has no `{metric}`: {what}")
            }
            _ if metric.is_judged_live() => {
                format!("`weir control` captures no frames, so it has no `{metric}`: {what}")
            }
            _ => continue,
        };
        sink.error(Code::NoEffect, span, message).hint(hint);
    }
}

/// The sections that need a network started by weir: name, reason why the section has no effect, and what to do instead.
const SECTIONS: [(&str, &str, &str); 3] = [
    (
        WORKLOAD,
        "`weir control` starts nothing on hosts",
        "start the programs on the hosts yourself, after `weir control` reports `ready`",
    ),
    (
        "probes",
        "`weir control` runs no probes",
        "probe from the hosts yourself, or use `weir run`",
    ),
    (
        "expect",
        "`weir control` does not check expectations",
        "read the hits of each fault in the JSON object that it prints at the end",
    ),
];
const WORKLOAD: &str = "workload";

/// The file's sections and keys that have no effect in a network that already runs, in the order of the file.
fn idle(scenario: &Scenario) -> Vec<Idle> {
    // A training whose gradients a switch sums is configured on the switch.
    let sections = SECTIONS
        .iter()
        .filter(|(name, ..)| *name != WORKLOAD || !sums(scenario));
    let there = sections.filter_map(|&(name, why, hint)| {
        let span = scenario.span_of(&[name])?;
        Some(Idle {
            name,
            span,
            why,
            hint,
        })
    });
    let mut found: Vec<Idle> = there.collect();
    let kept = [
        (
            "captures",
            scenario.captures_span,
            "use `weir run` to keep frames",
        ),
        (
            "limits.disk",
            scenario.limits.disk_span,
            "`limits.time` and `limits.hits` do apply",
        ),
    ];
    found.extend(kept.into_iter().filter_map(|(name, span, hint)| {
        Some(Idle {
            name,
            span: span?,
            why: "`weir control` captures no frames",
            hint,
        })
    }));
    found.sort_by_key(|part| part.span.start);
    found
}

fn sums(scenario: &Scenario) -> bool {
    let is_summed =
        |training: &Training| training.aggregate_on.is_some() || scenario.gradients.is_some();
    matches!(&scenario.workload, Some(Workload::Training(training)) if is_summed(training))
}
