//! Gathers the results of the user's commands: metrics, failures, and the last part of each output.

use scenario::model::expect::Measure;
use scenario::model::expect::metric::{CommandMetric, DURATION, Metric, Statistic};
use serde::Serialize;
use testbeds::command::{Stream, StreamTail};

use super::super::error::CommandError;
use super::super::{Measured, Timed};
use super::driver::Runs;
use super::watch::MAX_NUMBERS;
use super::{CommandsLoad, Prepared, service};
use crate::experiment::percentile::percentile;

/// Number of last output lines that the message on a driver's failure shows.
const LAST_WORDS: usize = 2;

/// The result of a command of the workload.
#[derive(Debug, Clone, Serialize)]
pub struct CommandResult {
    /// Name of the command.
    pub name: String,
    /// Host of the command.
    pub host: String,
    /// Whether the command is a service; otherwise it is a driver.
    pub service: bool,
    /// Number of finished runs of the command.
    pub runs: u64,
    /// Number of runs whose exit code was not 0.
    pub failures: u64,
    /// Number of runs that a fault ended; no other field includes these runs.
    pub ended_by_faults: u64,
    /// The first exit code that is not 0, or 0 if there is none; `None` for a service that weir stopped.
    pub exit: Option<i32>,
    /// The durations of the runs, and the numbers that metrics found in the output.
    pub series: Vec<SeriesResult>,
    /// Last part of the standard output.
    pub stdout: StreamKept,
    /// Last part of the standard error.
    pub stderr: StreamKept,
}

/// Numbers of a metric in a command's output, or durations of the command's runs: in ns, bytes, bit/s, or without a unit.
#[derive(Debug, Clone, Serialize)]
pub struct SeriesResult {
    /// Name of the metric, or `duration`.
    pub name: String,
    /// Measure of the numbers, which gives their unit.
    pub measure: Measure,
    /// The last number that was found; `None` if there is none.
    pub last: Option<f64>,
    /// Statistics of the numbers, each with its value; without numbers, only their count (0).
    #[serde(serialize_with = "by_word")]
    pub statistics: Vec<(Statistic, f64)>,
}

/// Last part of the standard output or standard error of a command.
#[derive(Debug, Clone, Serialize)]
pub struct StreamKept {
    /// Last part of the output, as text.
    pub tail: String,
    /// Number of bytes that the command wrote in total.
    pub bytes: u64,
}

