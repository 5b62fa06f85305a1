//! Writes a status in Prometheus' text format, version 0.0.4.

use std::fmt::Write;

use super::names::{self, Metric, MetricKind};
use super::status::{Role, Status};

/// The metrics of a rank, worker or server in Prometheus' text format.
pub fn page(status: &Status) -> String {
    let mut out = String::new();
    for metric in names::ALL {
        let samples = samples(status, metric);
        if samples.is_empty() {
            continue;
        }
        let Metric { name, kind, help } = metric;
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        };
        // Writing to a string does not fail.
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        let rank = status.rank.filter(|_| status.role != Role::Server);
        let rank = rank.map_or_else(|| "server".to_owned(), |rank| rank.to_string());
        for (labels, value) in samples {
            let _ = writeln!(
                out,
                "{name}{{job=\"{}\",rank=\"{rank}\"{labels}}} {value}",
                status.job
            );
        }
    }
    out
}

/// The samples of a metric, as pairs of further labels and value.
fn samples(status: &Status, metric: &Metric) -> Vec<(String, String)> {
    let one = |value: String| vec![(String::new(), value)];
    let waits = status.waits.as_ref();
    let name = metric.name;
    if name == names::INFO.name {
        let role = match status.role {
            Role::Rank => "rank",
            Role::Worker => "worker",
            Role::Server => "server",
        };
        let interface = escaped(status.interface.as_deref().unwrap_or_default());
        let io = escaped(status.io.as_deref().unwrap_or_default());
        let labels = format!(",role=\"{role}\",interface=\"{interface}\",io=\"{io}\"");
        return vec![(labels, "1".to_owned())];
    }
    if name == names::RANKS.name {
        return one(status.ranks.to_string());
    }
    if name == names::UP.name {
        return one(u8::from(status.failed.is_none()).to_string());
    }
    if name == names::STATUS_AGE.name {
        return one(seconds(status.age_ms));
    }
    if name == names::WAITING.name {
        return one(seconds(waits.map_or(0.0, |waits| waits.since_ms)));
    }
    if name == names::WAITING_SLOT.name {
        return waits.map_or_else(Vec::new, |waits| one(waits.slot.to_string()));
    }
    if name == names::WAITS_FOR.name {
        let misses = waits.map_or(&[][..], |waits| &waits.misses);
        let sample = |worker| (format!(",worker=\"{worker}\""), "1".to_owned());
        return misses.iter().map(sample).collect();
    }
    let counted = status.counters.get(name);
    counted.map_or_else(Vec::new, |value| one(value.to_string()))
}

fn seconds(ms: f64) -> String {
    (ms / 1e3).to_string()
}

/// Escapes a label's value for use between quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
