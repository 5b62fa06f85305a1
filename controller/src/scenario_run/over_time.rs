//! Draws a run over time on one axis: steps of the timeline, hits of faults, latencies, throughput of flows.

use std::collections::BTreeMap;

use scenario::model::expect::Measure;
use serde::Serialize;

use crate::experiment::conclude::steps::begun;
use crate::experiment::{Planned, RunResult};
use crate::report::chart::{COLUMNS, Chart, Content, Panel, Span, Unit, thinned};
use crate::report::grouped;
use crate::report::html::Page;
use proof::{Carried, MOST_FLOWS, Throughput};

/// Maximum number of series that are drawn; the tables of the report have all series.
const MOST_SERIES: usize = 24;

/// Maximum number of hits that are drawn as lines through all panels; more would merge into a gray field.
const MOST_MOMENTS: usize = 60;

/// Events and values of a run over time, for the drawing and for JSON. Times are in seconds since the workload began.
#[derive(Serialize)]
pub(super) struct OverTime<'r> {
    #[serde(skip)]
    end_s: f64,
    #[serde(skip)]
    steps: Vec<Span<'r>>,
    /// For each fault of a program or a switch: the times from its observed effect until it was undone, or until the end.
    disruptions: Vec<Disrupted<'r>>,
    /// Hits of each packet fault over time, by the fault's name.
    hits: BTreeMap<&'r str, Vec<Hit>>,
    /// Latencies and other numbers of clients, commands and probes over time.
    series: Vec<Series>,
    /// Number of series beyond `MOST_SERIES`, which are left out.
    #[serde(skip)]
    others: usize,
    /// Throughput of each declared flow over time.
    flows: Vec<Flow<'r>>,
}

/// A fault of a program or a switch, with the times in which it had its effect.
#[derive(Serialize)]
struct Disrupted<'r> {
    fault: &'r str,
    #[serde(skip)]
    title: String,
    from_to_s: Vec<(f64, f64)>,
}

/// Throughput of a declared flow over time.
#[derive(Serialize)]
struct Flow<'r> {
    flow: &'r str,
    #[serde(flatten)]
    carried: &'r Throughput,
}

/// Hits of a fault that are so close in time that the drawing shows them as one mark.
#[derive(Serialize)]
struct Hit {
    /// Time of the mark's first hit, in seconds since the workload began.
    at_s: f64,
    /// Number of hits that the mark stands for.
    hits: u64,
    /// Number of wrong hits among `hits`: missed, or of a frame that the fault had to spare.
    wrong: u64,
}

/// Values of a client, a command or a probe over time.
#[derive(Serialize)]
struct Series {
    /// Name of the series, such as `client a, latency`.
    name: String,
    measure: Measure,
    /// Time and value of each point; the value is `None` if there was no answer. Of dense points, only the extremes are kept.
    points: Vec<(f64, Option<f64>)>,
    #[serde(skip)]
    count: usize,
}

