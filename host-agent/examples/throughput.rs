//! A member of a job that sums as fast as it can, for `cargo xtask bench allreduce --row jobs_16`: a rank whose values the
//! switch sums, a worker of a parameter server, or that server.
//!
//! It prints `ready`, reads from its standard input the time of its end (nanoseconds of the machine's monotonic clock),
//! checks every value of every sum, and finally prints one line of JSON with the time of each sum. All members send and
//! receive in the same way, by rings, so that the place of the summation is the only difference.

use std::io::{self, BufRead, Write};
use std::time::Duration;

use aggregation::job::{ChunkId, Job, JobConfig, JobId, WorkerId};
use aggregation::quantise::dequantise;
use aggregation::rank::{Setup, Values};
use aggregation::server::{self, Completed, Server};
use aggregation::worker::{self, Worker};
use aggregation::{Destination, Mark, Retransmission};
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Parser, Subcommand};
use frames::wait_readable;
use host_agent::collective::{Config, Member};
use host_agent::frames::{
    Endpoint, Frames, Io, build, group, mark, open, open_interface, pass_mark,
};
use nix::time::{ClockId, clock_gettime};

/// Maximum number of received frames that are processed before transmission, as in a rank.
const BURST: usize = 64;
/// Maximum interval between checks of the clock.
const IDLE: Duration = Duration::from_millis(50);
/// Maximum wait for a sum after the end, when other members have left.
const GRACE_NS: u64 = 200_000_000;
/// Allowed error of a sum, relative to the largest one.
const OFF: f32 = 1e-6;
/// Values are integers from a range of this size.
const GRAINS: usize = 251;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    member: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Sends values to the switch, which returns their sum
    Rank {
        #[command(flatten)]
        of: Of,
        #[arg(long)]
        rank: u16,
    },
    /// Sends values to a server, which returns their sum
    Worker {
        #[command(flatten)]
        of: Of,
        #[arg(long)]
        rank: u16,
        #[arg(long, value_name = "MAC/IP")]
        server: Endpoint,
    },
    /// Receives sums from the switch and answers them, or sums itself
    Server {
        #[command(flatten)]
        of: Of,
        /// Sum at the server, without the switch
        #[arg(long)]
        alone: bool,
        /// Addresses of a worker; repeat in the order of the ranks
        #[arg(long = "worker", value_name = "MAC/IP", required = true)]
        workers: Vec<Endpoint>,
    },
}

/// Settings that are equal at all members of a job.
#[derive(Args)]
struct Of {
    #[arg(long)]
    job: u16,
    #[arg(long)]
    ranks: u16,
    #[arg(long)]
    window: u32,
    /// Number of values per operation
    #[arg(long)]
    values: usize,
    #[arg(long)]
    iface: String,
}

impl Of {
    fn job(&self) -> Result<Job> {
        Ok(Job::under_one_switch(JobConfig {
            job: JobId(self.job),
            workers: self.ranks,
            window: self.window,
            values_per_packet: wire::VALUES_PER_PACKET as u16,
            values_per_round: self.values,
            first_chunk: ChunkId(0),
        })?)
    }

    fn frames(&self) -> Result<Box<dyn Frames>> {
        let opened = open_interface(&self.iface, Io::Rings);
        let opened = opened.with_context(|| format!("no rings of {}", self.iface))?;
        Ok(opened.frames)
    }
}

fn main() -> Result<()> {
    let said = match Cli::parse().member {
        Role::Rank { of, rank } => rank_of(&of, rank)?,
        Role::Worker { of, rank, server } => worker_of(&of, rank, server)?,
        Role::Server { of, alone, workers } => server_of(&of, alone, &workers)?,
    };
    println!("{said}");
    Ok(())
}

/// Reports that frames can be received, and returns the time of the end, on the clock of [`now_ns`].
fn until() -> Result<u64> {
    println!("ready");
    io::stdout().flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    line.trim().parse().context("the end, in nanoseconds")
}

fn now_ns() -> u64 {
    // The clock exists on every Linux.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| Duration::from(now).as_nanos() as u64)
}

/// The values of a rank: rank r contributes r + 1 times the same values.
fn given(values: usize, times: usize) -> Vec<f32> {
    let grain = |index: usize| (index % GRAINS) as f32 - (GRAINS / 2) as f32;
    (0..values)
        .map(|index| grain(index) * times as f32)
        .collect()
}

/// The correct sums over all ranks.
struct Right(Vec<f32>);

impl Right {
    fn new(of: &Of) -> Right {
        let ranks = usize::from(of.ranks);
        Right(given(of.values, ranks * (ranks + 1) / 2))
    }

    fn holds(&self, sums: impl Iterator<Item = f32>) -> Result<()> {
        let largest = self
            .0
            .iter()
            .fold(0.0, |most: f32, sum| most.max(sum.abs()));
        for (index, (is, should)) in sums.zip(&self.0).enumerate() {
            // A sum that is NaN is not near anything.
            let is_near = (is - should).abs() <= OFF * largest;
            ensure!(is_near, "sum {index} is {is} and not {should}");
        }
        Ok(())
    }
}

fn said(sums_ns: &[u64]) -> serde_json::Value {
    serde_json::json!({ "sums_ns": sums_ns })
}

