//! The training workload: a server and workers as processes of their hosts, watched until all have reported.

use std::process::Command;
use std::time::{Duration, Instant};

use host_agent::agent::{Line, Report, RoundReport, ServerReport, WorkerReport};
use p4lang::runtime::{ActionCall, FieldMatch, Match, TableEntry};
use scenario::model::Scenario;
use scenario::plan::JOB;
use scenario::workload::Training;
use testbeds::bed::{Attachment, Bed, BedError};
use testbeds::host::{Output, Process, ProcessError};

/// How long an agent may take to say that it is ready.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// After one agent has failed, how long the others are waited for, so that each can say what it misses.
const FAREWELL: Duration = Duration::from_secs(25);
/// How long the server's next line is waited for before the others are looked at.
const TURN: Duration = Duration::from_millis(5);

/// What is asked of the agents beyond the workload's declaration.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Seed of the model and of the batches.
    pub seed: u64,
    /// The run fails when it takes longer.
    pub time_limit: Duration,
}

/// What the agents reported.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The server.
    pub server: ServerReport,
    /// By rank.
    pub workers: Vec<WorkerReport>,
    /// After each round.
    pub rounds: Vec<RoundReport>,
    /// From the start signal to the last report.
    pub wall: Duration,
}

/// Why a training did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum TrainingError {
    /// The network.
    #[error(transparent)]
    Bed(#[from] BedError),
    /// A process.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Agents that ended with an error: what each said.
    #[error("{}", .0.join("\n"))]
    Agents(Vec<String>),
    /// The time was up.
    #[error("the training is not done after {} s; {}", .limit.as_secs(), .state)]
    Time {
        /// How long was allowed.
        limit: Duration,
        /// How far it had come.
        state: String,
    },
    /// A host that the topology does not have.
    #[error("the topology has no host {0}")]
    Host(String),
    /// Whoever watched wanted it to end.
    #[error(transparent)]
    Interrupted(Box<dyn std::error::Error + Send + Sync>),
}

/// Entries that make a switch sum a job's updates: the job, and its members by the port that leads to them.
pub fn aggregation_entries(
    scenario: &Scenario,
    training: &Training,
    switch: &str,
) -> Vec<TableEntry> {
    let exact = |field: &str, value: u128| FieldMatch {
        field: field.to_owned(),
        value: Match::exact(value),
    };
    let call = |name: &str, params: &[(&str, u128)]| ActionCall {
        name: format!("SwitchIngress.aggregate.{name}"),
        params: params
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).into()))
            .collect(),
    };
    let all_workers = (1_u128 << training.workers.len()) - 1;
    let job = TableEntry {
        table: "SwitchIngress.aggregate.jobs".to_owned(),
        key: vec![exact("hdr.agg.job", JOB.into())],
        priority: 0,
        action: call(
            "aggregate_job",
            &[
                ("all_workers_", all_workers),
                ("base_", 0),
                ("window_", training.window.into()),
                ("slot_mask_", u128::from(training.window) - 1),
            ],
        ),
    };
    let members = training
        .workers
        .iter()
        .enumerate()
        .filter_map(|(rank, worker)| {
            let port = scenario.topology.next_hop(switch, worker)?.number;
            Some(TableEntry {
                table: "SwitchIngress.aggregate.members".to_owned(),
                key: vec![
                    exact("hdr.agg.job", JOB.into()),
                    exact("hdr.agg.worker", rank as u128),
                    exact("meta.port", port.into()),
                ],
                priority: 0,
                action: call("member", &[("worker_bit_", 1 << rank)]),
            })
        });
    std::iter::once(job).chain(members).collect()
}

/// Chunks of one iteration that carry values.
pub fn chunks_per_iteration() -> usize {
    host_agent::train::PARAMETERS.div_ceil(wire::VALUES_PER_PACKET)
}

struct Agent {
    process: Process,
    report: Option<Report>,
    failure: Option<String>,
}

/// The agents of a job, started and ready.
pub struct Job {
    agents: Vec<Agent>,
    settings: Settings,
    iterations: u32,
}

impl Job {
    /// Starts all agents, and waits until each can receive.
    pub fn start(
        bed: &Bed,
        scenario: &Scenario,
        training: &Training,
        settings: Settings,
    ) -> Result<Job, TrainingError> {
        let host = |name: &str| {
            scenario
                .topology
                .host(name)
                .ok_or_else(|| TrainingError::Host(name.to_owned()))
        };
        let server = host(&training.server)?;
        let common = |command: &mut Command, name: &str| -> Result<(), TrainingError> {
            let own = host(name)?;
            command.args(["--job", &JOB.to_string()]);
            command.args(["--workers", &training.workers.len().to_string()]);
            command.args(["--window", &training.window.to_string()]);
            command.args([
                "--seed",
                &settings.seed.to_string(),
                "--rounds",
                &training.iterations.to_string(),
            ]);
            command.args([
                "--mac",
                &own.mac.to_string(),
                "--ip",
                &own.ip.to_string(),
                "--wait",
            ]);
            match bed.host_attachment(name)? {
                Attachment::Interface(interface) => command.args(["--iface", &interface]),
                socket @ Attachment::Socket(_) => {
                    let text = socket.to_string();
                    command.args(["--link-fd", text.trim_start_matches("fd:")])
                }
            };
            Ok(())
        };
        let mut commands = Vec::new();
        let mut command = Command::new("/proc/self/exe");
        let mode = if training.aggregate_on.is_some() {
            "switch"
        } else {
            "direct"
        };
        command.args(["agent", "server", "--mode", mode]);
        for worker in &training.workers {
            let peer = host(worker)?;
            command.args(["--peer", &format!("{}/{}", peer.mac, peer.ip)]);
        }
        common(&mut command, &training.server)?;
        commands.push((training.server.as_str(), command));
        for (rank, worker) in training.workers.iter().enumerate() {
            let mut command = Command::new("/proc/self/exe");
            command.args(["agent", "worker", "--rank", &rank.to_string()]);
            command.args([
                "--server-mac",
                &server.mac.to_string(),
                "--server-ip",
                &server.ip.to_string(),
            ]);
            common(&mut command, worker)?;
            commands.push((worker.as_str(), command));
        }
        let mut agents = Vec::new();
        for (host, command) in commands {
            let process = bed.spawn_in_host(host, command)?;
            agents.push(Agent {
                process,
                report: None,
                failure: None,
            });
        }
        let mut job = Job {
            agents,
            settings,
            iterations: training.iterations,
        };
        job.await_ready()?;
        Ok(job)
    }

