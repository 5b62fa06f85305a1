//! Translates metric names of other tools to metrics of weir, for hints.

use crate::model::expect::Term;
use crate::model::expect::metric::{ClientMetric, CommandMetric, FlowMetric, Metric, ProbeMetric};

/// Translations of metric names: the first word of a metric's name in weir, last words in other tools, the last word in weir.
const WORDS: [(&str, &[&str], &str); 25] = [
    ("run", &["time", "duration", "elapsed", "runtime"], "wall"),
    (
        "fault",
        &["hits", "count", "triggered", "injected", "packets"],
        "fired",
    ),
    (
        "fault",
        &["delay", "late", "lateness", "latency", "jitter"],
        "beyond",
    ),
    ("trigger", &["fired", "count", "hits"], "on"),
    ("flow", &["packets", "count", "tx", "total"], "sent"),
    ("flow", &["rx", "delivered"], "received"),
    ("flow", &["drops", "dropped", "drop", "missing"], "lost"),
    ("flow", &["duplicates", "duplicated", "dup"], "extra"),
    ("flow", &["latency", "delay", "rtt"], "p50"),
    ("flow", &["max", "p100"], "longest"),
    ("switch", &["rx", "in", "packets"], "received"),
    ("switch", &["tx", "out"], "sent"),
    ("switch", &["ecn", "ce"], "marked"),
    ("client", &["latency", "rtt"], "p50"),
    ("client", &["count", "total"], "requests"),
    ("client", &["failures", "failed"], "errors"),
    ("probe", &["latency", "rtt"], "p50"),
    ("probe", &["requests", "total"], "count"),
    ("probe", &["errors", "failed"], "failures"),
    (
        "command",
        &["time", "elapsed", "runtime", "latency"],
        "duration",
    ),
    ("command", &["p50", "median"], "duration.p50"),
    ("command", &["p90"], "duration.p90"),
    ("command", &["p99"], "duration.p99"),
    (
        "command",
        &["code", "status", "rc", "exit_code", "returncode"],
        "exit",
    ),
    ("command", &["errors", "failed"], "failures"),
];

/// Words of other tools for a share of packets, and weir's metric for the number of these packets: `loss` is `lost`.
const SHARES: [(&[&str], &str); 2] = [
    (&["loss", "loss_rate", "drop_rate"], "lost"),
    (&["duplication"], "extra"),
];

/// Group (first word of a metric's name), words that it lacks but other tools use, and a hint on what to use instead.
const ELSEWHERE: [(&str, &[&str], &str); 2] = [
    (
        "flow",
        &["bytes", "throughput", "rate", "bps"],
        "a flow only counts packets; to read a value that a program prints, add `metrics` to its command",
    ),
    (
        "switch",
        &["dropped", "drops", "lost", "loss"],
        "a switch does not count drops; write `flow.NAME.lost`, which a flow counts",
    ),
];

/// The hint for another tool's metric name; `None` if the run has no metric with this meaning.
pub(super) fn hint(name: &str, is_known: &dyn Fn(&str) -> bool) -> Option<String> {
    let (stem, word) = name.rsplit_once('.')?;
    let group = stem.split('.').next()?;
    let is_of_run = |own: &str| is_known(&format!("{stem}.{own}"));
    let mut shares = SHARES.iter();
    if group == "flow"
        && let Some((_, own)) = shares.find(|(words, _)| words.contains(&word))
        && is_of_run(own)
    {
        return Some(format!(
            "write `{stem}.{own} / {stem}.sent` for a share; `{own}` alone is a number of packets"
        ));
    }
    let mut elsewhere = ELSEWHERE.iter();
    if let Some((.., what)) = elsewhere.find(|(of, words, _)| *of == group && words.contains(&word))
    {
        return Some((*what).to_owned());
    }
    let mut known = WORDS.iter();
    let (.., own) =
        known.find(|(of, words, own)| *of == group && words.contains(&word) && is_of_run(own))?;
    Some(format!("write `{stem}.{own}`"))
}

/// The metric of which a count is a part: lost packets are a part of sent packets. `None` if there is none.
pub(super) fn whole(count: &Term) -> Option<Metric> {
    let Term::Metric { metric, .. } = count else {
        return None;
    };
    match metric {
        Metric::Flow { name, .. } => Some(Metric::flow(name.as_str(), FlowMetric::Sent)),
        Metric::Command { name, what } if *what == CommandMetric::Failures => {
            Some(Metric::command(name.as_str(), CommandMetric::Runs))
        }
        Metric::Probe { name, what } if *what == ProbeMetric::Failures => {
            Some(Metric::probe(name.as_str(), ProbeMetric::Count))
        }
        Metric::Client {
            name,
            command: None,
            what,
        } if *what == ClientMetric::Errors => {
            Some(Metric::client(name.as_str(), None, ClientMetric::Requests))
        }
        _ => None,
    }
    .filter(|whole| whole != metric)
}
