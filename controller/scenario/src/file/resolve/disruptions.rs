//! Resolves faults on programs and switches: looks up the commands and switches that they name.

use super::epochs::during;
use super::switch;
use crate::diagnostic::{Code, Sink, Spanned, unknown};
use crate::file::schema::{Raw, RawDisruption, RawEvent};
use crate::model::Epoch;
use crate::model::disruption::{Disruption, Subject};
use crate::model::workload::Workload;

pub(super) fn resolve(
    sink: &mut Sink<'_>,
    raw: &Raw,
    disruption: &RawDisruption,
    epochs: &[Epoch],
) -> Option<Disruption> {
    let RawDisruption {
        id,
        does,
        on,
        during: steps,
    } = disruption;
    let is_known = match does.subject() {
        subject if raw.topology.wire => {
            let why = match subject {
                Subject::Command(_) => "weir runs no programs at the ends of a wire",
                Subject::Switch(_) => {
                    "the wire is the only path between machines that weir does not run"
                }
            };
            let message = format!(
                "fault `{}` cannot {} {subject}: {why}",
                id.value,
                does.word()
            );
            sink.error(Code::Effect, on.span, message)
                .hint("to cut the connection, write a fault with `effect: drop` that acts in a step of the timeline");
            false
        }
        Subject::Switch(_) => switch(sink, &raw.topology, on),
        Subject::Command(_) => is_command(sink, raw, id, does.word(), on),
    };
    let epochs = during(sink, steps, raw, epochs)?;
    is_known.then(|| Disruption {
        id: id.value.clone(),
        does: does.clone(),
        epochs,
        span: id.span,
        on_span: on.span,
    })
}

/// Whether the name is that of a command of the workload; reports a name that is not.
fn is_command(
    sink: &mut Sink<'_>,
    raw: &Raw,
    id: &Spanned<String>,
    word: &str,
    on: &Spanned<String>,
) -> bool {
    let workload = raw.workload.as_ref().map(|of| &of.value.workload);
    let what = match workload {
        Some(Workload::Commands(declared)) => {
            let names = declared
                .commands
                .iter()
                .map(|command| command.name.as_str());
            let found = names.clone().any(|name| name == on.value);
            if !found && !raw.declared.workload_is_refused {
                unknown(sink, "command", on, names);
            }
            return found;
        }
        // The workload's error has been reported already.
        None if raw.declared.workload_is_refused => return false,
        Some(Workload::Redis(_)) => "the workload is weir's own Redis",
        Some(Workload::Training(_)) => "the workload is weir's own training",
        Some(Workload::Idle { .. }) | None => "this scenario runs no programs",
    };
    let message = format!(
        "fault `{}` cannot {word} `{}`: this effect needs a program of `workload: commands`, but {what}",
        id.value, on.value
    );
    sink.error(Code::Effect, on.span, message)
        .hint("write the program as a command: `workload: {commands: [{name, host, run}]}`");
    false
}

/// Refuses faults on programs and switches that wait for a trigger: a trigger acts in a switch, on packets.
pub(super) fn refuse_triggers(sink: &mut Sink<'_>, raw: &Raw) {
    for trigger in &raw.triggers {
        let stages = trigger.stages.iter().map(|stage| &stage.event);
        for event in stages.chain(&trigger.reset) {
            let RawEvent::Fault(name) = event else {
                continue;
            };
            let mut disruptions = raw.disruptions.iter();
            if disruptions.any(|disruption| disruption.id.value == name.value) {
                let message = format!(
                    "trigger `{}` cannot count hits of fault `{}`: the fault acts on a program or a switch, and hits no packets",
                    trigger.name.value, name.value
                );
                sink.error(Code::Effect, name.span, message).hint(format!(
                    "let a step of the timeline wait for the fault instead: `on: fault.{}.fired >= 1`",
                    name.value
                ));
            }
        }
    }
}
