//! The JSON lines that agents print, and the reports in them.

use aggregation::server::ServerCounters;
use serde::{Deserialize, Serialize};

use crate::metrics::{HEADERS, SentReport};

/// One line of an agent's standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Line {
    /// The agent can receive frames.
    Ready,
    /// The server has applied the sums of a training round.
    Round(RoundReport),
    /// The server now accepts sums of other parts of the job, as ordered.
    Replanned {
        /// Number of the first chunk of the new parts. Workers send earlier chunks directly to the server.
        from: u32,
    },
    /// After `Replanned`: the server has applied a first sum from the new parts, or the last chunk of the job.
    Resumed {
        /// Number of the first chunk of the new parts, as in `Replanned`.
        from: u32,
        /// Time at which the server applied it, in nanoseconds since 1970.
        at_ns: u64,
    },
    /// The final report of the agent.
    Report(Report),
}

/// The final report of an agent, by role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Report {
    /// Report of a worker.
    Worker(WorkerReport),
    /// Report of the server.
    Server(ServerReport),
    /// Report of the reference training in one process.
    Reference(ReferenceReport),
}

/// Report of the server on a training round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RoundReport {
    /// Number of the round, from 0.
    pub round: u64,
    /// Total number of rounds.
    pub rounds: u64,
    /// Fraction of the held-out samples that the weights now classify correctly.
    pub accuracy: f64,
    /// Duration of the round in milliseconds.
    pub wall_ms: f64,
}

/// Bytes, with all headers, of the frames that a server received and that added nothing to a sum.
pub(super) fn repeated_bytes(counters: &ServerCounters) -> u64 {
    let frames = counters.again + counters.duplicates + counters.stale;
    counters.repeated_bytes + frames * HEADERS
}

/// Final report of a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// Rank of the worker.
    pub rank: u16,
    /// SHA-256 of the weights received last.
    pub weights_sha256: String,
    /// Counters of the frames sent.
    pub sent: SentReport,
    /// Chunks that timed out.
    pub timeouts: u64,
    /// Chunks retransmitted because later ones were answered.
    pub fast_retransmits: u64,
    /// Answers received to chunks that had been answered before.
    pub duplicates: u64,
    /// Received frames for other agents, or that are not aggregation frames.
    pub not_ours: u64,
    /// Received aggregation frames that are invalid.
    pub malformed: u64,
    /// The mean loss of the worker's mini-batch, by round.
    pub losses: Vec<f32>,
    /// Duration of each round in milliseconds.
    pub rounds_ms: Vec<f64>,
    /// Duration of the training in milliseconds.
    pub wall_ms: f64,
}

/// Final report of a parameter server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerReport {
    /// The SHA-256 of the final weights.
    pub weights_sha256: String,
    /// Fraction of the held-out samples that the final weights classify correctly.
    pub accuracy: f64,
    /// Counters of the frames sent.
    pub sent: SentReport,
    /// Chunks completed: sums applied, or exponents agreed on if the chunk has no values.
    pub completed: u64,
    /// Frames received that requested the answer to a chunk again.
    pub again: u64,
    /// Frames received that added nothing to their chunk.
    pub duplicates: u64,
    /// Frames received whose chunk is older than the latest chunk in its register cell.
    pub stale: u64,
    /// Bytes of the frames in `again`, `duplicates` and `stale`: whole Ethernet frames without the checksum (FCS).
    pub repeated_bytes: u64,
    /// Received frames for other agents, or that are not aggregation frames.
    pub not_ours: u64,
    /// Received aggregation frames that are invalid.
    pub malformed: u64,
    /// Answers not sent because the transmit queue was full.
    pub dropped: u64,
    /// Duration of each round in milliseconds.
    pub rounds_ms: Vec<f64>,
    /// Duration of the training in milliseconds.
    pub wall_ms: f64,
}

/// Final report of the reference training in one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReferenceReport {
    /// The SHA-256 of the final weights.
    pub weights_sha256: String,
    /// Fraction of the held-out samples that the final weights classify correctly.
    pub accuracy: f64,
    /// The mean loss of the workers' batches, by round.
    pub losses: Vec<f32>,
    /// Duration of the training in milliseconds.
    pub wall_ms: f64,
}

#[cfg(test)]
mod tests {
    use aggregation::Sent;

    use super::*;

    #[test]
    fn a_line_is_one_flat_object() {
        let line = Line::Round(RoundReport {
            round: 1,
            rounds: 2,
            accuracy: 0.5,
            wall_ms: 1.5,
        });
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(
            text,
            r#"{"event":"round","round":1,"rounds":2,"accuracy":0.5,"wall_ms":1.5}"#
        );
        assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line);
        let report = Line::Report(Report::Reference(ReferenceReport {
            weights_sha256: "00".into(),
            accuracy: 1.0,
            losses: vec![],
            wall_ms: 0.0,
        }));
        let text = serde_json::to_string(&report).unwrap();
        assert!(
            text.starts_with(r#"{"event":"report","role":"reference","weights_sha256""#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), report);
    }

    #[test]
    fn bytes_include_the_headers() {
        let sent = Sent {
            frames: 2,
            bytes: 1044 + 20,
            retransmitted_frames: 1,
            retransmitted_bytes: 20,
        };
        let report = SentReport::new(sent);
        assert_eq!((report.bytes, report.retransmitted_bytes), (1086 + 62, 62));
        let counters = ServerCounters {
            again: 1,
            duplicates: 1,
            stale: 1,
            malformed: 1,
            repeated_bytes: 3 * 20,
            ..ServerCounters::default()
        };
        assert_eq!(repeated_bytes(&counters), 3 * 62);
    }
}