fn by_word<S: serde::Serializer>(
    statistics: &[(Statistic, f64)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(statistics.iter().map(|(what, value)| (what.word(), value)))
}

/// Stops the services, and gathers the results of all commands.
pub(super) fn finish(mut job: CommandsLoad) -> Result<Measured, CommandError> {
    let mut measured = Measured::default();
    // In reverse order: a service may use services that were started before it.
    for service in job.services.iter_mut().rev() {
        if !service.stop()? {
            measured.remarks.push(format!(
                "service `{}` did not end after its stop signal, and was killed",
                service.prepared.name()
            ));
        }
    }
    for service in &job.services {
        let runs = Runs {
            exit: service.exit.unwrap_or_default(),
            failures: u64::from(service.exit.is_some_and(|exit| exit != 0)),
            ended_by_faults: service.ended_by_faults,
            ..Runs::default()
        };
        let starts = u64::from(service.starts);
        let result = result(&service.prepared, &runs, service.exit, starts)?;
        measured.timed.extend(over_time(&service.prepared, &runs));
        measured.remarks.extend(unread(&service.prepared));
        measured.add(result);
    }
    let ended = job.services.iter().find_map(|service| {
        let hint = service.after_its_probe()?;
        let name = service.prepared.name();
        Some(format!("; service `{name}` had ended: {hint}"))
    });
    // A service may have closed its socket after the probe, and still run.
    let probed = || job.services.iter().find_map(service::Service::was_probed);
    let probed = ended.or_else(|| Some(format!("; {}", probed()?)));
    for (prepared, driver) in &job.drivers {
        let runs = driver.as_ref().map(super::Driver::runs).unwrap_or_default();
        let count = runs.durations_ns.len() as u64;
        if runs.failures > 0 && !prepared.end_is_expected {
            let failure = failure(prepared, &runs, count);
            let probed = probed.as_deref().unwrap_or_default();
            measured.failures.push(format!("{failure}{probed}"));
        }
        // The exit code of a command that only faults have ended is unknown.
        let has_ended = count > 0 || runs.ended_by_faults == 0;
        let exit = has_ended.then_some(runs.exit);
        let result = result(prepared, &runs, exit, count)?;
        measured.timed.extend(over_time(prepared, &runs));
        measured.remarks.extend(unread(prepared));
        measured.add(result);
    }
    Ok(measured)
}

fn failure(prepared: &Prepared, runs: &Runs, count: u64) -> String {
    let how = service::describe(runs.exit);
    let how = match runs.exit {
        127 => format!("{how}: the shell did not find a program"),
        _ => how,
    };
    let said = prepared.output.last_words(LAST_WORDS);
    let said = said.map_or_else(String::new, |words| {
        format!(": {}", words.replace('\n', "; "))
    });
    match count {
        1 => format!("command `{}` failed: {how}{said}", prepared.name()),
        _ => format!(
            "command `{}` failed in {} of {count} runs, first with {how}{said}",
            prepared.name(),
            runs.failures
        ),
    }
}

fn result(
    prepared: &Prepared,
    runs: &Runs,
    exit: Option<i32>,
    count: u64,
) -> Result<CommandResult, CommandError> {
    let numbers = prepared
        .watch
        .numbers()
        .map_err(|series| CommandError::TooManyNumbers {
            name: prepared.name().to_owned(),
            series,
            limit: MAX_NUMBERS,
        })?;
    let durations = (DURATION, Measure::Duration, runs.durations_ns.as_slice());
    let declared = numbers.iter();
    let declared = declared.map(|(of, numbers)| (of.name.as_str(), of.measure, numbers.as_slice()));
    let series = [durations].into_iter().chain(declared);
    let kept = |stream| {
        let StreamTail { tail, bytes } = prepared.output.kept(stream);
        StreamKept { tail, bytes }
    };
    Ok(CommandResult {
        name: prepared.name().to_owned(),
        host: prepared.command.host.clone(),
        service: prepared.command.is_service(),
        runs: count,
        failures: runs.failures,
        ended_by_faults: runs.ended_by_faults,
        exit,
        series: series
            .map(|(name, measure, numbers)| SeriesResult {
                name: name.to_owned(),
                measure,
                last: numbers.last().copied(),
                statistics: statistics(numbers),
            })
            .collect(),
        stdout: kept(Stream::Stdout),
        stderr: kept(Stream::Stderr),
    })
}

/// Messages on matches of a command's metrics that are not numbers, and so are missing in the series.
fn unread(prepared: &Prepared) -> impl Iterator<Item = String> {
    let name = prepared.name().to_owned();
    let unread = prepared.watch.unread().into_iter();
    unread.map(move |(series, times, first)| {
        format!(
            "command `{name}`: metric `{series}` found {times} {}, the first `{first}`",
            if times == 1 {
                "text that is not a number"
            } else {
                "texts that are not numbers"
            }
        )
    })
}

/// Values of a command over time: durations of its runs, and numbers in its output.
fn over_time(prepared: &Prepared, runs: &Runs) -> Vec<Timed> {
    let name = |series: &str| format!("command {}, {series}", prepared.name());
    let began = runs.began_ns.iter().copied();
    let mut all = vec![Timed {
        name: name(DURATION),
        measure: Measure::Duration,
        points: began.zip(runs.durations_ns.iter().copied()).collect(),
    }];
    let declared = prepared.watch.over_time().into_iter();
    all.extend(declared.map(|(series, points)| Timed {
        name: name(&series.name),
        measure: series.measure,
        points,
    }));
    all.retain(|timed| timed.points.len() > 1);
    all
}

impl Measured {
    fn add(&mut self, result: CommandResult) {
        let name = result.name.as_str();
        let mut insert = |what, value: f64| {
            self.metrics.insert(Metric::command(name, what), value);
        };
        insert(CommandMetric::Runs, result.runs as f64);
        insert(CommandMetric::Failures, result.failures as f64);
        if let Some(exit) = result.exit {
            insert(CommandMetric::Exit, f64::from(exit));
        }
        for series in &result.series {
            let statistics = series.statistics.iter();
            let statistics = statistics.map(|(what, value)| (Some(*what), *value));
            let last = series.last.map(|last| (None, last));
            for (what, value) in statistics.chain(last) {
                let metric = Metric::series(name, &series.name, series.measure, what);
                self.metrics.insert(metric, value);
            }
        }
        self.commands.push(result);
    }
}

/// Statistics of numbers; without numbers, only their count (0).
pub(crate) fn statistics(numbers: &[f64]) -> Vec<(Statistic, f64)> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut all = vec![(Statistic::Count, sorted.len() as f64)];
    let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else {
        return all;
    };
    all.extend([
        (Statistic::Min, *min),
        (
            Statistic::Mean,
            sorted.iter().sum::<f64>() / sorted.len() as f64,
        ),
        (Statistic::P50, percentile(&sorted, 50)),
        (Statistic::P90, percentile(&sorted, 90)),
        (Statistic::P99, percentile(&sorted, 99)),
        (Statistic::Max, *max),
    ]);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_of_the_numbers_themselves() {
        let numbers: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let values: Vec<f64> = statistics(&numbers)
            .into_iter()
            .map(|(_, value)| value)
            .collect();
        assert_eq!(values, [200.0, 1.0, 100.5, 100.0, 180.0, 198.0, 200.0]);
        assert_eq!(statistics(&[]), [(Statistic::Count, 0.0)]);
        assert_eq!(statistics(&[7.0]).last(), Some(&(Statistic::Max, 7.0)));
    }
}
