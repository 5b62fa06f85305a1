//! Attachment of a rank to its job, directly or through a daemon, and the operations common to both kinds.

use std::os::fd::RawFd;
use std::time::Duration;

use aggregation::rank::{RankCounters, Reduction, Sums, Values};
use host_agent::collective::{CollectiveError, Member, Pending};
use host_agent::metrics::Status;
use host_agent::serve::{Client, RemotePending};
use pyo3::prelude::*;

/// Maximum time until a waiting thread handles a signal.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(100);

/// Attachment of a rank to its job: directly (`Own`), or through a daemon (`Agent`).
pub enum Link {
    Own(Box<Member>),
    Agent(Client),
}

/// Handle of the sums of an operation in progress, for a direct attachment or one through a daemon.
pub enum Awaited {
    Own(Pending),
    Agent(RemotePending),
}

impl Link {
    pub fn all_reduce_as(
        &self,
        values: Values,
        reduction: Reduction,
    ) -> Result<Awaited, CollectiveError> {
        Ok(match self {
            Link::Own(member) => Awaited::Own(member.all_reduce_as(values, reduction)?),
            Link::Agent(client) => Awaited::Agent(client.all_reduce_as(&values, reduction)?),
        })
    }

    /// Maximum number of unanswered operations.
    pub fn operations(&self) -> u64 {
        match self {
            Link::Own(_) => u64::MAX,
            Link::Agent(client) => client.operations(),
        }
    }

    /// Number of times that the switch fell silent. A daemon reports it to its ranks with each sum.
    pub fn fallbacks(&self) -> u64 {
        match self {
            Link::Own(member) => member.counters().0.fallbacks,
            Link::Agent(client) => client.fallbacks(),
        }
    }

    pub fn counters(&self) -> Result<RankCounters, CollectiveError> {
        match self {
            Link::Own(member) => Ok(member.counters().0),
            Link::Agent(client) => client.status().map(|status| counted(&status)),
        }
    }
}

impl Link {
    /// File descriptors that a forked process inherits and must close: otherwise they stay open after this process closes them.
    pub fn descriptors(&self) -> Vec<RawFd> {
        match self {
            Link::Own(member) => member.descriptors().to_vec(),
            Link::Agent(client) => vec![client.descriptor()],
        }
    }

    /// Leaves the job, if attached through a daemon. A directly attached rank leaves when this value is dropped.
    pub fn close(&self) {
        if let Link::Agent(client) = self {
            client.close();
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Handles of sums keep the connection alive.
        self.close();
    }
}

impl Awaited {
    /// Waits for the sums, with Python's lock released. A signal such as Ctrl-C ends the wait if its handler raises an exception,
    /// which is the outer error; then this can be called again.
    pub fn wait(
        &mut self,
        py: Python<'_>,
        timeout: Duration,
    ) -> PyResult<Result<Sums, CollectiveError>> {
        let mut left = timeout;
        loop {
            let now = left.min(BETWEEN_SIGNALS);
            if let Some(ended) = py.detach(|| self.wait_for(now)) {
                return Ok(ended);
            }
            left -= now;
            if left.is_zero() {
                return Ok(Err(py.detach(|| self.late(timeout))));
            }
            py.check_signals()?;
        }
    }

    fn wait_for(&mut self, timeout: Duration) -> Option<Result<Sums, CollectiveError>> {
        match self {
            Awaited::Own(pending) => pending.wait_for(timeout),
            Awaited::Agent(pending) => pending.wait_for(timeout),
        }
    }

    fn late(&mut self, waited: Duration) -> CollectiveError {
        match self {
            Awaited::Own(pending) => pending.late(waited),
            Awaited::Agent(pending) => pending.late(waited),
        }
    }
}

/// Length of the Ethernet, IPv4 and UDP headers in bytes.
const EMPTY_FRAME: u64 = 42;

/// The rank's counters, read from the metrics in a status.
fn counted(status: &Status) -> RankCounters {
    let count = |name: &str| status.counters.get(name).copied().unwrap_or(0);
    let mut counters = RankCounters {
        fallbacks: count("weir_fallbacks_total"),
        returns: count("weir_returns_total"),
        by_hosts: count("weir_chunks_by_hosts_total"),
        operations: count("weir_operations_total"),
        non_finite: count("weir_non_finite_operations_total"),
        probes: count("weir_probes_total"),
        repeated_guesses: count("weir_repeated_guesses_total"),
        timeouts: count("weir_timeouts_total"),
        partial_chunks: count("weir_partial_chunks_total"),
        late_chunks: count("weir_late_chunks_total"),
        clipped_chunks: count("weir_clipped_chunks_total"),
        dropped_chunks: count("weir_dropped_chunks_total"),
        carried: count("weir_carried_operations_total"),
        lost_residuals: count("weir_lost_residuals_total"),
        closes: count("weir_closes_total"),
        forgotten: count("weir_forgotten_chunks_total"),
        ..RankCounters::default()
    };
    counters.sent.frames = count("weir_sent_frames_total");
    counters.sent.retransmitted_frames = count("weir_resent_frames_total");
    // Metrics count whole frames.
    let headers = (EMPTY_FRAME * counters.sent.frames).min(count("weir_sent_bytes_total"));
    counters.sent.bytes = count("weir_sent_bytes_total") - headers;
    counters
}
