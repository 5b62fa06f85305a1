//! Agents: the loops around `aggregation`'s state machines, their arguments and what they print.
//!
//! An agent prints one JSON object per line ([`Line`]): `ready` once it can receive, at the server `round` after each round,
//! and `report` at the end. With `--wait` it starts when it reads a line from its standard input, so that no agent sends
//! before all can receive. Further lines are [`Order`]s. Exit status: 0, or 2 with one line on the standard error; 1 if a
//! measured result is wrong.

mod args;
mod orders;
mod report;
mod server;
mod watch;
mod worker;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;

pub use args::{
    JobArgs, LinkArgs, PartOf, PlaceInPart, ReferenceArgs, RetransmissionArgs, ServerArgs,
    ServerMode, WorkerArgs,
};
pub use orders::{Order, Orders};
pub use report::{Line, ReferenceReport, RoundReport, ServerReport, WorkerReport};

use crate::all_reduce::AllReduceArgs;
use crate::collectives_perf::{CollectivesPerfArgs, Wrong};
use crate::frames::{Frames, receive_within};
use crate::rdma_perf::RdmaPerfArgs;
use crate::serve::{ServeArgs, serve};
use crate::train::reference_run;

/// Role of an agent.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum AgentCommand {
    /// Train on a shard of the data, and send gradients.
    Worker(WorkerArgs),
    /// Keep the weights, apply summed gradients, answer with the new weights.
    Server(ServerArgs),
    /// Run the same training in one process, without a network.
    Reference(ReferenceArgs),
    /// Serve ranks to processes without capabilities, over a Unix socket, until SIGTERM.
    Serve(ServeArgs),
    /// Take part as a rank in a job that the switch sums: submit generated values, and check the sums.
    AllReduce(AllReduceArgs),
    /// Test and measure RDMA with perftest's options: RoCEv2 in user space or a device, with any RDMA implementation as peer.
    RdmaPerf(RdmaPerfArgs),
    /// Measure and check collectives over RDMA with nccl-tests' options, as one rank.
    CollectivesPerf(CollectivesPerfArgs),
}

impl AgentCommand {
    /// Runs the agent to its end.
    pub fn run(&self) -> ExitCode {
        match self.try_run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}: {error:#}", self.name());
                match error.is::<Wrong>() {
                    true => ExitCode::from(1),
                    false => ExitCode::from(2),
                }
            }
        }
    }

    fn name(&self) -> String {
        match self {
            AgentCommand::Worker(args) => format!("worker {}", args.rank),
            AgentCommand::Server(_) => "server".into(),
            AgentCommand::Reference(_) => "reference".into(),
            AgentCommand::Serve(_) => "serve".into(),
            AgentCommand::AllReduce(_) => "all-reduce".into(),
            AgentCommand::RdmaPerf(_) => "rdma-perf".into(),
            AgentCommand::CollectivesPerf(_) => "collectives-perf".into(),
        }
    }

    fn try_run(&self) -> anyhow::Result<()> {
        match self {
            AgentCommand::Worker(args) => {
                let mut frames = args.link.open()?;
                let orders = start(args.link.wait)?;
                let report = worker::run(args, &mut frames, orders)?;
                print(&Line::Report(report::Report::Worker(report)))
            }
            AgentCommand::Server(args) => {
                let mut frames = args.link.open()?;
                let orders = start(args.link.wait)?;
                let report = server::run(args, &mut frames, orders, |line| print(&line))?;
                print(&Line::Report(report::Report::Server(report)))
            }
            AgentCommand::Serve(args) => {
                let ready = || print(&Line::Ready).map_err(io::Error::other);
                Ok(serve(args, ready)?)
            }
            AgentCommand::AllReduce(args) => args.run(),
            AgentCommand::RdmaPerf(args) => args.run(),
            AgentCommand::CollectivesPerf(args) => args.run(),
            AgentCommand::Reference(args) => {
                let start = Instant::now();
                let outcome = reference_run(&args.recipe, args.workers)?;
                let report = ReferenceReport {
                    weights_sha256: outcome.weights_sha256,
                    accuracy: outcome.accuracy,
                    losses: outcome.losses,
                    wall_ms: start.elapsed().as_secs_f64() * 1e3,
                };
                print(&Line::Report(report::Report::Reference(report)))
            }
        }
    }
}

pub use report::Report;
pub use server::run as run_server;
pub use worker::run as run_worker;

fn print(line: &Line) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    serde_json::to_writer(&mut stdout, line).context("cannot print")?;
    writeln!(stdout)
        .and_then(|()| stdout.flush())
        .context("cannot print")
}

/// Reports that frames can be received, and, if `wait` is set, waits for the line that starts the agent; returns its orders.
fn start(wait: bool) -> anyhow::Result<Orders> {
    print(&Line::Ready)?;
    if !wait {
        return Ok(Orders::none());
    }
    let mut line = String::new();
    let length = io::stdin()
        .read_line(&mut line)
        .context("cannot read the standard input")?;
    anyhow::ensure!(length > 0, "the standard input ended before the start");
    Orders::from_standard_input().context("cannot read the standard input")
}

/// The clock of the state machines: nanoseconds since the agent's start.
struct Clock(Instant);

impl Clock {
    fn start() -> Clock {
        Clock(Instant::now())
    }

    fn now_ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    /// Time from now until a deadline on this clock; without a deadline, 100 ms.
    fn until(&self, deadline_ns: Option<u64>) -> Duration {
        // Without a deadline, poll at this interval.
        const IDLE: Duration = Duration::from_millis(100);
        deadline_ns.map_or(IDLE, |deadline| {
            Duration::from_nanos(deadline.saturating_sub(self.now_ns()))
        })
    }
}

/// Maximum number of received frames that are processed before other work.
const BURST: usize = 64;

/// Whether the error means that the other end of a cable in memory has closed.
fn is_unplugged(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof)
}

/// Sends the queued frames, waits at most `timeout` for a frame, then passes it and all others that have arrived to `handle`.
fn receive(
    frames: &mut dyn Frames,
    timeout: Duration,
    mut handle: impl FnMut(&[u8]),
) -> io::Result<()> {
    // Frames that the link does not take are lost, as on any wire.
    frames.flush()?;
    receive_within(frames, timeout, BURST, &mut handle)?;
    Ok(())
}
