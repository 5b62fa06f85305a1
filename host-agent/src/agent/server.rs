//! The parameter server's loop: receives sums, applies them, sends weights.

use std::net::Ipv4Addr;
use std::time::{Instant, SystemTime};

use aggregation::quantise::dequantise;
use aggregation::server::{Apply, Completed, Mode, Server, ServerEvent};
use aggregation::{Destination, Job};
use anyhow::{Context, bail, ensure};

use super::orders::{Order, Orders};
use super::report::{Line, RoundReport, ServerReport, repeated_bytes};
use super::watch::Watch;
use super::{Clock, ServerArgs, ServerMode, is_unplugged, receive};
use crate::frames::{Frames, build, group, mark, open, pass_mark, source};
use crate::metrics::{Role, SentReport, Status, count_server, names};
use crate::train::{Digits, Sgd, accuracy, weights_sha256};

/// Runs a parameter server to the end of the training; calls `progress` after each round, and with the results of orders.
pub fn run(
    args: &ServerArgs,
    frames: &mut dyn Frames,
    mut orders: Orders,
    mut progress: impl FnMut(Line) -> anyhow::Result<()>,
) -> anyhow::Result<ServerReport> {
    let job = args.job.job()?;
    ensure!(
        args.peers.len() == usize::from(job.workers()),
        "{} workers, but {} addresses: give one address for each worker",
        job.workers(),
        args.peers.len()
    );
    ensure!(
        args.parts.is_empty() || args.mode == ServerMode::Parts,
        "--part needs --mode parts"
    );
    let workers: Vec<Ipv4Addr> = args.peers.iter().map(|peer| peer.ip).collect();
    let rounds = args.job.recipe.rounds;
    let digits = Digits::load()?;
    let (me, everybody) = (args.link.endpoint(), group(args.job.job));
    let watch = Watch::start(&args.link, job, Status::new(Role::Server, &job, None))?;
    let clock = Clock::start();
    let mut server = machine(args, job, clock.now_ns())?;
    let (mut rounds_ms, mut foreign) = (Vec::new(), 0);
    let mut round_start = Instant::now();
    let (mut payload, mut frame) = (Vec::new(), Vec::new());
    // First chunk of other parts, until its sum arrives.
    let mut awaited = None;
    loop {
        while let Some(destination) = server.poll_transmit(clock.now_ns(), &mut payload) {
            let to = match destination {
                Destination::All => everybody,
                Destination::Worker(rank) => args.peers[usize::from(rank.0)],
                // A server sends to workers only.
                Destination::Server => continue,
            };
            build(&mut frame, me, to, &payload);
            pass_mark(&mut frame, server.mark());
            frames.send(&frame).context("cannot send")?;
        }
        // After the answers, so that no worker waits for output that only the user reads.
        let done = rounds_ms.len() as u64;
        if server.application().rounds() > done {
            let wall_ms = round_start.elapsed().as_secs_f64() * 1e3;
            round_start = Instant::now();
            rounds_ms.push(wall_ms);
            let accuracy = accuracy(server.application().sgd.weights(), &digits.held_out);
            progress(Line::Round(RoundReport {
                round: done,
                rounds,
                accuracy,
                wall_ms,
            }))?;
        }
        let event = server.poll_event();
        // The job may end before that chunk.
        let goes_on = server.has_sum_of_new_parts() || event == Some(ServerEvent::Finished);
        if let Some(from) = awaited.take_if(|_| goes_on) {
            let at_ns = unix_ns();
            progress(Line::Resumed { from, at_ns })?;
        }
        while let Some(order) = orders.next()? {
            let Order::Replan { parts } = order else {
                bail!("a server accepts only the order to replan its parts");
            };
            let parts = parts.into_iter().map(|part| part.0).collect();
            let from = server.replan(clock.now_ns(), parts)?.0;
            awaited = Some(from);
            progress(Line::Replanned { from })?;
        }
        match event {
            Some(ServerEvent::Finished) => break,
            Some(ServerEvent::Failed(error)) => bail!(error),
            None => {}
        }
        watch.show(
            clock.now_ns(),
            || server.under_way(),
            |status| {
                count_server(status, server.counters(), foreign);
                status.count([(names::ROUNDS, server.application().rounds())]);
            },
        );
        let received = receive(
            frames,
            orders.at_most(watch.at_most(clock.until(server.poll_timeout()))),
            |frame| match open(frame, me) {
                // A SUM has the header of the UPDATE that completed it.
                Some(payload) if source(frame).is_some_and(|ip| workers.contains(&ip)) => {
                    server.handle_packet(clock.now_ns(), mark(frame), payload);
                }
                _ => foreign += 1,
            },
        )
        .context("cannot receive");
        match received {
            // Everything is applied, and no worker remains that could request an answer again.
            Err(error) if is_unplugged(&error) && server.is_closing() => break,
            received => received?,
        }
        server.handle_timeout(clock.now_ns());
    }
    let counters = server.counters();
    let weights = server.application().sgd.weights();
    Ok(ServerReport {
        weights_sha256: weights_sha256(weights),
        accuracy: accuracy(weights, &digits.held_out),
        sent: SentReport::new(counters.sent),
        completed: counters.completed,
        again: counters.again,
        duplicates: counters.duplicates,
        stale: counters.stale,
        repeated_bytes: repeated_bytes(&counters),
        not_ours: counters.not_ours + foreign,
        malformed: counters.malformed,
        dropped: counters.dropped,
        rounds_ms,
        wall_ms: clock.now_ns() as f64 / 1e6,
    })
}

/// The current time, in nanoseconds since 1970.
fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// Creates the server's state machine from the arguments.
fn machine(args: &ServerArgs, job: Job, now_ns: u64) -> anyhow::Result<Server<Training>> {
    let training = Training {
        sgd: Sgd::new(&args.job.recipe),
        workers: job.workers(),
        values_per_packet: job.values_per_packet(),
        chunks_per_round: u64::from(job.chunks_per_round()),
        applied: 0,
    };
    let settings = args.job.retransmission.settings();
    let rounds = Some(args.job.recipe.rounds);
    Ok(match args.mode {
        ServerMode::Switch => Server::new(job, Mode::Switch, settings, rounds, training, now_ns),
        ServerMode::Direct => Server::new(job, Mode::Direct, settings, rounds, training, now_ns),
        ServerMode::Parts => {
            let parts = args.parts.iter().map(|part| part.0.clone()).collect();
            Server::of_parts(job, parts, settings, rounds, training, now_ns)?
        }
    })
}

/// The server's use of sums: a step of the optimizer with the mean gradient. The workers receive the new weights.
struct Training {
    sgd: Sgd,
    workers: u16,
    values_per_packet: usize,
    chunks_per_round: u64,
    applied: u64,
}

impl Training {
    /// Number of training rounds that were applied.
    fn rounds(&self) -> u64 {
        self.applied / self.chunks_per_round.max(1)
    }
}

impl Apply for Training {
    fn apply(&mut self, chunk: Completed<'_>, answer: &mut [u32]) {
        let Training {
            workers,
            values_per_packet,
            ..
        } = *self;
        let mean =
            |&sum: &i32| (dequantise(sum, chunk.exponent, workers) / f64::from(workers)) as f32;
        let start = chunk.index as usize * values_per_packet;
        answer.fill(0);
        let moved = self.sgd.step(start, chunk.sums.iter().map(mean));
        for (word, weight) in answer.iter_mut().zip(moved) {
            *word = weight.to_bits();
        }
        self.applied += 1;
    }
}
