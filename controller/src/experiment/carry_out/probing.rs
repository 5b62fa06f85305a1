//! Runs a workload together with its probes, which send requests to services while the workload runs.

use std::net::SocketAddrV4;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use scenario::Scenario;
use scenario::model::expect::metric::{Metric, Metrics, ProbeMetric};
use scenario::model::probe::{Ask, Endpoint, Probe};
use scenario::model::workload::commands::CommandLine;
use serde::{Serialize, Serializer};
use testbeds::bed::{Bed, BedError};
use testbeds::host::Host;
use testbeds::probes::{Answers, ProbeProgram, ProbeRequest, Probes, Sample};

use super::error::ExperimentError;
use super::timeline::Activity;
use super::workload::Load;
use crate::experiment::percentile::percentile;
use crate::experiment::prepare::Environment;

/// Metrics of a probe that are read during a run cover the requests of this recent period.
const RECENT: Duration = Duration::from_secs(5);

/// A workload with the probes that run beside it.
pub struct Probing {
    /// The workload beside which the probes run.
    pub load: Box<dyn Load>,
    declared: Vec<(Probe, Host, ProbeRequest)>,
    running: Option<Probes>,
}

/// Requests and answers of a probe.
#[derive(Debug, Clone, Serialize)]
pub struct ProbeResult {
    /// Name of the probe in the scenario.
    pub name: String,
    /// Name of the host that sent the requests.
    pub from: String,
    /// The request in words: `http 10.0.0.2:80/`, `run curl http://s/`.
    pub question: String,
    /// Why the first failed request failed; `None` if no request failed.
    pub first_failure: Option<String>,
    /// Number of requests after the maximum number of kept samples was reached; no other count includes these requests.
    pub beyond: u64,
    /// Time and latency of each request, in JSON `[time, latency]` in ms; the latency is null if there was no good answer.
    #[serde(serialize_with = "pairs")]
    pub samples: Vec<Sample>,
}

fn pairs<S: Serializer>(samples: &[Sample], serializer: S) -> Result<S::Ok, S::Error> {
    let ms = |ns: u64| ns as f64 / 1e6;
    serializer.collect_seq(
        samples
            .iter()
            .map(|sample| (ms(sample.at_ns), sample.latency_ns.map(ms))),
    )
}

impl Probing {
    /// Prepares the probes of a scenario to run beside its workload; no probe sends requests yet.
    pub fn new(
        bed: &Bed,
        scenario: &Scenario,
        load: Box<dyn Load>,
        environment: &Arc<Environment>,
    ) -> Result<Probing, ExperimentError> {
        let mut declared = Vec::new();
        for probe in &scenario.probes {
            let unknown = |host: &str| BedError::Unknown(format!("host {host}"));
            let host = match bed.host(&probe.from) {
                Some(host) => host.clone(),
                None if scenario.topology.host(&probe.from).is_some() => {
                    return Err(BedError::NoKernelIp.into());
                }
                None => return Err(unknown(&probe.from).into()),
            };
            let at = |to: &Endpoint| -> Result<SocketAddrV4, BedError> {
                let address = to.address(&scenario.topology);
                address.ok_or_else(|| unknown(&to.host))
            };
            let question = match &probe.ask {
                Ask::Tcp { to } => ProbeRequest::Tcp(at(to)?),
                Ask::Udp { to, send } => ProbeRequest::Udp(at(to)?, send.clone()),
                Ask::Http { to, path } => ProbeRequest::Http {
                    to: at(to)?,
                    host: authority(to),
                    path: path.clone(),
                },
                Ask::Run(run) => ProbeRequest::Program(ProbeProgram {
                    host: host.clone(),
                    user: environment.user,
                    command: environment.asker(probe, run),
                    text: as_typed(run),
                }),
            };
            declared.push((probe.clone(), host, question));
        }
        Ok(Probing {
            load,
            declared,
            running: None,
        })
    }

    /// Adds metrics of each probe's recent requests, under the names that `abort_if` and `on` use.
    pub fn add_recent(&self, metrics: &mut Metrics) {
        let recent = self.running.as_ref().map(|probes| probes.recent(RECENT));
        let declared = self.declared.iter().zip(recent.into_iter().flatten());
        for ((probe, _, question), answers) in declared {
            ProbeResult::new(probe, question, answers).add_metrics(metrics);
        }
    }

