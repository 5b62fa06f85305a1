//! The header of every JSON object that weir prints or writes, and the form of metrics in these objects.

use scenario::model::expect::metric::Metrics;
use serde::Serialize;
use serde_json::{Map, Number, Value};

use crate::experiment::observe::machine::{self, Machine};

/// Version of weir's JSON format; incremented when a name or its meaning changes.
pub const SCHEMA: u32 = 3;

/// The header of a JSON object: the command that ran, its version, when, and on which machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Header {
    /// Version of the JSON format, [`SCHEMA`].
    pub schema: u32,
    /// Name of the command, such as `weir run`.
    pub tool: &'static str,
    /// Version of weir.
    pub version: &'static str,
    /// When the report was made, in UTC: `2026-11-23T08:15:00Z`.
    pub date: String,
    /// The machine on which the command ran.
    pub machine: Machine,
}

impl Header {
    /// Creates the header of a command that runs now on this machine.
    pub fn new(tool: &'static str) -> Header {
        Header {
            schema: SCHEMA,
            tool,
            version: env!("CARGO_PKG_VERSION"),
            date: machine::date(),
            machine: Machine::here(),
        }
    }

    /// Formats the header as one line for readers: command, version, date, machine.
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

/// Metrics as JSON by names that contain their unit; all values but ratios are rounded to whole numbers.
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
