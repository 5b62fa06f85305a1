//! The metrics of a run: the quantities that it measures, and their names in expectations and reports.

mod group;
mod name;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::Measure;
use group::Line;

pub use group::{
    ClientMetric, CommandMetric, FaultMetric, FlowMetric, ProbeMetric, RunMetric, Statistic,
    SwitchMetric, TrainingMetric, TriggerMetric,
};
pub use name::Name;

/// The measured value of each metric: counts and ratios as they are, durations in nanoseconds, sizes in bytes.
pub type Metrics = BTreeMap<Metric, f64>;

/// Name of the series that every command has: the durations of its runs.
pub const DURATION: &str = "duration";

// The groups: the first word of a metric's name.
const RUN: &str = "run";
const FAULT: &str = "fault";
const TRIGGER: &str = "trigger";
const FLOW: &str = "flow";
const CLIENT: &str = "client";
const TRAINING: &str = "training";
const SWITCH: &str = "switch";
const COMMAND: &str = "command";
const PROBE: &str = "probe";

/// A quantity that a run measures.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// A metric of the whole run: `run.wall`
    Run(RunMetric),
    /// A metric of a fault: `fault.drop-gets.fired`
    Fault {
        /// The fault's name.
        id: Name,
        /// Which quantity the metric measures.
        what: FaultMetric,
    },
    /// A metric of a trigger: `trigger.third.on`
    Trigger {
        /// The trigger's name.
        name: Name,
        /// Which quantity the metric measures.
        what: TriggerMetric,
    },
    /// A metric of a flow: `flow.updates.w6.lost`
    Flow {
        /// Name of a declared flow, or of one of the flows to which a declared flow was expanded.
        name: Name,
        /// Which quantity the metric measures.
        what: FlowMetric,
    },
    /// A metric of a client: `client.a.p90`, `client.a.get.p90`
    Client {
        /// The client's name.
        name: Name,
        /// A Redis command in lower case; `None`: the metric covers requests with any command.
        command: Option<Name>,
        /// Which quantity the metric measures.
        what: ClientMetric,
    },
    /// A metric of the training: `training.accuracy`
    Training(TrainingMetric),
    /// A metric of a switch: `switch.core.received`
    Switch {
        /// The switch's name.
        name: Name,
        /// Which quantity the metric measures.
        what: SwitchMetric,
    },
    /// A metric of a command of the workload: `command.web.exit`
    Command {
        /// The command's name.
        name: Name,
        /// Which quantity the metric measures.
        what: CommandMetric,
    },
    /// A metric of a series of numbers that a command prints: `command.load.rps`, `command.load.duration.p99`
    Series {
        /// The command's name.
        command: Name,
        /// The series' name.
        series: Name,
        /// The statistic of the numbers; `None`: the last number of the series.
        statistic: Option<Statistic>,
        /// The quantity that the numbers measure, as the file declares it.
        measure: Measure,
    },
    /// A metric of a probe: `probe.web.p99`
    Probe {
        /// The probe's name.
        name: Name,
        /// Which quantity the metric measures.
        what: ProbeMetric,
    },
}

impl Metric {
    /// Whether every run delivers the metric as a count, and naming it in `expect` changes nothing. (Naming a command's
    /// failures or keyless packets permits them; naming a trigger makes the run count it.)
    pub(crate) fn is_a_given_count(&self) -> bool {
        match self {
            Metric::Fault { what, .. } => !matches!(
                what,
                FaultMetric::Keyless
                    | FaultMetric::Beyond
                    | FaultMetric::Recovered
                    | FaultMetric::Recovery
            ),
            Metric::Flow { what, .. } => what.line().measure == Measure::Number,
            Metric::Switch { .. } => true,
            Metric::Client { what, .. } => {
                matches!(what, ClientMetric::Requests | ClientMetric::Errors)
            }
            Metric::Probe { what, .. } => {
                matches!(what, ProbeMetric::Count | ProbeMetric::Failures)
            }
            Metric::Command { what, .. } => *what == CommandMetric::Runs,
            Metric::Run(_)
            | Metric::Trigger { .. }
            | Metric::Training(_)
            | Metric::Series { .. } => false,
        }
    }