impl<'r> OverTime<'r> {
    pub fn new(planned: &'r Planned, run: &'r RunResult) -> OverTime<'r> {
        let end_s = run.carried_out.wall.as_secs_f64().max(1e-3);
        let start_ns = run.evidence.start_ns().unwrap_or(0);
        let since = |at_ns: u64| (at_ns as f64 - start_ns as f64) / 1e9;
        let mut series = series(run, since, end_s);
        let others = series.len().saturating_sub(MOST_SERIES);
        series.truncate(MOST_SERIES);
        let flows = run.conclusion.throughput.iter();
        OverTime {
            end_s,
            steps: steps(planned, run, end_s),
            disruptions: disruptions(run, since, end_s),
            hits: hits(planned, run, since, end_s),
            series,
            others,
            flows: flows
                .map(|(flow, carried)| Flow { flow, carried })
                .collect(),
        }
    }

    /// Adds the drawing to the HTML page; adds nothing if no panel has content.
    pub fn add(&self, page: &mut Page, planned: &Planned) {
        let mut panels: Vec<Panel> = Vec::new();
        for fault in &planned.scenario.faults {
            panels.extend(self.marks(&fault.id));
        }
        panels.extend(self.disruptions.iter().map(|disrupted| Panel {
            title: disrupted.title.clone(),
            unit: Unit::Number,
            content: Content::Stretches(disrupted.from_to_s.clone()),
        }));
        panels.extend(self.series.iter().map(Series::panel));
        for Flow { flow, carried } in &self.flows {
            panels.extend(carried_panels(flow, carried));
        }
        if panels.is_empty() {
            return;
        }
        let chart = Chart {
            label: "timeline",
            axis: "seconds since the workload began",
            end: self.end_s,
            bands: &self.steps,
            moments: &self.moments(),
            panels: &panels,
        };
        page.heading("Timeline");
        page.figure(&chart.svg(), &self.caption());
    }

    /// Times of all hits, or none if there are too many to be distinguished in all panels.
    fn moments(&self) -> Vec<f64> {
        let marks = self.hits.values().flatten();
        let moments: Vec<f64> = marks.map(|hit| hit.at_s).collect();
        match moments.len() > MOST_MOMENTS {
            true => Vec::new(),
            false => moments,
        }
    }

    fn marks(&self, fault: &str) -> Option<Panel> {
        let hits = self.hits.get(fault)?;
        let all: u64 = hits.iter().map(|hit| hit.hits).sum();
        let wrong: u64 = hits.iter().map(|hit| hit.wrong).sum();
        let told = match wrong {
            0 => String::new(),
            wrong => format!(", of which {} missed or collateral", grouped(wrong)),
        };
        let noun = if all == 1 { "packet" } else { "packets" };
        Some(Panel {
            title: format!("fault {fault}: {} {noun}{told}", grouped(all)),
            unit: Unit::Number,
            content: Content::Marks(hits.iter().map(|hit| (hit.at_s, hit.wrong > 0)).collect()),
        })
    }

    /// Caption that explains the parts of the drawing.
    fn caption(&self) -> String {
        let mut parts = Vec::new();
        if !self.steps.is_empty() {
            parts.push("Shaded: steps of the timeline.".to_owned());
        }
        if !self.disruptions.is_empty() {
            let text = "Bars: from when a program or a switch was seen to be disrupted, until that was undone.";
            parts.push(text.to_owned());
        }
        if !self.hits.is_empty() {
            let marks: usize = self.hits.values().map(Vec::len).sum();
            let all: u64 = self.hits.values().flatten().map(|hit| hit.hits).sum();
            let merged = match marks as u64 == all {
                true => String::new(),
                false => format!(
                    "; {} packets are {} marks: one mark stands for all packets within {} ms",
                    grouped(all),
                    grouped(marks as u64),
                    short(self.end_s * 1e3 / COLUMNS as f64)
                ),
            };
            let lines = match self.moments().is_empty() {
                true => "",
                false => " A thin line goes from each mark through all panels.",
            };
            parts.push(format!(
                "Marks: packets that a fault hit, at the time when they arrived at its switch{merged}.{lines}"
            ));
        }
        if self
            .series
            .iter()
            .any(|series| series.points.iter().any(|point| point.1.is_none()))
        {
            parts.push("Triangles at the top: requests that failed.".to_owned());
        }
        if self
            .series
            .iter()
            .any(|series| series.points.len() < series.count)
        {
            parts.push(format!(
                "Of series with more than {} numbers, the highest and the lowest of each {} ms are shown.",
                grouped(2 * COLUMNS as u64),
                short(self.end_s * 1e3 / COLUMNS as f64)
            ));
        }
        if self
            .series
            .iter()
            .any(|series| series.name.starts_with("command "))
        {
            parts.push(
                "A command's run is shown at its start, a number of its output at the time when it was written."
                    .to_owned(),
            );
        }
        if self.others > 0 {
            parts.push(format!(
                "{} more series are only in the tables and metrics.",
                self.others
            ));
        }
        if let Some(Flow { carried, .. }) = self.flows.first() {
            parts.push(format!(
                "Flows, from the captures, in bins of {} ms: in grey, the packets from the senders; over it in blue, the packets that left towards the receivers.",
                short(carried.bin_ns as f64 / 1e6)
            ));
        }
        if self.flows.len() == MOST_FLOWS {
            parts.push(format!(
                "At most {MOST_FLOWS} flows are shown, first those that faults act on."
            ));
        }
        parts.join(" ")
    }
}

impl Series {
    fn panel(&self) -> Panel {
        Panel {
            title: self.name.clone(),
            unit: match self.measure {
                Measure::Duration => Unit::Time,
                Measure::Size => Unit::Size,
                Measure::Rate => Unit::Rate,
                Measure::Number => Unit::Number,
            },
            content: Content::Points(self.points.clone()),
        }
    }
}

