//! Which metrics a run of a scenario delivers, and what they measure.

use super::Measure;
use crate::model::{Effect, Scenario};
use crate::workload::Workload;

/// Counters of a flow, from captures at both of its ends.
const FLOW: [&str; 4] = ["sent", "received", "lost", "extra"];
/// Statistics of a latency.
const LATENCY: [&str; 6] = ["min", "mean", "p50", "p90", "p99", "max"];

/// All metrics, with patterns already filled in from the scenario.
pub(super) fn metrics(scenario: &Scenario) -> Vec<(String, Measure)> {
    let mut all = vec![("run.wall".to_owned(), Measure::Duration)];
    for fault in &scenario.faults {
        all.extend(
            ["fired", "observed"]
                .map(|name| (format!("fault.{}.{name}", fault.id), Measure::Number)),
        );
        if matches!(fault.effect, Effect::Delay { .. }) {
            all.push((format!("fault.{}.beyond", fault.id), Measure::Duration));
        }
    }
    let mut flows: Vec<&str> = scenario
        .flows
        .iter()
        .flat_map(|flow| [flow.declared.as_str(), &flow.name])
        .collect();
    flows.dedup();
    flows.sort_unstable();
    flows.dedup();
    for flow in flows {
        all.extend(FLOW.map(|name| (format!("flow.{flow}.{name}"), Measure::Number)));
        all.push((format!("flow.{flow}.longest"), Measure::Duration));
    }
    for switch in &scenario.topology.switches {
        let counters = ["unparsed", "pipelined", "received", "sent"];
        all.extend(counters.map(|name| (format!("switch.{switch}.{name}"), Measure::Number)));
    }
    match &scenario.workload {
        Some(Workload::Redis(redis)) => {
            for client in &redis.clients {
                let stem = format!("client.{}", client.name);
                all.extend(
                    ["requests", "errors"].map(|name| (format!("{stem}.{name}"), Measure::Number)),
                );
                all.extend(LATENCY.map(|name| (format!("{stem}.{name}"), Measure::Duration)));
                let mut commands: Vec<_> = client
                    .commands
                    .iter()
                    .filter_map(|words| words.first())
                    .collect();
                commands.sort_unstable();
                commands.dedup();
                for command in commands.into_iter().map(|word| word.to_lowercase()) {
                    all.push((format!("{stem}.{command}.requests"), Measure::Number));
                    all.extend(
                        LATENCY.map(|name| (format!("{stem}.{command}.{name}"), Measure::Duration)),
                    );
                }
            }
        }
        Some(Workload::Training(_)) => all.extend(
            [
                ("training.accuracy", Measure::Number),
                ("training.iterations", Measure::Number),
                ("training.chunks", Measure::Number),
                ("training.weights_equal", Measure::Number),
                ("training.retransmitted_bytes", Measure::Size),
                ("training.server_link_bytes", Measure::Size),
                ("training.wall", Measure::Duration),
            ]
            .map(|(name, measure)| (name.to_owned(), measure)),
        ),
        Some(Workload::Idle { .. }) | None => {}
    }
    all
}