fn rank_of(of: &Of, rank: u16) -> Result<serde_json::Value> {
    let config = Config {
        setup: Setup::under_one_switch(of.job()?, WorkerId(rank), Retransmission::of_ranks()),
        me: Endpoint::from_interface(&of.iface)?,
        peers: Vec::new(),
    };
    let (values, right) = (given(of.values, usize::from(rank) + 1), Right::new(of));
    let member = Member::start(config, of.frames()?)?;
    let until_ns = until()?;
    let mut sums_ns = Vec::new();
    while now_ns() < until_ns {
        let pending = member.all_reduce(Values::Floats(values.clone()))?;
        let left_ns = until_ns.saturating_add(GRACE_NS).saturating_sub(now_ns());
        match pending.wait(Duration::from_nanos(left_ns)) {
            Ok(sums) => {
                sums_ns.push(now_ns());
                let Values::Floats(sums) = sums.values else {
                    bail!("sums of another type");
                };
                right.holds(sums.into_iter())?;
            }
            // The other members have left.
            Err(_) if now_ns() >= until_ns => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(said(&sums_ns))
}

/// Transmission and reception of frames, with the time for the state machines.
struct Line {
    me: Endpoint,
    frames: Box<dyn Frames>,
    frame: Vec<u8>,
}

impl Line {
    fn open(of: &Of) -> Result<Line> {
        Ok(Line {
            me: Endpoint::from_interface(&of.iface)?,
            frames: of.frames()?,
            frame: Vec::new(),
        })
    }

    /// Sends a frame; `passed` is the congestion mark for the receiver.
    fn send(&mut self, to: Endpoint, passed: Mark, payload: &[u8]) -> Result<()> {
        build(&mut self.frame, self.me, to, payload);
        pass_mark(&mut self.frame, passed);
        Ok(self.frames.send(&self.frame)?)
    }

    /// Sends queued frames, and passes received ones to `take`, up to a burst. Waits for them until `due_ns`.
    fn turn(&mut self, due_ns: Option<u64>, mut take: impl FnMut(u64, Mark, &[u8])) -> Result<()> {
        self.frames.flush()?;
        let me = self.me;
        let now = now_ns();
        let due = due_ns.map_or(IDLE, |due_ns| {
            Duration::from_nanos(due_ns.saturating_sub(now))
        });
        let taken = self.frames.receive(BURST, &mut |frame: &[u8]| {
            if let Some(payload) = open(frame, me) {
                take(now, mark(frame), payload);
            }
        })?;
        if taken.frames == 0 {
            wait_readable(self.frames.readable(), due.min(IDLE))?;
        }
        Ok(())
    }
}

fn worker_of(of: &Of, rank: u16, server: Endpoint) -> Result<serde_json::Value> {
    let (values, right) = (given(of.values, usize::from(rank) + 1), Right::new(of));
    let mut worker = Worker::new(of.job()?, WorkerId(rank), Retransmission::default());
    let (mut line, mut payload) = (Line::open(of)?, Vec::new());
    let until_ns = until()?;
    let mut sums_ns = Vec::new();
    while now_ns() < until_ns {
        worker.start_round(&values)?;
        loop {
            while worker.poll_transmit(now_ns(), &mut payload).is_some() {
                line.send(server, Mark::None, &payload)?;
            }
            match worker.poll_event() {
                Some(worker::WorkerEvent::RoundDone { .. }) => break,
                Some(worker::WorkerEvent::Failed(error)) => bail!(error),
                Some(worker::WorkerEvent::Closed) | None => {}
            }
            if now_ns() >= until_ns.saturating_add(GRACE_NS) {
                return Ok(said(&sums_ns));
            }
            line.turn(worker.poll_timeout(), |now, mark, payload| {
                worker.handle_packet(now, mark, payload);
            })?;
            worker.handle_timeout(now_ns());
        }
        sums_ns.push(now_ns());
        right.holds(worker.results().iter().map(|bits| f32::from_bits(*bits)))?;
    }
    Ok(said(&sums_ns))
}

fn server_of(of: &Of, alone: bool, workers: &[Endpoint]) -> Result<serde_json::Value> {
    let ranks = of.ranks;
    ensure!(
        workers.len() == usize::from(ranks),
        "{} workers of {ranks}",
        workers.len()
    );
    let mode = match alone {
        true => server::Mode::Direct,
        false => server::Mode::Switch,
    };
    let everybody = group(of.job);
    let answer = |chunk: Completed<'_>, answer: &mut [u32]| {
        for (word, sum) in answer.iter_mut().zip(chunk.sums) {
            *word = (dequantise(*sum, chunk.exponent, ranks) as f32).to_bits();
        }
    };
    let (mut line, mut payload) = (Line::open(of)?, Vec::new());
    let until_ns = until()?;
    let settings = Retransmission::default();
    let mut server = Server::new(of.job()?, mode, settings, None, answer, now_ns());
    while now_ns() < until_ns.saturating_add(GRACE_NS) {
        while let Some(to) = server.poll_transmit(now_ns(), &mut payload) {
            let to = match to {
                Destination::All => everybody,
                Destination::Worker(rank) => workers[usize::from(rank.0)],
                // A server sends to workers only.
                Destination::Server => continue,
            };
            line.send(to, server.mark(), &payload)?;
        }
        if let Some(server::ServerEvent::Failed(error)) = server.poll_event() {
            bail!(error);
        }
        line.turn(server.poll_timeout(), |now, mark, payload| {
            server.handle_packet(now, mark, payload);
        })?;
        server.handle_timeout(now_ns());
    }
    Ok(said(&[]))
}
