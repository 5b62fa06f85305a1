//! What every JSON object of ours begins with, and how metrics stand in one.

use scenario::expect::metric::Metrics;
use serde::Serialize;
use serde_json::{Map, Number, Value};

use crate::experiment::machine::{self, Machine};

/// Counted up when a name or its meaning changes.
pub const SCHEMA: u32 = 3;

/// What was run, when and where.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Header {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `weir run`
    pub tool: &'static str,
    /// Of the tool.
    pub version: &'static str,
    /// When the report was made.
    pub date: String,
    /// On what.
    pub machine: Machine,
}

impl Header {
    /// Of a command, now and here.
    pub fn of(tool: &'static str) -> Header {
        Header {
            schema: SCHEMA,
            tool,
            version: env!("CARGO_PKG_VERSION"),
            date: machine::date(),
            machine: Machine::here(),
        }
    }

    /// For people.
    pub fn line(&self) -> String {
        let Machine {
            kernel,
            processor,
            processors,
        } = &self.machine;
        format!(
            "{} {}, {}, on {processors} × {processor}, {kernel}",
            self.tool, self.version, self.date
        )
    }
}

/// Metrics by names that say their unit; whole numbers where nothing else makes sense.
pub fn metrics(metrics: &Metrics) -> Map<String, Value> {
    let value = |value: f64, is_ratio: bool| match is_ratio {
        false if (0.0..1.8e19).contains(&value) => Value::from(value.round() as u64),
        _ => Number::from_f64(value).map_or(Value::Null, Value::Number),
    };
    metrics
        .iter()
        .map(|(metric, number)| (metric.with_unit(), value(*number, metric.is_ratio())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_whole_and_durations_say_their_unit() {
        let measured: Metrics = [
            ("training.accuracy", 1.0),
            ("run.wall", 7.0e9),
            ("client.a.mean", 1.5),
            ("flow.h10.sent", 3.0),
            ("flow.h2.sent", 2.0),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name.parse().ok()?, value)))
        .collect();
        assert_eq!(
            Value::Object(metrics(&measured)).to_string(),
            r#"{"run.wall_ns":7000000000,"flow.h2.sent":2,"flow.h10.sent":3,"client.a.mean_ns":2,"training.accuracy":1.0}"#
        );
    }
}
