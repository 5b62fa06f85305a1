//! Builds the epochs (intervals of the timeline): the steps and the gaps between them, with numbers.

use std::ops::RangeInclusive;

use crate::diagnostic::{Sink, Spanned, unknown};
use crate::file::schema::{Raw, RawStep};
use crate::file::yaml::Node;
use crate::model::Epoch;

/// The steps and the gaps between them as epochs, numbered from 1. A fault without `during` acts in all epochs.
pub(super) fn all(sink: &Sink<'_>, steps: &[RawStep]) -> Vec<Epoch> {
    let start = Epoch {
        epoch: 1,
        at_ns: 0,
        step: None,
        on: None,
    };
    let mut epochs = vec![start.clone()];
    for step in steps {
        let text = |node: &Node| sink.source().text.get(node.span.start..node.span.end);
        let mut on = step.on.as_ref().and_then(text).map(str::to_owned);
        for time in &step.times {
            let on = on.take();
            // A step that starts at the last mark replaces it, unless that mark waits for a condition.
            let is_hidden = |last: &Epoch| on.is_none() && last.at_ns >= time.at_ns;
            while epochs
                .last()
                .is_some_and(|last| is_hidden(last) && last.on.is_none())
            {
                epochs.pop();
            }
            let name = Some(step.name.value.clone());
            epochs.push(Epoch {
                at_ns: time.at_ns,
                step: name,
                on,
                ..start.clone()
            });
            if let Some(length) = time.for_ns {
                epochs.push(Epoch {
                    at_ns: time.at_ns.saturating_add(length),
                    ..start.clone()
                });
            }
        }
    }
    for (epoch, number) in epochs.iter_mut().zip(1..) {
        epoch.epoch = number;
    }
    epochs
}

pub(super) fn during(
    sink: &mut Sink<'_>,
    steps: &[Spanned<String>],
    raw: &Raw,
    epochs: &[Epoch],
) -> Option<Vec<RangeInclusive<u16>>> {
    let known = |name: &str| raw.steps.iter().any(|step| step.name.value == name);
    let mut good = true;
    for name in steps.iter().filter(|name| !known(&name.value)) {
        good = false;
        unknown(
            sink,
            "step",
            name,
            raw.steps.iter().map(|step| step.name.value.as_str()),
        );
    }
    let wanted = |epoch: &&Epoch| {
        let named = |step: &String| steps.iter().any(|name| name.value == *step);
        steps.is_empty() || epoch.step.as_ref().is_some_and(named)
    };
    let mut ranges: Vec<RangeInclusive<u16>> = Vec::new();
    for epoch in epochs.iter().filter(wanted) {
        match ranges.last_mut() {
            Some(last) if last.end() + 1 == epoch.epoch => *last = *last.start()..=epoch.epoch,
            _ => ranges.push(epoch.epoch..=epoch.epoch),
        }
    }
    good.then_some(ranges)
}
