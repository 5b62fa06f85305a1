//! Metrics of a run that its evidence proves.

use scenario::expect::metric::{FaultMetric, FlowMetric, Metric, Metrics, TriggerMetric};

use super::conclusion::Conclusion;

/// Adds the results of the captures, under the metric names that expectations use.
pub fn add_metrics(metrics: &mut Metrics, conclusion: &Conclusion) {
    for fault in &conclusion.faults {
        let values = [
            (FaultMetric::Fired, Some(fault.fired)),
            (FaultMetric::Observed, Some(fault.observed)),
            (FaultMetric::Overridden, Some(fault.overridden)),
            (FaultMetric::Unforwarded, Some(fault.unforwarded)),
            (FaultMetric::Keyless, fault.keyless),
            (FaultMetric::Missed, Some(fault.missed)),
            (FaultMetric::Collateral, Some(fault.collateral)),
            (FaultMetric::Boundary, Some(fault.boundary)),
            (FaultMetric::Slow, Some(fault.slow)),
            (FaultMetric::Beyond, fault.latest_ns),
            (FaultMetric::Recovered, fault.recovered),
            (FaultMetric::Recovery, fault.recovery_ns),
        ];
        let known = values.into_iter().filter_map(|(what, value)| {
            let metric = Metric::fault(&fault.id, what);
            value.map(|value| (metric, value as f64))
        });
        metrics.extend(known);
    }
    for disruption in &conclusion.disruptions {
        let values = [
            (FaultMetric::Fired, Some(disruption.fired)),
            (FaultMetric::Observed, Some(disruption.observed)),
            (FaultMetric::Missed, Some(disruption.missed)),
            (FaultMetric::Collateral, disruption.collateral),
        ];
        let known = values.into_iter().filter_map(|(what, value)| {
            let metric = Metric::fault(&disruption.id, what);
            value.map(|value| (metric, value as f64))
        });
        metrics.extend(known);
    }
    for trigger in &conclusion.triggers {
        let values = [
            (TriggerMetric::On, trigger.on),
            (TriggerMetric::Keyless, trigger.keyless),
        ];
        let known = values.into_iter().filter_map(|(what, value)| {
            let metric = Metric::trigger(&trigger.name, what);
            value.map(|value| (metric, value as f64))
        });
        metrics.extend(known);
    }
    for (name, count) in &conclusion.flows {
        let values = [
            (FlowMetric::Sent, count.sent),
            (FlowMetric::Received, count.received),
            (FlowMetric::Lost, count.lost),
            (FlowMetric::Extra, count.extra),
            (FlowMetric::Longest, count.longest_ns),
        ];
        metrics.extend(values.map(|(what, value)| (Metric::flow(name, what), value as f64)));
    }
}
