//! Converts the proved results of a run into metrics.

use scenario::model::expect::metric::{FaultMetric, FlowMetric, Metric, Metrics, TriggerMetric};

use super::conclusion::Conclusion;

/// Adds the counts of faults, triggers and flows to the metrics, under the names that `expect` uses.
pub fn add_metrics(metrics: &mut Metrics, conclusion: &Conclusion) {
    let mut add = |metric, value: Option<u64>| {
        value.map(|value| metrics.insert(metric, value as f64));
    };
    for fault in &conclusion.faults {
        let mut add = |what, value| add(Metric::fault(&fault.id, what), value);
        add(FaultMetric::Fired, Some(fault.fired));
        add(FaultMetric::Observed, Some(fault.observed));
        add(FaultMetric::Overridden, Some(fault.overridden));
        add(FaultMetric::Unforwarded, Some(fault.unforwarded));
        add(FaultMetric::Keyless, fault.keyless);
        add(FaultMetric::Missed, Some(fault.missed));
        add(FaultMetric::Collateral, Some(fault.collateral));
        add(FaultMetric::Boundary, Some(fault.boundary));
        add(FaultMetric::Slow, Some(fault.slow));
        add(FaultMetric::Beyond, fault.latest_ns);
        add(FaultMetric::Recovered, fault.recovered);
        add(FaultMetric::Recovery, fault.recovery_ns);
    }
    for disruption in &conclusion.disruptions {
        let mut add = |what, value| add(Metric::fault(&disruption.id, what), value);
        add(FaultMetric::Fired, Some(disruption.fired));
        add(FaultMetric::Observed, Some(disruption.observed));
        add(FaultMetric::Missed, Some(disruption.missed));
        add(FaultMetric::Collateral, disruption.collateral);
    }
    for trigger in &conclusion.triggers {
        let mut add = |what, value| add(Metric::trigger(&trigger.name, what), value);
        add(TriggerMetric::On, trigger.on);
        add(TriggerMetric::Keyless, trigger.keyless);
    }
    for (name, count) in &conclusion.flows {
        let mut add = |what, value| add(Metric::flow(name, what), Some(value));
        add(FlowMetric::Sent, count.sent);
        add(FlowMetric::Received, count.received);
        add(FlowMetric::Lost, count.lost);
        add(FlowMetric::Extra, count.extra);
        if count.received > 0 {
            add(FlowMetric::P50, count.percentile_ns(50));
            add(FlowMetric::P99, count.percentile_ns(99));
        }
        add(FlowMetric::Longest, count.longest_ns);
    }
}