    /// The metric with this quantity of the named fault.
    #[must_use]
    pub fn fault(id: &str, what: FaultMetric) -> Metric {
        let id = id.into();
        Metric::Fault { id, what }
    }

    /// The metric with this quantity of the named trigger.
    #[must_use]
    pub fn trigger(name: &str, what: TriggerMetric) -> Metric {
        let name = name.into();
        Metric::Trigger { name, what }
    }

    /// The metric with this quantity of the named flow.
    #[must_use]
    pub fn flow(name: &str, what: FlowMetric) -> Metric {
        let name = name.into();
        Metric::Flow { name, what }
    }

    /// The metric with this quantity of the named client: for its requests with one command, or for all requests (`None`).
    #[must_use]
    pub fn client(name: &str, command: Option<&str>, what: ClientMetric) -> Metric {
        Metric::Client {
            name: name.into(),
            command: command.map(|word| word.to_lowercase().as_str().into()),
            what,
        }
    }

    /// The metric with this quantity of the named switch.
    #[must_use]
    pub fn switch(name: &str, what: SwitchMetric) -> Metric {
        let name = name.into();
        Metric::Switch { name, what }
    }

    /// The metric with this quantity of the named command.
    #[must_use]
    pub fn command(name: &str, what: CommandMetric) -> Metric {
        let name = name.into();
        Metric::Command { name, what }
    }

    /// The metric of a series of numbers in a command's output.
    #[must_use]
    pub fn series(
        command: &str,
        series: &str,
        measure: Measure,
        statistic: Option<Statistic>,
    ) -> Metric {
        Metric::Series {
            command: command.into(),
            series: series.into(),
            statistic,
            measure,
        }
    }

    /// The metric with this quantity of the named probe.
    #[must_use]
    pub fn probe(name: &str, what: ProbeMetric) -> Metric {
        let name = name.into();
        Metric::Probe { name, what }
    }

    /// The parts of the metric's name: its group, up to two names, and the last word with its measure.
    fn parts(&self) -> (&'static str, [Option<&Name>; 2], Line) {
        match self {
            Metric::Run(what) => (RUN, [None; 2], what.line()),
            Metric::Fault { id, what } => (FAULT, [Some(id), None], what.line()),
            Metric::Trigger { name, what } => (TRIGGER, [Some(name), None], what.line()),
            Metric::Flow { name, what } => (FLOW, [Some(name), None], what.line()),
            Metric::Client {
                name,
                command,
                what,
            } => (CLIENT, [Some(name), command.as_ref()], what.line()),
            Metric::Training(what) => (TRAINING, [None; 2], what.line()),
            Metric::Switch { name, what } => (SWITCH, [Some(name), None], what.line()),
            Metric::Command { name, what } => (COMMAND, [Some(name), None], what.line()),
            Metric::Series {
                command,
                series,
                statistic,
                measure,
            } => {
                let word = statistic.map_or("", |what| what.line().word);
                let measure = match statistic {
                    Some(Statistic::Count) => Measure::Number,
                    _ => *measure,
                };
                let line = Line { word, measure };
                (COMMAND, [Some(command), Some(series)], line)
            }
            Metric::Probe { name, what } => (PROBE, [Some(name), None], what.line()),
        }
    }

    /// The quantity that the metric measures, and thus its unit.
    #[must_use]
    pub fn measure(&self) -> Measure {
        let (.., line) = self.parts();
        line.measure
    }

    /// Whether the run knows the metric while it goes on. Other metrics come from captures, or from files of the workload.
    #[must_use]
    pub fn is_live(&self) -> bool {
        match self {
            Metric::Fault { what, .. } => *what == FaultMetric::Fired || self.is_judged_live(),
            Metric::Trigger { what, .. } => *what == TriggerMetric::On,
            Metric::Run(what) => *what == RunMetric::Wall,
            Metric::Probe { .. } => true,
            _ => false,
        }
    }

