//! Lists the metrics that a run of a scenario delivers.

use std::collections::BTreeSet;

use crate::model::Scenario;
use crate::model::disruption::Subject;
use crate::model::expect::Measure;
use crate::model::expect::metric::{
    ClientMetric, CommandMetric, DURATION, FaultMetric, FlowMetric, Metric, ProbeMetric, RunMetric,
    Statistic, SwitchMetric, TrainingMetric, TriggerMetric,
};
use crate::model::workload::Workload;
use crate::model::workload::commands::Command;

/// All metrics that a run of this scenario delivers, with the names of its faults, flows, hosts and so on.
pub(super) fn metrics(scenario: &Scenario) -> BTreeSet<Metric> {
    let mut all: BTreeSet<Metric> = RunMetric::ALL.iter().copied().map(Metric::Run).collect();
    for fault in &scenario.faults {
        let is_timed = fault.effect.is_timed();
        let whats = FaultMetric::ALL.iter().copied();
        all.extend(
            whats
                .filter(|what| *what != FaultMetric::Beyond || is_timed)
                .filter(|what| *what != FaultMetric::Keyless || fault.keys.is_some())
                .filter(|what| match what {
                    FaultMetric::Recovered | FaultMetric::Recovery => fault.takes_rdma_data(),
                    _ => true,
                })
                .map(|what| Metric::fault(&fault.id, what)),
        );
    }
    for disruption in &scenario.disruptions {
        let is_switch = matches!(disruption.does.subject(), Subject::Switch(_));
        let whats = [
            FaultMetric::Fired,
            FaultMetric::Observed,
            FaultMetric::Missed,
        ];
        // A restarted switch has a count of packets that it forwarded while it was down.
        let more = is_switch.then_some(FaultMetric::Collateral);
        let whats = whats.into_iter().chain(more);
        all.extend(whats.map(|what| Metric::fault(&disruption.id, what)));
    }
    for trigger in &scenario.triggers {
        let whats = TriggerMetric::ALL.iter().copied();
        let known = whats.filter(|what| *what != TriggerMetric::Keyless || trigger.keys.is_some());
        all.extend(known.map(|what| Metric::trigger(&trigger.name, what)));
    }
    for flow in &scenario.flows {
        for name in [&flow.declared, &flow.name] {
            let whats = FlowMetric::ALL.iter();
            all.extend(whats.map(|what| Metric::flow(name, *what)));
        }
    }
    for switch in &scenario.topology.switches {
        let whats = SwitchMetric::ALL.iter();
        all.extend(whats.map(|what| Metric::switch(switch, *what)));
    }
    for probe in &scenario.probes {
        let whats = ProbeMetric::ALL.iter();
        all.extend(whats.map(|what| Metric::probe(&probe.name, *what)));
    }
    match &scenario.workload {
        Some(Workload::Commands(declared)) => {
            all.extend(declared.commands.iter().flat_map(command_metrics));
        }
        Some(Workload::Redis(redis)) => {
            for client in &redis.clients {
                let commands = client.commands.iter().filter_map(|words| words.first());
                let groups = commands.map(|word| Some(word.as_str())).chain([None]);
                for command in groups {
                    // The server's errors are counted over all commands.
                    let whats = ClientMetric::ALL.iter().copied();
                    all.extend(
                        whats
                            .filter(|what| *what != ClientMetric::Errors || command.is_none())
                            .map(|what| Metric::client(&client.name, command, what)),
                    );
                }
            }
        }
        Some(Workload::Training(_)) => {
            all.extend(TrainingMetric::ALL.iter().copied().map(Metric::Training));
        }
        Some(Workload::Idle { .. }) | None => {}
    }
    all
}

fn command_metrics(command: &Command) -> impl Iterator<Item = Metric> {
    let name = command.name.as_str();
    let whats = CommandMetric::ALL.iter();
    let own = whats.map(move |what| Metric::command(name, *what));
    let declared = command.series.iter();
    let declared = declared.map(|series| (series.name.as_str(), series.measure));
    let series = [(DURATION, Measure::Duration)].into_iter().chain(declared);
    own.chain(series.flat_map(move |(series, measure)| {
        let statistics = Statistic::ALL.iter().copied().map(Some);
        let all = [None].into_iter().chain(statistics);
        all.map(move |what| Metric::series(name, series, measure, what))
    }))
}
