//! The results of a training: accuracy, bytes on links, and a report for each iteration.

use std::time::Duration;

use host_agent::agent::RoundReport;
use scenario::model::expect::metric::{Metric, Metrics, TrainingMetric};

use super::workload::TrainingReports;

/// The results of a training, from the reports of its server and workers.
#[derive(Debug, Clone)]
pub struct TrainingResult {
    /// Fraction of the held-out samples that the final weights classify correctly, from 0 to 1.
    pub accuracy: f64,
    /// SHA-256 of the server's final weights, in hexadecimal.
    pub weights_sha256: String,
    /// Ranks of the workers whose final weights differ from the server's.
    pub disagreeing_workers: Vec<u16>,
    /// Size of all frames on the server's link without FCS, both directions together, in bytes.
    pub server_link_bytes: u64,
    /// Bytes in `server_link_bytes` that retransmissions caused.
    pub server_link_repeated_bytes: u64,
    /// Size of all frames that the workers and the server sent, in bytes.
    pub sent_bytes: u64,
    /// Bytes in `sent_bytes` that were retransmitted.
    pub retransmitted_bytes: u64,
    /// Number of iterations of the training.
    pub iterations: u32,
    /// Report of the server on each iteration.
    pub rounds: Vec<RoundReport>,
}

impl TrainingResult {
    /// Computes the results from the agents' reports, and from the count of bytes on the server's link.
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

    /// Adds the metrics of the whole training, under the names that `expect` uses; `wall`: duration of the workload.
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