    /// Whether the judge counts the metric while the run goes on.
    #[must_use]
    pub fn is_judged_live(&self) -> bool {
        let Metric::Fault { what, .. } = self else {
            return false;
        };
        matches!(
            what,
            FaultMetric::Observed | FaultMetric::Missed | FaultMetric::Collateral
        )
    }

    /// Whether the metric is of a series that a command's `metrics` extracts from its output.
    pub(crate) fn is_of_numbers(&self) -> bool {
        match self {
            Metric::Series { series, .. } => series.as_str() != DURATION,
            _ => false,
        }
    }

    /// Whether the metric's value may be fractional; other metrics are whole numbers of packets, nanoseconds or bytes.
    #[must_use]
    pub fn is_ratio(&self) -> bool {
        match self {
            Metric::Training(what) => *what == TrainingMetric::Accuracy,
            // A number that a program prints may be fractional.
            Metric::Series { statistic, .. } => {
                self.measure() == Measure::Number && *statistic != Some(Statistic::Count)
            }
            _ => false,
        }
    }

    /// The metric's name followed by its unit, for formats without typed values: `run.wall_ns`.
    #[must_use]
    pub fn with_unit(&self) -> String {
        match (self.measure(), self) {
            (Measure::Duration, _) => format!("{self}_ns"),
            (Measure::Size, Metric::Series { .. }) => format!("{self}_bytes"),
            (Measure::Rate, Metric::Series { .. }) => format!("{self}_bps"),
            // The words of sizes contain their unit.
            (Measure::Size | Measure::Number | Measure::Rate, _) => self.to_string(),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (group, names, line) = self.parts();
        f.write_str(group)?;
        for name in names.into_iter().flatten() {
            write!(f, ".{name}")?;
        }
        match line.word {
            "" => Ok(()),
            word => write!(f, ".{word}"),
        }
    }
}

/// The error for a text that is not the name of any metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no metric has this name")]
pub struct UnknownMetric;

/// Parses a metric's name. Series of numbers that a file declares are not parsed: their names do not say what they measure.
impl FromStr for Metric {
    type Err = UnknownMetric;

