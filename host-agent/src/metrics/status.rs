//! The status of a member of a job (a rank, worker or server), for metrics and `weir doctor`.

use std::collections::BTreeMap;

use aggregation::congestion::Signals;
use aggregation::rank::RankCounters;
use aggregation::server::ServerCounters;
use aggregation::worker::WorkerCounters;
use aggregation::{Job, Sent, UnderWay};
use serde::{Deserialize, Serialize};

use super::names::{self, Metric};
use super::sent::SentReport;

/// Role of a member of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A rank of an all-reduce.
    Rank,
    /// A worker of a training with a parameter server.
    Worker,
    /// The parameter server.
    Server,
}

/// Status of a member of a job: a rank, worker or server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Role of the member.
    pub role: Role,
    /// Number of the member's process.
    pub process: u32,
    /// Number of the job.
    pub job: u16,
    /// Number of the rank or worker; `None` for the server.
    pub rank: Option<u16>,
    /// The member's number as a child of its switch, and the number of the switch's children; `None` if it has no such number.
    pub child: Option<(u16, u8)>,
    /// Number of ranks in the job.
    pub ranks: u16,
    /// The job's window: the number of the switch's aggregation slots that it uses.
    pub window: u32,
    /// Name of the member's interface, if it uses one.
    pub interface: Option<String>,
    /// I/O backend that the member uses; `None` if unknown.
    pub io: Option<String>,
    /// Ethernet and IPv4 address of the member.
    pub address: Option<String>,
    /// Values of the member's counters, by the names of the metrics.
    pub counters: BTreeMap<String, u64>,
    /// The oldest chunk that is not finished; `None` if there is none.
    pub waits: Option<Waits>,
    /// Reason why the member has given up; `None` while it works.
    pub failed: Option<String>,
    /// Age of this status in milliseconds.
    pub age_ms: f64,
}

/// A chunk whose sum has not arrived.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// Sequence number of the chunk on the wire.
    pub chunk: u32,
    /// Index of the switch's aggregation slot that sums the chunk.
    pub slot: u16,
    /// Time in milliseconds since the chunk was first sent; for a server, since the last chunk was completed.
    pub since_ms: f64,
    /// Ranks whose contribution to the chunk is missing, as far as the switch has reported them.
    pub misses: Vec<u16>,
}

impl Waits {
    pub(crate) fn new(job: &Job, under_way: UnderWay, since_ms: f64) -> Waits {
        let UnderWay { chunk, misses, .. } = under_way;
        Waits {
            chunk: chunk.0,
            slot: job.slot(chunk).0,
            since_ms,
            misses: misses.iter().map(|worker| worker.0).collect(),
        }
    }
}

impl Status {
    /// A status of a new member, with no counters and no interface.
    pub fn new(role: Role, job: &Job, rank: Option<u16>) -> Status {
        Status {
            role,
            process: std::process::id(),
            job: job.id().0,
            rank,
            child: None,
            ranks: job.workers(),
            window: job.window(),
            interface: None,
            io: None,
            address: None,
            counters: BTreeMap::new(),
            waits: None,
            failed: None,
            age_ms: 0.0,
        }
    }

    /// Name of the member: `rank 3`, `worker 3` or `the server`.
    pub fn who(&self) -> String {
        match (self.role, self.rank) {
            (Role::Server, _) | (_, None) => "the server".to_owned(),
            (Role::Rank, Some(rank)) => format!("rank {rank}"),
            (Role::Worker, Some(rank)) => format!("worker {rank}"),
        }
    }

    pub(crate) fn count<const N: usize>(&mut self, counted: [(Metric, u64); N]) {
        for (metric, value) in counted {
            self.counters.insert(metric.name.to_owned(), value);
        }
    }

    fn count_sent(&mut self, sent: Sent) {
        let sent = SentReport::new(sent);
        self.count([
            (names::SENT_FRAMES, sent.frames),
            (names::SENT_BYTES, sent.bytes),
            (names::RESENT_FRAMES, sent.retransmitted_frames),
            (names::RESENT_BYTES, sent.retransmitted_bytes),
        ]);
    }
}

/// Adds the counters of a rank to a status; `foreign`: frames that were not for the rank.
pub fn count_rank(status: &mut Status, counters: RankCounters, foreign: u64) {
    // Destructured completely, so that a new counter is not forgotten here.
    let RankCounters {
        sent,
        operations,
        non_finite,
        probes,
        words,
        early_probes,
        repeated_guesses,
        timeouts,
        duplicates,
        not_ours,
        malformed,
        fallbacks,
        returns,
        by_hosts,
        deadlines,
        closes,
        partial_chunks,
        late_chunks,
        clipped_chunks,
        dropped_chunks,
        carried,
        lost_residuals,
        forgotten,
        early,
        congestion,
    } = counters;
    status.count_sent(sent);
    count_congestion(status, congestion);
    status.count([
        (names::FALLBACKS, fallbacks),
        (names::RETURNS, returns),
        (names::BY_HOSTS, by_hosts),
        (names::DEADLINES, deadlines),
        (names::CLOSES, closes),
        (names::PARTIAL, partial_chunks),
        (names::LATE, late_chunks),
        (names::CLIPPED, clipped_chunks),
        (names::NOT_CARRIED, dropped_chunks),
        (names::CARRIED, carried),
        (names::LOST_RESIDUALS, lost_residuals),
        (names::FORGOTTEN, forgotten),
        (names::EARLY_SUMS, early),
        (names::OPERATIONS, operations),
        (names::NON_FINITE, non_finite),
        (names::PROBES, probes),
        (names::WORDS, words),
        (names::EARLY_PROBES, early_probes),
        (names::GUESSES, repeated_guesses),
        (names::TIMEOUTS, timeouts),
        (names::DUPLICATES, duplicates),
        (names::NOT_OURS, not_ours + foreign),
        (names::MALFORMED, malformed),
    ]);
}

fn count_congestion(status: &mut Status, congestion: Signals) {
    let Signals {
        marks,
        window,
        least_window,
    } = congestion;
    status.count([
        (names::MARKS, marks),
        (names::WINDOW, window.into()),
        (names::LEAST_WINDOW, least_window.into()),
    ]);
}

/// Adds the counters of a worker to a status; `foreign`: frames that were not for the worker.
pub fn count_worker(status: &mut Status, counters: WorkerCounters, foreign: u64) {
    let WorkerCounters {
        sent,
        duplicates,
        not_ours,
        malformed,
        timeouts,
        fast_retransmits,
        congestion,
    } = counters;
    status.count_sent(sent);
    count_congestion(status, congestion);
    status.count([
        (names::TIMEOUTS, timeouts),
        (names::FAST, fast_retransmits),
        (names::DUPLICATES, duplicates),
        (names::NOT_OURS, not_ours + foreign),
        (names::MALFORMED, malformed),
    ]);
}

/// Adds the counters of the parameter server to a status; `foreign`: frames that were not for the server.
pub fn count_server(status: &mut Status, counters: ServerCounters, foreign: u64) {
    let ServerCounters {
        sent,
        completed,
        again,
        duplicates,
        stale,
        // Only useful in a run's comparison with a switch's counters.
        repeated_bytes: _,
        not_ours,
        malformed,
        dropped,
    } = counters;
    status.count_sent(sent);
    status.count([
        (names::COMPLETED, completed),
        (names::AGAIN, again),
        (names::DUPLICATES, duplicates),
        (names::STALE, stale),
        (names::DROPPED, dropped),
        (names::NOT_OURS, not_ours + foreign),
        (names::MALFORMED, malformed),
    ]);
}
