//! Questions to services, at a steady rate, whose answers are timed.
//!
//! A question is asked when its time has come, whether or not the last was answered: one that waits for a slow answer would
//! not see how slow the service is to others meanwhile. Each host that asks has a thread, whose sockets belong to it.

mod ask;

use std::io;
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use scenario::probe::{Ask, Probe};
use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval_at, timeout};

use crate::host::Host;

/// How many answers of one probe are kept: an hour at ten a second. What comes later is counted alone.
pub const MAX_SAMPLES: usize = 36_000;

/// So many answers of a probe count as recent at most.
const MAX_RECENT: usize = 8192;

/// One question and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// When it was asked, since the probes began.
    pub at_ns: u64,
    /// How long the answer took; none if there was none, or a bad one.
    pub latency_ns: Option<u64>,
}

/// What a probe saw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// In the order in which they were asked.
    pub samples: Vec<Sample>,
    /// Questions beyond [`MAX_SAMPLES`].
    pub beyond: u64,
    /// Why the first that failed did.
    pub first_failure: Option<String>,
}

/// Probes that ask.
#[derive(Debug)]
pub struct Probes {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    answers: Vec<Arc<Mutex<Answers>>>,
    started: Instant,
}

impl Probes {
    /// Begins to ask: each probe from its host, at the address of its service.
    pub fn start<'a>(
        probes: impl IntoIterator<Item = (&'a Probe, &'a Host, SocketAddrV4)>,
    ) -> io::Result<Probes> {
        let stop = Arc::new(AtomicBool::new(false));
        let (mut threads, mut answers) = (Vec::new(), Vec::new());
        let start = Instant::now();
        for (probe, host, to) in probes {
            let own = Arc::new(Mutex::new(Answers::default()));
            answers.push(Arc::clone(&own));
            let (probe, namespace, stop) =
                (probe.clone(), host.namespace().clone(), Arc::clone(&stop));
            let thread = thread::Builder::new()
                .name(format!("probe {}", probe.name))
                .spawn(move || namespace.run(|| run(&probe, to, start, &stop, &own)))?;
            threads.push(thread);
        }
        Ok(Probes {
            stop,
            threads,
            answers,
            started: start,
        })
    }

    /// The answers, and the failures, to what was asked in the last so long; probe by probe.
    pub fn recent(&self, time: Duration) -> Vec<Answers> {
        let since = self.started.elapsed().saturating_sub(time);
        let since_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        let recent = |answers: &Arc<Mutex<Answers>>| {
            let answers = lock(answers);
            let latest = answers.samples.iter().rev().take(MAX_RECENT);
            Answers {
                samples: latest
                    .filter(|sample| sample.at_ns >= since_ns)
                    .cloned()
                    .collect(),
                ..Answers::default()
            }
        };
        self.answers.iter().map(recent).collect()
    }

    /// Asks no more, waits for the answers that are still to come, and gives all, probe by probe.
    pub fn finish(mut self) -> io::Result<Vec<Answers>> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a probe panicked")))?;
        }
        let answers = self.answers.iter().map(|answers| {
            let mut answers = std::mem::take(&mut *lock(answers));
            answers.samples.sort_by_key(|sample| sample.at_ns);
            answers
        });
        Ok(answers.collect())
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        // The threads see it, and end by themselves.
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn lock(answers: &Mutex<Answers>) -> MutexGuard<'_, Answers> {
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks until it is told to stop. The calling thread is in the host's network.
fn run(
    probe: &Probe,
    to: SocketAddrV4,
    start: Instant,
    stop: &AtomicBool,
    answers: &Arc<Mutex<Answers>>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let every = Duration::from_nanos(probe.every_ns);
    let limit = Duration::from_nanos(probe.timeout_ns);
    let ask: Arc<Ask> = Arc::new(probe.ask.clone());
    let host: Arc<str> = Arc::from(authority(probe));
    runtime.block_on(async {
        let mut waiting = tokio::task::JoinSet::new();
        let mut ticks = interval_at(start.into(), every);
        // A machine that stood still catches up with no burst of questions.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        while !stop.load(Ordering::Relaxed) {
            ticks.tick().await;
            while waiting.try_join_next().is_some() {}
            let (ask, host, answers) = (Arc::clone(&ask), Arc::clone(&host), Arc::clone(answers));
            waiting.spawn(async move {
                let asked = Instant::now();
                let outcome = match timeout(limit, ask::ask(&ask, to, &host)).await {
                    Ok(outcome) => outcome.map_err(|error| error.to_string()),
                    Err(_) => Err(format!("no answer within {limit:?}")),
                };
                let took = asked.elapsed();
                note(&answers, asked.duration_since(start), took, outcome);
            });
        }
        while waiting.join_next().await.is_some() {}
    });
    Ok(())
}

fn note(answers: &Mutex<Answers>, at: Duration, took: Duration, outcome: Result<(), String>) {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let mut answers = lock(answers);
    let latency_ns = match outcome {
        Ok(()) => Some(ns(took)),
        Err(why) => {
            answers.first_failure.get_or_insert(why);
            None
        }
    };
    if answers.samples.len() >= MAX_SAMPLES {
        answers.beyond += 1;
        return;
    }
    answers.samples.push(Sample {
        at_ns: ns(at),
        latency_ns,
    });
}

/// As a request calls the server.
fn authority(probe: &Probe) -> String {
    match probe.to.port {
        80 => probe.to.host.clone(),
        port => format!("{}:{port}", probe.to.host),
    }
}
