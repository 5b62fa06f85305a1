//! Checks faults on programs and switches: refuses those that cannot be carried out, or that contradict each other.

use crate::diagnostic::{Code, Sink};
use crate::model::Scenario;
use crate::model::disruption::{Disruption, Subject};
use crate::model::workload::commands::{Ready, When};
use crate::model::workload::{Training, Workload};

/// Refuses faults on programs and switches that cannot be carried out, or that contradict each other.
pub(super) fn check(sink: &mut Sink<'_>, scenario: &Scenario) {
    for (i, later) in scenario.disruptions.iter().enumerate() {
        is_possible(sink, scenario, later);
        for earlier in &scenario.disruptions[..i] {
            contradiction(sink, earlier, later);
        }
    }
}

fn is_possible(sink: &mut Sink<'_>, scenario: &Scenario, disruption: &Disruption) {
    let Disruption {
        id,
        does,
        on_span,
        epochs,
        ..
    } = disruption;
    match does.subject() {
        Subject::Switch(name) => {
            if let Some(Workload::Training(training)) = &scenario.workload {
                under_training(sink, scenario, training, (disruption, name));
            }
        }
        Subject::Command(name) => {
            let ready = scenario.command(name).and_then(|of| of.ready.as_ref());
            if let Some(Ready {
                when: When::Exit(_),
                ..
            }) = ready
            {
                let message = format!(
                    "fault `{id}` cannot act on command `{name}`: the command is a preparation, which ends before the timeline starts"
                );
                sink.error(Code::Effect, *on_span, message)
                    .hint("name a service (its `ready` is `tcp`, `log`, `file` or `started`) or a driver (it has no `ready`)");
            }
        }
    }
    if does.is_for_good() && epochs.len() > 1 {
        let message = format!(
            "fault `{id}` stops {} permanently, but its steps occur {} times",
            does.subject(),
            epochs.len()
        );
        let (word, name) = (does.word(), does.subject().name());
        sink.error(Code::Contradiction, disruption.span, message)
            .hint(format!(
                "write `{{{word}: {{command: {name}, restart: true}}}}`: weir then starts the command again at the end of each step"
            ));
    }
}

/// Refuses to restart a switch that the training of the scenario cannot do without.
fn under_training(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    training: &Training,
    (Disruption { id, on_span, .. }, name): (&Disruption, &str),
) {
    let mut links = scenario.topology.links.iter();
    if links.any(|link| link.peer(&training.server) == Some(name)) {
        let message = format!(
            "fault `{id}` cannot restart switch `{name}` during a training: weir compares the switch's counters with the server's link, and a restart loses them"
        );
        sink.error(Code::Effect, *on_span, message);
    } else if scenario.gradients.is_none() {
        let message = format!(
            "fault `{id}` cannot restart switch `{name}` during a training without a `plan`: no other switch would sum what the restart loses"
        );
        sink.error(Code::Effect, *on_span, message).hint(
            "write `plan: {by: grid}`: weir then plans the gradients again when a switch fails",
        );
    }
}

/// Refuses two faults on the same command or switch that overlap in time, or of which the second finds no process left.
fn contradiction(sink: &mut Sink<'_>, a: &Disruption, b: &Disruption) {
    if a.does.subject() != b.does.subject() {
        return;
    }
    let meet = a.epochs.iter().any(|a| {
        let mut others = b.epochs.iter();
        others.any(|b| a.start() <= b.end() && b.start() <= a.end())
    });
    let comes_after = |first: &Disruption, then: &Disruption| {
        let ended = first.epochs.first().filter(|_| first.does.is_for_good());
        let last = then.epochs.last();
        ended.is_some_and(|ended| last.is_some_and(|last| last.start() > ended.end()))
    };
    let why = if meet {
        "both act at the same time".to_owned()
    } else if comes_after(a, b) {
        format!("`{}` stops it permanently before", a.id)
    } else if comes_after(b, a) {
        format!("`{}` stops it permanently before", b.id)
    } else {
        return;
    };
    let message = format!(
        "faults `{}` and `{}` contradict each other on {}: {why}",
        a.id,
        b.id,
        a.does.subject()
    );
    let source = sink.source();
    sink.error(Code::Contradiction, b.span, message)
        .related(&source, a.span, format!("`{}` is declared here", a.id))
        .hint("give them different steps in `during`");
}