/// Formats a value with two significant digits: 1.4, 25, 0.071.
fn short(value: f64) -> String {
    let digits = (1.0 - value.abs().max(1e-9).log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Values of clients and commands, then of probes, each in declared order; `since` converts ns since 1970 to seconds.
fn series(run: &RunResult, since: impl Fn(u64) -> f64, end_s: f64) -> Vec<Series> {
    let measured = run.carried_out.measured.timed.iter().map(|timed| {
        let points = timed.points.iter();
        let points = points.map(|(at_ns, value)| (since(*at_ns), Some(*value)));
        (
            timed.name.clone(),
            timed.measure,
            points.collect::<Vec<_>>(),
        )
    });
    let probes = run.carried_out.probes.iter().map(|probe| {
        let points = probe.samples.iter().map(|sample| {
            let latency = sample.latency_ns.map(|ns| ns as f64);
            (sample.at_ns as f64 / 1e9, latency)
        });
        let name = format!("probe {}, latency", probe.name);
        (name, Measure::Duration, points.collect::<Vec<_>>())
    });
    let all = measured.chain(probes);
    let all = all.map(|(name, measure, mut points)| {
        // Numbers that services wrote before the workload began, or after it, do not belong to the run.
        points.retain(|(at_s, _)| (0.0..=end_s).contains(at_s));
        Series {
            name,
            measure,
            count: points.len(),
            points: thinned(&points, end_s),
        }
    });
    all.filter(|series| !series.points.is_empty()).collect()
}

/// Hits of each fault; hits in the same column of the drawing are merged.
fn hits<'r>(
    planned: &'r Planned,
    run: &RunResult,
    since: impl Fn(u64) -> f64,
    end_s: f64,
) -> BTreeMap<&'r str, Vec<Hit>> {
    let mut columns: BTreeMap<(&str, usize), Hit> = BTreeMap::new();
    for mark in &run.marks {
        let Some(injection) = planned.plan.injections.get(mark.injection) else {
            continue;
        };
        let at_s = since(mark.at_ns).clamp(0.0, end_s);
        let column = (at_s / end_s * COLUMNS as f64) as usize;
        let own = columns
            .entry((injection.fault.as_str(), column))
            .or_insert(Hit {
                at_s,
                hits: 0,
                wrong: 0,
            });
        own.at_s = own.at_s.min(at_s);
        own.hits += mark.hits;
        own.wrong += mark.wrong;
    }
    let mut hits: BTreeMap<&str, Vec<Hit>> = BTreeMap::new();
    for ((fault, _), hit) in columns {
        hits.entry(fault).or_default().push(hit);
    }
    hits
}

/// The two panels of a flow: bytes per second and packets per second.
fn carried_panels(flow: &str, carried: &Throughput) -> [Panel; 2] {
    let width_s = carried.bin_ns as f64 / 1e9;
    let panel = |unit, of: fn(&Carried) -> u64| {
        let rates = |bins: &[Carried]| bins.iter().map(|bin| of(bin) as f64 / width_s).collect();
        Panel {
            title: format!("flow {flow}"),
            unit,
            content: Content::Bins {
                width_s,
                sent: rates(&carried.sent),
                received: rates(&carried.received),
            },
        }
    };
    [
        panel(Unit::Throughput, |bin| bin.bytes),
        panel(Unit::Packets, |bin| bin.packets),
    ]
}

fn disruptions(run: &RunResult, since: impl Fn(u64) -> f64, end_s: f64) -> Vec<Disrupted<'_>> {
    let results = run.conclusion.disruptions.iter().filter_map(|result| {
        let times = result.times.iter();
        let from_to_s: Vec<(f64, f64)> = times
            .filter_map(|time| {
                let from = since(time.done_ns?).clamp(0.0, end_s);
                let to = time.undone_ns.map_or(end_s, &since).clamp(from, end_s);
                Some((from, to))
            })
            .collect();
        (!from_to_s.is_empty()).then(|| Disrupted {
            fault: &result.id,
            title: format!("fault {}: {} of {}", result.id, result.kind, result.on),
            from_to_s,
        })
    });
    results.collect()
}

/// The named steps of the timeline that began before the run ended, each from its beginning to its end.
fn steps<'r>(planned: &'r Planned, run: &RunResult, end_s: f64) -> Vec<Span<'r>> {
    let epochs = &planned.scenario.epochs;
    // A step that never began has no width at the end.
    let begun = begun(epochs, &run.evidence.writes).into_iter();
    let begun: Vec<f64> = begun
        .map(|at_ns| at_ns.map_or(end_s, |at_ns| at_ns as f64 / 1e9))
        .collect();
    let nexts = begun.iter().copied().skip(1).chain([end_s]);
    let steps = epochs.iter().zip(&begun).zip(nexts);
    steps
        .filter_map(|((epoch, from), to)| {
            let from = *from;
            let name = epoch.step.as_deref()?;
            let to = to.min(end_s);
            (from < to).then_some(Span { name, from, to })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_digits() {
        let shown = [1.4286, 25.0, 0.071_43, 500.0, 0.0, 10.0].map(short);
        assert_eq!(shown, ["1.4", "25", "0.071", "500", "0", "10"]);
    }
}
