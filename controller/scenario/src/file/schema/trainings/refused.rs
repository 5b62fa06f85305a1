//! Reports why a planner refuses a training, at the position in the file that causes it.

use planner::Network;
use planner::gradient::JobError;

use super::{TrainingInNetwork, TrainingSpans};
use crate::diagnostic::{Code, Diagnostic, Sink, Source, Span};

/// Maximum number of earlier trainings that a message lists.
const BEFORE: usize = 3;

/// The diagnostic for a training without a plan, at the position in the file that causes it. `before`: trainings that were
/// planned earlier, so that this training got only the remaining capacity.
#[must_use]
pub fn refused_training(
    source: Source<'_>,
    network: &Network,
    training: &TrainingInNetwork,
    before: &[&TrainingInNetwork],
    error: &JobError,
) -> Diagnostic {
    let mut sink = Sink::new(source);
    let told = tell(&mut sink, network, &training.spans, error);
    let servers = |of: &TrainingInNetwork| of.job.servers.clone();
    let own = servers(training);
    let shares = |other: &&&TrainingInNetwork| match error {
        JobError::NoIngress(..) => servers(other)
            .iter()
            .any(|server| own.iter().any(|own| own.host == server.host)),
        JobError::NoWay { .. } => true,
        _ => false,
    };
    let before: Vec<&&TrainingInNetwork> = before.iter().filter(shares).collect();
    for other in before.iter().take(BEFORE) {
        let message = format!("`{}` is planned earlier", other.job.name);
        told.related(&source, other.spans.name, message);
    }
    if !before.is_empty() {
        told.hint("move this training before the others: each training gets the capacity that earlier ones leave");
    }
    told.clone()
}

/// Reports the planner's error at the position in the file that causes it.
pub(super) fn tell<'s>(
    sink: &'s mut Sink<'_>,
    network: &Network,
    spans: &TrainingSpans,
    error: &JobError,
) -> &'s mut Diagnostic {
    let named = |host: &str, or: Span| {
        let mut called = spans.hosts.iter().rev();
        let found = called.find(|(node, _)| network.name(*node) == host);
        found.map_or(or, |(_, span)| *span)
    };
    let (code, span) = match error {
        JobError::NoWorkers(_) => (Code::Contradiction, spans.workers),
        JobError::TooLarge(..) => (Code::Capacity, spans.workers),
        JobError::NoServer(_) | JobError::OneServer(..) | JobError::Shares(..) => {
            (Code::Contradiction, spans.server)
        }
        JobError::HostTwice(_, host) | JobError::NoHost(_, host) => {
            (Code::Contradiction, named(host, spans.name))
        }
        JobError::NoWay { from, .. } => (Code::Unreachable, named(from, spans.workers)),
        JobError::NoIngress(_, host) => {
            let span = spans.ingress.unwrap_or(named(host, spans.server));
            (Code::Capacity, span)
        }
    };
    let diagnostic = sink.error(code, span, error.to_string());
    match error {
        JobError::OneServer(..) => {
            diagnostic.hint("plan with `--by inart`, which supports several servers")
        }
        JobError::TooLarge(..) => diagnostic
            .hint("plan with `--by inart` without `--exact`, which supports larger trainings"),
        JobError::NoWay { .. } => {
            diagnostic.hint("add a link, or lower the `load` of links that are full")
        }
        JobError::HostTwice(..) => {
            diagnostic.hint("name each host once, as a server or as a worker")
        }
        _ => diagnostic,
    }
}
