//! The training workload: runs a server and workers as processes on their hosts until all of them have reported their results.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use aggregation::server::Part;
use aggregation::{JobId, WorkerId};
use host_agent::agent::{
    Line, Order, PartOf, PlaceInPart, Report, RoundReport, ServerReport, WorkerReport,
};
use host_agent::frames::Mac;
use scenario::model::Scenario;
use scenario::model::expect::metric::{Metric, TrainingMetric};
use scenario::model::gradient::Gradients;
use scenario::model::workload::{Training, Workload};
use scenario::plan::names::JOB;
use testbeds::bed::{Attachment, Bed};
use testbeds::host::{Output, Process};

use super::error::TrainingError;
use super::{Load, Measured, Position, WorkloadError};
use crate::experiment::fleet::aggregation::chunks_per_iteration;
use crate::experiment::process_end::{how_it_ended, last_words};

/// Timeout for an agent to report that it is ready.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// After one agent has failed, how long to wait for the others, whose errors may show the cause.
const FAREWELL: Duration = Duration::from_secs(25);

/// Reports of a training's server and workers.
#[derive(Debug, Clone)]
pub struct TrainingReports {
    /// Final report of the server.
    pub server: ServerReport,
    /// Final report of each worker, by rank.
    pub workers: Vec<WorkerReport>,
    /// Report of the server on each round.
    pub rounds: Vec<RoundReport>,
}

struct Agent {
    process: Process,
    report: Option<Report>,
    failure: Option<Failure>,
}

struct Failure {
    said: String,
    /// Whether a signal killed the agent, so that it could not report an error.
    was_killed: bool,
}

/// The processes of a training: the server first, then the workers by rank.
#[derive(Default)]
pub struct TrainingLoad {
    agents: Vec<Agent>,
    iterations: u32,
    rounds: Vec<RoundReport>,
    failed_at: Option<Instant>,
    /// For each new plan whose first chunk the server has not reported yet, oldest first: an order to each worker, by rank.
    moves: VecDeque<Vec<Move>>,
    /// First chunk of each new plan, and when the server received the first sum by the plan (`None`: not yet).
    replans: Vec<(u32, Option<u64>)>,
}

/// Order to a worker by a new plan: its place in a part that a switch sums (`None`: the server sums), and the next hop's MAC.
struct Move {
    part: Option<PlaceInPart>,
    via: Mac,
}