    fn from_str(text: &str) -> Result<Metric, UnknownMetric> {
        let (group, rest) = text.split_once('.').ok_or(UnknownMetric)?;
        // Names of expanded flows contain dots, and names of commands may: only the first and last words are certain.
        let named = || match rest.rsplit_once('.') {
            Some((name, word)) if !name.is_empty() => Ok((name, word)),
            _ => Err(UnknownMetric),
        };
        match group {
            RUN => Ok(Metric::Run(RunMetric::of(rest)?)),
            TRAINING => Ok(Metric::Training(TrainingMetric::of(rest)?)),
            FAULT => {
                let (id, word) = named()?;
                Ok(Metric::fault(id, FaultMetric::of(word)?))
            }
            TRIGGER => {
                let (name, word) = named()?;
                Ok(Metric::trigger(name, TriggerMetric::of(word)?))
            }
            FLOW => {
                let (name, word) = named()?;
                Ok(Metric::flow(name, FlowMetric::of(word)?))
            }
            SWITCH => {
                let (name, word) = named()?;
                Ok(Metric::switch(name, SwitchMetric::of(word)?))
            }
            PROBE => {
                let (name, word) = named()?;
                Ok(Metric::probe(name, ProbeMetric::of(word)?))
            }
            COMMAND => {
                let duration = |name, what| Metric::series(name, DURATION, Measure::Duration, what);
                match named()? {
                    (name, DURATION) => Ok(duration(name, None)),
                    (name, word) => match name.rsplit_once('.') {
                        Some((name, DURATION)) => Ok(duration(name, Some(Statistic::of(word)?))),
                        Some(_) => Err(UnknownMetric),
                        None => Ok(Metric::command(name, CommandMetric::of(word)?)),
                    },
                }
            }
            CLIENT => {
                let (name, word) = named()?;
                let what = ClientMetric::of(word)?;
                Ok(match name.split_once('.') {
                    None => Metric::client(name, None, what),
                    Some((name, command)) => Metric::client(name, Some(command), what),
                })
            }
            _ => Err(UnknownMetric),
        }
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        let client = |command, what| Metric::client("a", command, what);
        for (name, metric) in [
            ("run.wall", Metric::Run(RunMetric::Wall)),
            (
                "fault.drop-gets.fired",
                Metric::fault("drop-gets", FaultMetric::Fired),
            ),
            (
                "trigger.third.on",
                Metric::trigger("third", TriggerMetric::On),
            ),
            (
                "flow.updates.w6.lost",
                Metric::flow("updates.w6", FlowMetric::Lost),
            ),
            ("client.a.p90", client(None, ClientMetric::P90)),
            (
                "client.a.json.get.p90",
                client(Some("JSON.GET"), ClientMetric::P90),
            ),
            (
                "training.server_link_bytes",
                Metric::Training(TrainingMetric::ServerLinkBytes),
            ),
            (
                "command.web.exit",
                Metric::command("web", CommandMetric::Exit),
            ),
            (
                "command.web.duration",
                Metric::series("web", DURATION, Measure::Duration, None),
            ),
            (
                "command.web.duration.p99",
                Metric::series("web", DURATION, Measure::Duration, Some(Statistic::P99)),
            ),
            ("probe.web.max", Metric::probe("web", ProbeMetric::Max)),
            (
                "switch.core.unparsed",
                Metric::switch("core", SwitchMetric::Unparsed),
            ),
        ] {
            assert_eq!(metric.to_string(), name);
            assert_eq!(name.parse(), Ok(metric));
        }
        for wrong in [
            "",
            "run",
            "run.",
            "run.walls",
            "fault.fired",
            "fault..fired",
            "trigger.on",
            "trigger.third.fired",
            "flow.x.fired",
            "client.a.get.p91",
            "host.a.sent",
            "command.web.rps",
            "command.web.rps.p99",
            "command.duration",
            "probe.p99",
        ] {
            assert_eq!(wrong.parse::<Metric>(), Err(UnknownMetric), "{wrong}");
        }
    }

    #[test]
    fn units_stand_in_names_that_no_type_explains() {
        let shown = |name: &str| name.parse::<Metric>().map(|metric| metric.with_unit());
        assert_eq!(shown("run.wall").as_deref(), Ok("run.wall_ns"));
        assert_eq!(shown("flow.x.lost").as_deref(), Ok("flow.x.lost"));
        let declared = |measure, what| Metric::series("c", "x", measure, what).with_unit();
        assert_eq!(declared(Measure::Duration, None), "command.c.x_ns");
        assert_eq!(declared(Measure::Size, None), "command.c.x_bytes");
        assert_eq!(
            declared(Measure::Rate, Some(Statistic::Max)),
            "command.c.x.max_bps"
        );
        assert_eq!(
            declared(Measure::Rate, Some(Statistic::Count)),
            "command.c.x.count"
        );
        let bytes = "training.retransmitted_bytes";
        assert_eq!(shown(bytes).as_deref(), Ok(bytes));
    }

    #[test]
    fn metrics_of_h2_stand_before_those_of_h10() {
        let names = ["flow.h10.sent", "flow.h2.lost", "flow.h2.sent", "run.wall"];
        let mut sorted = names.map(|name| name.parse::<Metric>().unwrap());
        sorted.sort();
        let sorted = sorted.map(|metric| metric.to_string());
        assert_eq!(
            sorted,
            ["run.wall", "flow.h2.sent", "flow.h2.lost", "flow.h10.sent"]
        );
    }
}