    /// Ends the probes; returns the workload and each probe's result, in declared order.
    pub fn finish(self) -> Result<(Box<dyn Load>, Vec<ProbeResult>), ExperimentError> {
        let answers = match self.running {
            Some(probes) => probes.finish().map_err(ExperimentError::Probes)?,
            None => Vec::new(),
        };
        let declared = self.declared.into_iter().zip(answers);
        let results = declared
            .map(|((probe, _, question), answers)| ProbeResult::new(&probe, &question, answers));
        Ok((self.load, results.collect()))
    }
}

/// Host and port of a service, as an HTTP request's `Host` header has them: `s`, `s:8080`.
fn authority(to: &Endpoint) -> String {
    match to.port {
        80 => to.host.clone(),
        port => format!("{}:{port}", to.host),
    }
}

/// Formats a program and its arguments as a user writes them.
fn as_typed(run: &CommandLine) -> String {
    match run {
        CommandLine::Line(line) => line.text().trim().to_owned(),
        CommandLine::Words(words) => {
            let words: Vec<&str> = words.iter().map(|word| word.text()).collect();
            words.join(" ")
        }
    }
}

impl Activity for Probing {
    type Error = ExperimentError;

    fn begin(&mut self) -> Result<(), ExperimentError> {
        if !self.declared.is_empty() {
            let probes = self.declared.iter();
            let probes =
                Probes::start(probes.map(|(probe, host, question)| (probe, host, question)));
            self.running = Some(probes.map_err(ExperimentError::Probes)?);
        }
        // The first step is in force here.
        tracing::info!("workload begins");
        Ok(self.load.begin()?)
    }

    fn poll(&mut self, most: Duration) -> Result<ControlFlow<()>, ExperimentError> {
        Ok(self.load.poll(most)?)
    }
}

impl ProbeResult {
    fn new(probe: &Probe, question: &ProbeRequest, answers: Answers) -> ProbeResult {
        ProbeResult {
            name: probe.name.clone(),
            from: probe.from.clone(),
            question: question.to_string(),
            first_failure: answers.first_failure,
            beyond: answers.beyond,
            samples: answers.samples,
        }
    }

    /// Number of requests that got no good answer.
    pub fn failures(&self) -> u64 {
        let failed = |sample: &&Sample| sample.latency_ns.is_none();
        self.samples.iter().filter(failed).count() as u64
    }

    /// Remark on requests after the maximum number of samples; `None` if there were none.
    pub fn remark(&self) -> Option<String> {
        let (name, kept) = (&self.name, self.samples.len());
        let failed = self.failures();
        if let Some(why) = self
            .first_failure
            .as_ref()
            .filter(|_| failed == kept as u64)
        {
            return Some(format!(
                "probe {name}: none of {kept} requests succeeded; the first failure: {why}"
            ));
        }
        (self.beyond > 0).then(|| {
            format!(
                "probe {name}: its metrics leave out {} requests after the first {kept}",
                self.beyond
            )
        })
    }

    /// Adds metrics of the probe's requests, under the names that `expect` uses.
    pub fn add_metrics(&self, metrics: &mut Metrics) {
        let mut latencies: Vec<u64> = self.samples.iter().filter_map(|s| s.latency_ns).collect();
        latencies.sort_unstable();
        let mut insert = |what, value: f64| {
            metrics.insert(Metric::probe(&self.name, what), value);
        };
        insert(ProbeMetric::Count, self.samples.len() as f64);
        insert(ProbeMetric::Failures, self.failures() as f64);
        let (Some(min), Some(max)) = (latencies.first(), latencies.last()) else {
            return;
        };
        insert(ProbeMetric::Min, *min as f64);
        insert(ProbeMetric::Max, *max as f64);
        let sum: f64 = latencies.iter().map(|ns| *ns as f64).sum();
        insert(ProbeMetric::Mean, sum / latencies.len() as f64);
        insert(ProbeMetric::P50, percentile(&latencies, 50) as f64);
        insert(ProbeMetric::P90, percentile(&latencies, 90) as f64);
        insert(ProbeMetric::P99, percentile(&latencies, 99) as f64);
    }
}
