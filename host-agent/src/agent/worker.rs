//! The worker's loop: computes a gradient, has it summed in a round, takes the new weights, and repeats.

use std::time::Instant;

use aggregation::job::{ChunkId, WorkerId};
use aggregation::worker::{Worker, WorkerEvent};
use anyhow::{Context, bail, ensure};

use super::orders::{Order, Orders};
use super::report::WorkerReport;
use super::watch::Watch;
use super::{Clock, WorkerArgs, is_unplugged, receive};
use crate::frames::{Endpoint, Frames, build, mark, open, source};
use crate::metrics::{Role, SentReport, Status, count_worker, names};
use crate::train::{Batches, Digits, PARAMETERS, gradient, initial_parameters, weights_sha256};

/// Runs a worker to the end of its training.
pub fn run(
    args: &WorkerArgs,
    frames: &mut dyn Frames,
    orders: Orders,
) -> anyhow::Result<WorkerReport> {
    let job = args.job.job()?;
    ensure!(
        args.rank < job.workers(),
        "rank {} of {} workers: ranks count from 0",
        args.rank,
        job.workers()
    );
    let recipe = &args.job.recipe;
    let digits = Digits::load()?;
    let mut batches = Batches::new(
        digits.training.len(),
        args.rank,
        job.workers(),
        recipe.batch,
        recipe.seed,
    )?;
    let worker = Worker::new(job, WorkerId(args.rank), args.job.retransmission.settings());
    let server = Endpoint {
        mac: args.server_mac,
        ip: args.server_ip,
    };
    let mut member = Member {
        worker: match args.part {
            Some(part) => worker.in_part(part.number, part.child),
            None => worker,
        },
        frames,
        clock: Clock::start(),
        me: args.link.endpoint(),
        server,
        via: Endpoint {
            mac: args.via.unwrap_or(server.mac),
            ..server
        },
        orders,
        foreign: 0,
        rounds: 0,
        watch: Watch::start(
            &args.link,
            job,
            Status::new(Role::Worker, &job, Some(args.rank)),
        )?,
    };
    let mut weights = initial_parameters(recipe.seed);
    let (mut losses, mut rounds_ms) = (Vec::new(), Vec::new());
    for _ in 0..recipe.rounds {
        let start = Instant::now();
        let batch = batches.next_batch();
        let (loss, slopes) = gradient(&weights, batch.iter().map(|&index| &digits.training[index]));
        losses.push(loss);
        member.worker.start_round(&slopes)?;
        member.drive()?;
        for (weight, word) in weights.iter_mut().zip(member.worker.results()) {
            *weight = f32::from_bits(*word);
        }
        member.rounds += 1;
        rounds_ms.push(start.elapsed().as_secs_f64() * 1e3);
    }
    member.worker.close()?;
    match member.drive() {
        // The server has left. As with unanswered closing frames, that is no error.
        Err(error) if is_unplugged(&error) => {}
        closed => closed?,
    }
    debug_assert_eq!(weights.len(), PARAMETERS);
    let counters = member.worker.counters();
    Ok(WorkerReport {
        rank: args.rank,
        weights_sha256: weights_sha256(&weights),
        sent: SentReport::new(counters.sent),
        timeouts: counters.timeouts,
        fast_retransmits: counters.fast_retransmits,
        duplicates: counters.duplicates,
        not_ours: counters.not_ours + member.foreign,
        malformed: counters.malformed,
        losses,
        rounds_ms,
        wall_ms: member.clock.now_ns() as f64 / 1e6,
    })
}

struct Member<'a> {
    worker: Worker,
    frames: &'a mut dyn Frames,
    clock: Clock,
    me: Endpoint,
    server: Endpoint,
    /// Destination of updates: the server's IP address, with the Ethernet address that the summing switch on the path expects.
    via: Endpoint,
    orders: Orders,
    /// Number of received frames that are not aggregation frames for this worker, or not from the server.
    foreign: u64,
    rounds: u64,
    watch: Watch,
}

impl Member<'_> {
    /// Drives the worker's state machine until the round (or the job) is finished.
    fn drive(&mut self) -> anyhow::Result<()> {
        let (mut payload, mut frame) = (Vec::new(), Vec::new());
        loop {
            self.take_orders()?;
            while self
                .worker
                .poll_transmit(self.clock.now_ns(), &mut payload)
                .is_some()
            {
                build(&mut frame, self.me, self.to(), &payload);
                self.frames.send(&frame).context("cannot send")?;
            }
            match self.worker.poll_event() {
                Some(WorkerEvent::RoundDone { .. } | WorkerEvent::Closed) => return Ok(()),
                Some(WorkerEvent::Failed(error)) => bail!(error),
                None => {}
            }
            let (worker, foreign, rounds) = (&self.worker, self.foreign, self.rounds);
            self.watch.show(
                self.clock.now_ns(),
                || worker.under_way(),
                |status| {
                    count_worker(status, worker.counters(), foreign);
                    status.count([(names::ROUNDS, rounds)]);
                },
            );
            let timeout = self.clock.until(self.worker.poll_timeout());
            let timeout = self.orders.at_most(self.watch.at_most(timeout));
            let (worker, clock, me, foreign) =
                (&mut self.worker, &self.clock, self.me, &mut self.foreign);
            let server = Some(self.server.ip);
            receive(self.frames, timeout, |frame| match open(frame, me) {
                Some(payload) if source(frame) == server => {
                    worker.handle_packet(clock.now_ns(), mark(frame), payload);
                }
                _ => *foreign += 1,
            })
            .context("cannot receive")?;
            self.worker.handle_timeout(self.clock.now_ns());
        }
    }

    /// Destination addresses of the frame that the state machine produced last.
    fn to(&self) -> Endpoint {
        match self.worker.is_before_move() {
            true => self.server,
            false => self.via,
        }
    }

    fn take_orders(&mut self) -> anyhow::Result<()> {
        while let Some(order) = self.orders.next()? {
            let Order::Move { part, via, from } = order else {
                bail!("a worker accepts only the order to move");
            };
            self.via.mac = via;
            let part = part.map(|part| (part.number, part.child));
            self.worker.move_to(part, ChunkId(from));
        }
        Ok(())
    }
}
