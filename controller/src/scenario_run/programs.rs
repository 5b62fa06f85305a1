//! Report tables for the user's programs and for probes.

use scenario::diagnostic::shown as cut;
use scenario::model::expect::Measure;
use scenario::model::expect::metric::{Metric, Metrics, ProbeMetric, Statistic};
use scenario::units::show_rate;

use crate::experiment::carry_out::ProbeResult;
use crate::experiment::carry_out::workload::{CommandResult, StreamKept};
use crate::report::html::Page;
use crate::report::table::Table;
use crate::report::{grouped, milliseconds};

/// Table with a row per command: its host, number of runs, failures, exit code.
pub(super) fn commands_table(commands: &[CommandResult]) -> Table {
    let is_disrupted = commands.iter().any(|command| command.ended_by_faults > 0);
    let mut head = vec!["command", "host", "is a", "runs", "failures", "exit"];
    if is_disrupted {
        head.push("ended by faults");
    }
    let mut table = Table::new(head);
    for command in commands {
        let role = if command.service { "service" } else { "driver" };
        let ended = command.ended_by_faults;
        let without_exit = match (command.service, ended) {
            (true, 0) => "stopped",
            _ => "–",
        };
        let exit = command.exit.map(|exit| exit.to_string());
        let mut row = vec![
            command.name.clone(),
            command.host.clone(),
            role.to_owned(),
            grouped(command.runs),
            grouped(command.failures),
            exit.unwrap_or_else(|| without_exit.to_owned()),
        ];
        if is_disrupted {
            row.push(grouped(ended));
        }
        table.row(row);
    }
    table
}

/// Table with a row per series of a command: statistics of the numbers in its output, and of the durations of its runs.
pub(super) fn series_table(commands: &[CommandResult]) -> Table {
    let wanted = [
        Statistic::Count,
        Statistic::Min,
        Statistic::P50,
        Statistic::P90,
        Statistic::P99,
        Statistic::Max,
    ];
    let head = ["command", "series"]
        .into_iter()
        .chain(wanted.map(Statistic::word));
    let mut table = Table::new(head.collect::<Vec<_>>());
    for command in commands {
        for series in &command.series {
            let value = |wanted: Statistic| {
                let mut all = series.statistics.iter();
                all.find(|(what, _)| *what == wanted)
                    .map(|(_, value)| *value)
            };
            if value(Statistic::Count) == Some(0.0) && command.service {
                // A service has no durations.
                continue;
            }
            let cells = wanted.map(|what| match (value(what), what) {
                (None, _) => String::new(),
                (Some(count), Statistic::Count) => grouped(count as u64),
                (Some(value), _) => shown(value, series.measure),
            });
            let names = [command.name.clone(), series.name.clone()];
            table.row(names.into_iter().chain(cells).collect::<Vec<_>>());
        }
    }
    table
}

fn shown(value: f64, measure: Measure) -> String {
    match measure {
        Measure::Duration => milliseconds(value.max(0.0) as u64),
        Measure::Rate => show_rate(three_digits(value.max(0.0) as u64)),
        Measure::Size => format!("{} B", grouped(value.max(0.0) as u64)),
        Measure::Number => ((value * 1e3).round() / 1e3).to_string(),
    }
}

/// Rounds a number to three significant digits, the precision of measurements of programs: 184912403 → 185000000.
fn three_digits(value: u64) -> u64 {
    let unit = 10_u64.pow(value.max(1).ilog10().saturating_sub(2));
    (value + unit / 2) / unit * unit
}

/// Maximum number of characters of a probe's request in the table; the JSON has the whole request.
const QUESTION: usize = 40;

/// Table with a row per probe: its request, number of requests, failures, latencies.
pub(super) fn probes_table(probes: &[ProbeResult]) -> Table {
    let head = [
        "probe", "from", "asks", "count", "failures", "p50", "p90", "p99", "max",
    ];
    let mut table = Table::new(head);
    for probe in probes {
        let mut metrics = Metrics::new();
        probe.add_metrics(&mut metrics);
        let value = |what| metrics.get(&Metric::probe(&probe.name, what)).copied();
        let count = |what| value(what).map_or_else(String::new, |count| grouped(count as u64));
        let time = |what| value(what).map_or_else(String::new, |ns| milliseconds(ns as u64));
        table.row([
            probe.name.clone(),
            probe.from.clone(),
            cut(&probe.question, QUESTION),
            count(ProbeMetric::Count),
            count(ProbeMetric::Failures),
            time(ProbeMetric::P50),
            time(ProbeMetric::P90),
            time(ProbeMetric::P99),
            time(ProbeMetric::Max),
        ]);
    }
    table
}

/// Adds to the HTML page why requests of probes failed.
pub(super) fn add_failures(page: &mut Page, probes: &[ProbeResult]) {
    for probe in probes {
        if let Some(why) = &probe.first_failure {
            page.about(&format!(
                "Probe {}, the first request that failed: {why}.",
                probe.name
            ));
        }
    }
}

/// Adds to the HTML page the last part of each command's output.
pub(super) fn add_outputs(page: &mut Page, commands: &[CommandResult]) {
    if !commands.is_empty() {
        page.heading("Output of the commands");
    }
    for command in commands {
        for (stream, kept) in [("output", &command.stdout), ("error", &command.stderr)] {
            add_output(page, &command.name, stream, kept);
        }
    }
}

fn add_output(page: &mut Page, name: &str, stream: &str, kept: &StreamKept) {
    if kept.bytes == 0 {
        return;
    }
    let all = kept.tail.len() as u64 >= kept.bytes;
    let part = match all {
        true => String::new(),
        false => format!(", the end of {} bytes", grouped(kept.bytes)),
    };
    page.paragraph(&format!("{name}, standard {stream}{part}:"));
    page.preformatted(&kept.tail);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_three_digits() {
        assert_eq!(
            [0, 7, 999, 1_235, 184_912_403].map(three_digits),
            [0, 7, 999, 1_240, 185_000_000]
        );
        assert_eq!(shown(1.5e6, Measure::Rate), "1.5Mbit/s");
        assert_eq!(shown(0.12345, Measure::Number), "0.123");
    }
}
