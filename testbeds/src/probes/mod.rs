//! Probes send requests to a service at a steady rate and time the answers, over our own sockets or by a program of the user.
//!
//! A request is sent at its time, whether or not the previous one was answered: a probe that waited for a slow answer would
//! not measure how slow the service is for others meanwhile. Each probe has a thread in its host, whose sockets belong to it.

mod program;
mod request;

use std::fmt;
use std::io;
use std::net::SocketAddrV4;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use scenario::model::probe::{MAX_PROGRAMS, Probe};
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval_at, timeout};

use crate::host::Host;

pub use program::ProbeProgram;

/// Maximum number of requests per probe whose results are kept: an hour at ten a second. Later requests are only counted.
pub const MAX_SAMPLES: usize = 36_000;

/// Maximum number of results per probe that [`Probes::recent`] returns.
const MAX_RECENT: usize = 8192;

/// Kind of a probe's requests, which are sent in the network of the probe's host.
#[derive(Debug, Clone)]
pub enum ProbeRequest {
    /// Opens a TCP connection to this address.
    Tcp(SocketAddrV4),
    /// Sends this datagram to the address; any datagram that comes back is the answer.
    Udp(SocketAddrV4, Vec<u8>),
    /// Sends an HTTP GET; the answer has to be complete.
    Http {
        /// Address of the server.
        to: SocketAddrV4,
        /// Host name in the HTTP request.
        host: String,
        /// Path in the HTTP request, with its leading slash.
        path: String,
    },
    /// Runs a program of the user.
    Program(ProbeProgram),
}

/// Text for users, such as `http 10.0.0.2:80/index.html`.
impl fmt::Display for ProbeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeRequest::Tcp(to) => write!(f, "tcp {to}"),
            ProbeRequest::Udp(to, send) => write!(f, "udp {to}, {} bytes", send.len()),
            ProbeRequest::Http { to, path, .. } => write!(f, "http {to}{path}"),
            ProbeRequest::Program(program) => write!(f, "run {}", program.text),
        }
    }
}

/// One request of a probe, and whether it was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// Time of the request in nanoseconds since the start of all probes.
    pub at_ns: u64,
    /// Time until the answer, in nanoseconds; `None`: there was no answer, or a bad one.
    pub latency_ns: Option<u64>,
}

/// Results of the requests of a probe.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// The requests with their results, in the order in which they were sent.
    pub samples: Vec<Sample>,
    /// Number of requests beyond the first [`MAX_SAMPLES`], whose results are not kept.
    pub beyond: u64,
    /// The reason why the first failed request failed; `None`: none failed.
    pub first_failure: Option<String>,
}

/// Phase of all probes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Each probe sends requests at its rate.
    Sending,
    /// Probes send no more requests and wait for the outstanding answers.
    Waiting,
    /// Probes stop at once, because the caller no longer wants the results.
    Abandoned,
}

/// Probes that run, each in its own thread.
#[derive(Debug)]
pub struct Probes {
    phase: watch::Sender<Phase>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    answers: Vec<Arc<Mutex<Answers>>>,
    started: Instant,
}

impl Probes {
    /// Starts probes. Each sends its request from its host.
    pub fn start<'a>(
        probes: impl IntoIterator<Item = (&'a Probe, &'a Host, &'a ProbeRequest)>,
    ) -> io::Result<Probes> {
        let (phase, _) = watch::channel(Phase::Sending);
        let mut started = Probes {
            phase,
            threads: Vec::new(),
            answers: Vec::new(),
            started: Instant::now(),
        };
        for (probe, host, request) in probes {
            let answers = Arc::new(Mutex::new(Answers::default()));
            started.answers.push(Arc::clone(&answers));
            let probe_loop = ProbeLoop {
                every: Duration::from_nanos(probe.every_ns),
                limit: Duration::from_nanos(probe.timeout_ns),
                request: Arc::new(request.clone()),
                start: started.started,
                answers,
            };
            let (namespace, phase) = (host.namespace().clone(), started.phase.subscribe());
            let thread = thread::Builder::new()
                .name(format!("probe {}", probe.name))
                .spawn(move || namespace.run(|| probe_loop.run(phase)))?;
            started.threads.push(thread);
        }
        Ok(started)
    }

    /// For each probe, the results of the requests that it sent during the last `time`.
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

    /// Stops sending requests, waits for the outstanding answers, and returns the results of each probe.
    pub fn finish(mut self) -> io::Result<Vec<Answers>> {
        self.phase.send_replace(Phase::Waiting);
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
        self.phase.send_replace(Phase::Abandoned);
        // The end of a probe's thread ends its programs.
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn lock(answers: &Mutex<Answers>) -> MutexGuard<'_, Answers> {
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State of a probe's thread.
struct ProbeLoop {
    every: Duration,
    limit: Duration,
    request: Arc<ProbeRequest>,
    start: Instant,
    answers: Arc<Mutex<Answers>>,
}

impl ProbeLoop {
    /// Sends requests until the phase changes. The calling thread is in the network namespace of the probe's host.
    fn run(&self, phase: watch::Receiver<Phase>) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(MAX_PROGRAMS as usize)
            .build()?;
        runtime.block_on(self.send_requests(phase));
        // Dropping the runtime waits for the running programs, which are killed with their requests.
        Ok(())
    }

    async fn send_requests(&self, mut phase: watch::Receiver<Phase>) {
        let mut waiting = JoinSet::new();
        let mut ticks = interval_at(self.start.into(), self.every);
        // After a machine stood still, missed requests are not sent in a burst.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        for number in 1.. {
            tokio::select! {
                biased;
                _ = phase.wait_for(|phase| *phase != Phase::Sending) => break,
                _ = ticks.tick() => {}
            }
            while waiting.try_join_next().is_some() {}
            let (request, answers) = (Arc::clone(&self.request), Arc::clone(&self.answers));
            let (start, limit) = (self.start, self.limit);
            // Programs start slowly on a busy machine.
            let is_crowded = waiting.len() as u64 >= MAX_PROGRAMS;
            if is_crowded && matches!(*request, ProbeRequest::Program(_)) {
                let why = format!("{MAX_PROGRAMS} that had been started before still ran");
                note(&answers, start.elapsed(), Duration::ZERO, Err(why));
                continue;
            }
            waiting.spawn(async move {
                let sent = Instant::now();
                let (took, outcome) = send(&request, number, limit).await;
                note(&answers, sent.duration_since(start), took, outcome);
            });
        }
        tokio::select! {
            _ = phase.wait_for(|phase| *phase == Phase::Abandoned) => {}
            () = async { while waiting.join_next().await.is_some() {} } => {}
        }
    }
}

/// Result of one request: its time until the answer, and the reason if it failed.
type Outcome = (Duration, Result<(), String>);

/// Sends the request with this number, and waits for its answer for up to `limit`.
async fn send(request: &ProbeRequest, number: u32, limit: Duration) -> Outcome {
    let sent = Instant::now();
    let answer = match request {
        ProbeRequest::Tcp(to) => timeout(limit, request::connect(*to)).await,
        ProbeRequest::Udp(to, send) => timeout(limit, request::datagram(*to, send)).await,
        ProbeRequest::Http { to, host, path } => {
            timeout(limit, request::http(*to, host, path)).await
        }
        ProbeRequest::Program(program) => return program::run(program, number, limit).await,
    };
    let outcome = match answer {
        Ok(outcome) => outcome.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {limit:?}")),
    };
    (sent.elapsed(), outcome)
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