    fn await_ready(&mut self) -> Result<(), TrainingError> {
        for agent in &mut self.agents {
            match agent.process.next_line(START_TIMEOUT) {
                Output::Line(line) if matches!(serde_json::from_str(&line), Ok(Line::Ready)) => {}
                _ => {
                    agent.process.wait(Duration::from_secs(1))?;
                    let said =
                        last_words(&mut agent.process).unwrap_or_else(|| "is not ready".to_owned());
                    return Err(TrainingError::Agents(vec![format!(
                        "{}: {said}",
                        agent.process.host()
                    )]));
                }
            }
        }
        Ok(())
    }

    /// Lets all start, and watches them to their end. `each_turn` is called often.
    pub fn run(
        mut self,
        mut each_turn: impl FnMut(Turn<'_>) -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<Outcome, TrainingError> {
        let start = Instant::now();
        for agent in &mut self.agents {
            agent.process.write_line("go")?;
        }
        let mut rounds: Vec<RoundReport> = Vec::new();
        let mut failed_at: Option<Instant> = None;
        loop {
            for (position, agent) in self.agents.iter_mut().enumerate() {
                agent.read(
                    if position == 0 { TURN } else { Duration::ZERO },
                    &mut rounds,
                )?;
            }
            let turn = Turn {
                elapsed: start.elapsed(),
                round: rounds.last(),
                agents: &mut self.agents,
            };
            each_turn(turn).map_err(TrainingError::Interrupted)?;
            if self.agents.iter().all(Agent::has_ended) {
                break;
            }
            if self.agents.iter().any(|agent| agent.failure.is_some()) {
                let since = failed_at.get_or_insert_with(Instant::now);
                if since.elapsed() > FAREWELL {
                    break;
                }
            }
            if start.elapsed() > self.settings.time_limit {
                let state = format!(
                    "{} of {} iterations were applied",
                    rounds.len(),
                    self.iterations
                );
                return Err(TrainingError::Time {
                    limit: self.settings.time_limit,
                    state,
                });
            }
        }
        let wall = start.elapsed();
        let failures: Vec<String> = self
            .agents
            .iter()
            .filter_map(|agent| agent.failure.clone())
            .collect();
        if !failures.is_empty() {
            return Err(TrainingError::Agents(failures));
        }
        let (mut server, mut workers) = (None, Vec::new());
        for agent in self.agents {
            match agent.report {
                Some(Report::Server(report)) => server = Some(report),
                Some(Report::Worker(report)) => workers.push(report),
                _ => {}
            }
        }
        let server = server
            .ok_or_else(|| TrainingError::Agents(vec!["the server sent no report".to_owned()]))?;
        Ok(Outcome {
            server,
            workers,
            rounds,
            wall,
        })
    }
}

/// A look at a job while it runs.
pub struct Turn<'a> {
    /// Since the start.
    pub elapsed: Duration,
    /// The last that the server has applied.
    pub round: Option<&'a RoundReport>,
    agents: &'a mut [Agent],
}

impl Turn<'_> {
    /// How many rounds the server has applied.
    pub fn rounds_done(&self) -> u64 {
        self.round.map_or(0, |round| round.round + 1)
    }

    /// A worker's process, by rank.
    pub fn worker(&mut self, rank: usize) -> Option<&mut Process> {
        self.agents
            .get_mut(rank + 1)
            .map(|agent| &mut agent.process)
    }
}

impl Agent {
    fn has_ended(&self) -> bool {
        self.report.is_some() || self.failure.is_some()
    }

    /// Takes the lines that are there.
    fn read(
        &mut self,
        timeout: Duration,
        rounds: &mut Vec<RoundReport>,
    ) -> Result<(), TrainingError> {
        let mut timeout = timeout;
        while !self.has_ended() {
            match self.process.next_line(timeout) {
                Output::Line(line) => match serde_json::from_str(&line) {
                    Ok(Line::Round(round)) => rounds.push(round),
                    Ok(Line::Report(report)) => self.report = Some(report),
                    Ok(Line::Ready) | Err(_) => {}
                },
                Output::TimedOut => return Ok(()),
                Output::End => {
                    let status = self.process.wait(Duration::from_secs(5))?;
                    let ended = status.map_or_else(
                        || "closed its output".to_owned(),
                        |status| status.to_string(),
                    );
                    let ended = format!("host {} ended: {ended}", self.process.host());
                    self.failure = Some(last_words(&mut self.process).unwrap_or(ended));
                }
            }
            timeout = Duration::ZERO;
        }
        Ok(())
    }
}

/// The last line that a process wrote to its standard error.
fn last_words(process: &mut Process) -> Option<String> {
    let said = process.stderr();
    said.lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty())
        .map(str::to_owned)
}
