//! Output of agents.

use aggregation::server::ServerCounters;
use serde::{Deserialize, Serialize};

use crate::metrics::{HEADERS, SentReport};

/// One line of an agent's standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Line {
    /// Frames can be received.
    Ready,
    /// The server has applied a round.
    Round(RoundReport),
    /// The server now accepts sums of other parts, as ordered.
    Replanned {
        /// First chunk of the new parts. Workers send earlier chunks directly to the server.
        from: u32,
    },
    /// The server has applied the first chunk of the new parts, or the last chunk of the job.
    Resumed {
        /// First chunk of the plan, as in `Replanned`.
        from: u32,
        /// Time, in nanoseconds since 1970.
        at_ns: u64,
    },
    /// The final report.
    Report(Report),
}

/// The last line of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Report {
    /// Report of a worker.
    Worker(WorkerReport),
    /// Report of the server.
    Server(ServerReport),
    /// Report of the run without a network.
    Reference(ReferenceReport),
}

/// A round of the server.
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

/// Bytes received by a server in frames that added nothing, with their headers.
pub(super) fn repeated_bytes(counters: &ServerCounters) -> u64 {
    let frames = counters.again + counters.duplicates + counters.stale;
    counters.repeated_bytes + frames * HEADERS
}

/// Results of a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// Rank of the worker.
    pub rank: u16,
    /// SHA-256 of the last received weights.
    pub weights_sha256: String,
    /// Frames sent.
    pub sent: SentReport,
    /// Chunks that timed out.
    pub timeouts: u64,
    /// Chunks retransmitted because later ones were answered.
    pub fast_retransmits: u64,
    /// Answers received again.
    pub duplicates: u64,
    /// Frames for others, or that are not aggregation frames.
    pub not_ours: u64,
    /// Invalid aggregation frames.
    pub malformed: u64,
    /// The mean loss of its batch, by round.
    pub losses: Vec<f32>,
    /// Duration of each round in milliseconds.
    pub rounds_ms: Vec<f64>,
    /// Total duration in milliseconds.
    pub wall_ms: f64,
}

/// Results of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerReport {
    /// The SHA-256 of the final weights.
    pub weights_sha256: String,
    /// Fraction of the held-out samples that the final weights classify correctly.
    pub accuracy: f64,
    /// Frames sent.
    pub sent: SentReport,
    /// Chunks applied or agreed on.
    pub completed: u64,
    /// Frames that requested an answer again.
    pub again: u64,
    /// Frames that added nothing.
    pub duplicates: u64,
    /// Frames older than their cell's owner.
    pub stale: u64,
    /// Bytes of the frames in the last three fields: whole Ethernet frames without FCS.
    pub repeated_bytes: u64,
    /// Frames for others, or that are not aggregation frames.
    pub not_ours: u64,
    /// Invalid aggregation frames.
    pub malformed: u64,
    /// Answers not sent because the queue was full.
    pub dropped: u64,
    /// Duration of each round in milliseconds.
    pub rounds_ms: Vec<f64>,
    /// Total duration in milliseconds.
    pub wall_ms: f64,
}

/// Results of the run without a network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReferenceReport {
    /// The SHA-256 of the final weights.
    pub weights_sha256: String,
    /// Fraction of the held-out samples that the final weights classify correctly.
    pub accuracy: f64,
    /// The mean loss of the workers' batches, by round.
    pub losses: Vec<f32>,
    /// Total duration in milliseconds.
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