impl TrainingLoad {
    /// Starts the server and all workers, and waits until each of them can receive frames.
    pub fn start(
        bed: &Bed,
        scenario: &Scenario,
        training: &Training,
        weir: &Path,
    ) -> Result<TrainingLoad, TrainingError> {
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
            command.args(["--seed", &scenario.seed.to_string()]);
            command.args(["--rounds", &training.iterations.to_string()]);
            command.args(["--mac", &own.mac.to_string()]);
            command.args(["--ip", &own.ip.to_string(), "--wait"]);
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
        let mut command = Command::new(weir);
        let mode = match (&scenario.gradients, &training.aggregate_on) {
            (Some(_), _) => "parts",
            (None, Some(_)) => "switch",
            (None, None) => "direct",
        };
        command.args(["agent", "server", "--mode", mode]);
        for part in summed_parts(scenario) {
            command.args(["--part", &part.to_string()]);
        }
        for worker in &training.workers {
            let peer = host(worker)?;
            command.args(["--peer", &format!("{}/{}", peer.mac, peer.ip)]);
        }
        common(&mut command, &training.server)?;
        commands.push((training.server.as_str(), command));
        let gradients = scenario.gradients.as_ref();
        for (rank, worker) in training.workers.iter().enumerate() {
            let mut command = Command::new(weir);
            command.args(["agent", "worker", "--rank", &rank.to_string()]);
            command.args(["--server-mac", &server.mac.to_string()]);
            command.args(["--server-ip", &server.ip.to_string()]);
            if let Some(place) = gradients.and_then(|gradients| place(gradients, worker)) {
                command.args(["--via", &place.via.to_string()]);
                if let Some(part) = place.part {
                    command.args(["--part", &part.to_string()]);
                }
            }
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
        let mut job = TrainingLoad {
            agents,
            iterations: training.iterations,
            ..TrainingLoad::default()
        };
        job.await_ready()?;
        tracing::info!(workers = training.workers.len(), "agents are ready");
        Ok(job)
    }

    fn await_ready(&mut self) -> Result<(), TrainingError> {
        for agent in &mut self.agents {
            match agent.process.next_line(START_TIMEOUT) {
                Output::Line(line) if matches!(serde_json::from_str(&line), Ok(Line::Ready)) => {}
                _ => {
                    agent.process.wait(Duration::from_secs(1))?;
                    let said = last_words(&mut agent.process)
                        .unwrap_or_else(|| "did not report that it is ready".to_owned());
                    return Err(TrainingError::Agents(vec![format!(
                        "{}: {said}",
                        agent.process.host()
                    )]));
                }
            }
        }
        Ok(())
    }
}

/// The parts of the gradients' plan that switches sum, in the form that the server takes: job number and workers of each part.
fn summed_parts(scenario: &Scenario) -> Vec<PartOf> {
    let parts = scenario
        .gradients
        .iter()
        .flat_map(|gradients| &gradients.parts);
    let summed = parts.filter(|part| part.on.is_some()).map(|part| {
        let ranks = part
            .members
            .iter()
            .map(|member| WorkerId(member.rank as u16));
        PartOf(Part {
            number: JobId(part.number),
            workers: ranks.collect(),
        })
    });
    summed.collect()
}

/// Where a plan makes the worker on `host` send its updates; `None` if the plan has no worker there.
fn place(gradients: &Gradients, host: &str) -> Option<Move> {
    let (part, member) = gradients.part_of(host)?;
    let child = part.members.iter().position(|other| other == member)?;
    Some(Move {
        part: part.on.as_ref().map(|_| PlaceInPart {
            number: JobId(part.number),
            child: WorkerId(child as u16),
        }),
        via: Mac(part.address(member).0),
    })
}

/// Replies of the server to orders: the first chunk of a new plan; or a plan's first chunk, and when its first sum arrived.
enum Reply {
    Replanned(u32),
    Resumed(u32, u64),
}

impl TrainingLoad {
    /// Sends the workers their orders for the oldest plan that they have not received; `from` is the plan's first chunk.
    fn tell_workers(&mut self, from: u32) {
        self.replans.push((from, None));
        let moves = self.moves.pop_front().unwrap_or_default();
        for (agent, Move { part, via }) in self.agents.iter_mut().skip(1).zip(moves) {
            agent.order(&Order::Move { part, via, from });
        }
    }

    fn failures(&self) -> TrainingError {
        let failures = self
            .agents
            .iter()
            .filter_map(|agent| agent.failure.as_ref());
        let mut failures: Vec<&Failure> = failures.collect();
        failures.sort_by_key(|failure| !failure.was_killed);
        TrainingError::Agents(
            failures
                .iter()
                .map(|failure| failure.said.clone())
                .collect(),
        )
    }
}

impl Load for TrainingLoad {
    fn begin(&mut self) -> Result<(), WorkloadError> {
        for agent in &mut self.agents {
            agent
                .process
                .write_line("go")
                .map_err(TrainingError::Process)?;
        }
        Ok(())
    }

