//! The results of a training.

use std::time::Duration;

use host_agent::agent::RoundReport;
use scenario::model::expect::metric::{Metric, Metrics, TrainingMetric};

use super::workload::TrainingReports;

/// The results of a training.
#[derive(Debug, Clone)]
pub struct TrainingResult {
    /// The fraction of held-out samples that the final weights recognise.
    pub accuracy: f64,
    /// The SHA-256 of the server's final weights.
    pub weights_sha256: String,
    /// Ranks of the workers whose final weights differ from the server's.
    pub disagreeing_workers: Vec<u16>,
    /// Frame bytes without FCS on the server's link, both directions.
    pub server_link_bytes: u64,
    /// The part of `server_link_bytes` that retransmissions caused.
    pub server_link_repeated_bytes: u64,
    /// Frame bytes that the workers and the server sent.
    pub sent_bytes: u64,
    /// The part of `sent_bytes` that was retransmitted.
    pub retransmitted_bytes: u64,
    /// Number of iterations.
    pub iterations: u32,
    /// One report for each iteration.
    pub rounds: Vec<RoundReport>,
}

impl TrainingResult {
    /// Derives the results from the agents' reports, and from the count of bytes on the server's link.
    pub fn new(
        reports: TrainingReports,
        server_link_bytes: u64,
        iterations: u32,
    ) -> TrainingResult {
        let TrainingReports {
            server,
            workers,
            rounds,
        } = reports;
        let (sent_bytes, by_workers) =
            workers
                .iter()
                .fold((server.sent.bytes, 0), |(sent, again), worker| {
                    let of = worker.sent;
                    (sent + of.bytes, again + of.retransmitted_bytes)
                });
        let by_server = server.sent.retransmitted_bytes;
        let disagreeing = workers
            .iter()
            .filter(|worker| worker.weights_sha256 != server.weights_sha256);
        TrainingResult {
            accuracy: server.accuracy,
            disagreeing_workers: disagreeing.map(|worker| worker.rank).collect(),
            weights_sha256: server.weights_sha256,
            server_link_bytes,
            // Frames that arrive at the server twice although no worker retransmitted them are not counted as retransmissions.
            server_link_repeated_bytes: by_server + server.repeated_bytes.min(by_workers),
            sent_bytes,
            retransmitted_bytes: by_server + by_workers,
            iterations,
            rounds,
        }
    }

    /// Adds the metrics that no report of an agent has, under the names that expectations use.
    pub fn add_metrics(&self, metrics: &mut Metrics, wall: Duration) {
        let values = [
            (
                TrainingMetric::ServerLinkBytes,
                self.server_link_bytes as f64,
            ),
            (TrainingMetric::Wall, wall.as_nanos() as f64),
        ];
        metrics.extend(values.map(|(what, value)| (Metric::Training(what), value)));
    }
}