    fn poll(&mut self, most: Duration) -> Result<ControlFlow<()>, WorkloadError> {
        let mut said = Vec::new();
        for (position, agent) in self.agents.iter_mut().enumerate() {
            // Waits only for the server's next line.
            let timeout = if position == 0 { most } else { Duration::ZERO };
            agent.read(timeout, &mut self.rounds, &mut said)?;
        }
        for said in said {
            match said {
                Reply::Replanned(from) => self.tell_workers(from),
                Reply::Resumed(from, at_ns) => {
                    // A plan that another one replaced before its first chunk never has a sum.
                    let mut known = self.replans.iter_mut().rev();
                    if let Some((_, resumed_ns)) = known.find(|(first, _)| *first == from) {
                        *resumed_ns = Some(at_ns);
                    }
                }
            }
        }
        let all_ended = self.agents.iter().all(Agent::has_ended);
        if self.agents.iter().any(|agent| agent.failure.is_some()) {
            let since = self.failed_at.get_or_insert_with(Instant::now);
            if all_ended || since.elapsed() > FAREWELL {
                return Err(self.failures().into());
            }
        }
        Ok(if all_ended {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    }

    fn position(&self) -> Position {
        let last = self.rounds.last();
        Position {
            unit: "iterations",
            done: last.map_or(0, |round| round.round + 1),
            total: self.iterations.into(),
            message: last.map_or_else(String::new, |round| {
                format!("accuracy {:.1} %", round.accuracy * 100.0)
            }),
        }
    }

    fn replan(&mut self, scenario: &Scenario) -> Result<(), WorkloadError> {
        let (Some(gradients), Some(Workload::Training(training))) =
            (&scenario.gradients, &scenario.workload)
        else {
            return Ok(());
        };
        let moves = training.workers.iter();
        let moves = moves.filter_map(|worker| place(gradients, worker));
        self.moves.push_back(moves.collect());
        if let Some(server) = self.agents.first_mut() {
            server.order(&Order::Replan {
                parts: summed_parts(scenario),
            });
        }
        Ok(())
    }

    fn resumed_ns(&self, replan: usize) -> Option<u64> {
        self.replans.get(replan)?.1
    }

    fn process(&mut self, host: &str) -> Option<&mut Process> {
        let mut agents = self.agents.iter_mut();
        let agent = agents.find(|agent| agent.process.host() == host)?;
        Some(&mut agent.process)
    }

    fn finish(self: Box<Self>) -> Result<Measured, WorkloadError> {
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
        let senders = workers
            .iter()
            .map(|worker| worker.sent)
            .chain([server.sent]);
        let again: u64 = senders.map(|sent| sent.retransmitted_bytes).sum();
        let walls = workers.iter().map(|worker| worker.wall_ms * 1e6);
        let metrics = [
            (TrainingMetric::Took, walls.fold(0.0, f64::max)),
            (TrainingMetric::Accuracy, server.accuracy),
            (TrainingMetric::Iterations, f64::from(self.iterations)),
            (TrainingMetric::Chunks, chunks_per_iteration() as f64),
            (TrainingMetric::RetransmittedBytes, again as f64),
        ];
        Ok(Measured {
            metrics: metrics
                .map(|(what, value)| (Metric::Training(what), value))
                .into(),
            training: Some(TrainingReports {
                server,
                workers,
                rounds: self.rounds,
            }),
            ..Measured::default()
        })
    }
}

impl Agent {
    fn has_ended(&self) -> bool {
        self.report.is_some() || self.failure.is_some()
    }

    /// Sends an order to the agent. An error is ignored: reading the agent's output shows whether the agent has ended.
    fn order(&mut self, order: &Order) {
        if let Ok(line) = serde_json::to_string(order)
            && let Err(error) = self.process.write_line(&line)
        {
            tracing::debug!(host = self.process.host(), %error, "the agent ended before an order arrived");
        }
    }

    /// Reads the lines that the agent has printed, and waits at most `timeout` for the first one.
    fn read(
        &mut self,
        timeout: Duration,
        rounds: &mut Vec<RoundReport>,
        said: &mut Vec<Reply>,
    ) -> Result<(), TrainingError> {
        let mut timeout = timeout;
        while !self.has_ended() {
            match self.process.next_line(timeout) {
                Output::Line(line) => match serde_json::from_str(&line) {
                    Ok(Line::Round(round)) => rounds.push(round),
                    Ok(Line::Replanned { from }) => said.push(Reply::Replanned(from)),
                    Ok(Line::Resumed { from, at_ns }) => said.push(Reply::Resumed(from, at_ns)),
                    Ok(Line::Report(report)) => self.report = Some(report),
                    Ok(Line::Ready) | Err(_) => {}
                },
                Output::TimedOut => return Ok(()),
                Output::End => {
                    let said = how_it_ended(&mut self.process)?;
                    let status = self.process.try_wait()?;
                    let was_killed = status.is_some_and(|status| status.signal().is_some());
                    let said = match was_killed {
                        true => format!("{}: {said}", self.process.host()),
                        false => said,
                    };
                    self.failure = Some(Failure { said, was_killed });
                }
            }
            timeout = Duration::ZERO;
        }
        Ok(())
    }
}
