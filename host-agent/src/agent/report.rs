//! What agents print.

use aggregation::Sent;
use aggregation::server::ServerCounters;
use serde::{Deserialize, Serialize};

/// One line of an agent's standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Line {
    /// Frames can be received.
    Ready,
    /// The server has applied a round.
    Round(RoundReport),
    /// The server takes sums of other parts, as it was told to.
    Replanned {
        /// The first chunk of which it does. Workers send those before it to the server by themselves.
        from: u32,
    },
    /// The server has applied the first of those chunks, or the last of all.
    Resumed {
        /// Which plan's: as it was said in `Replanned`.
        from: u32,
        /// When, in nanoseconds since 1970.
        at_ns: u64,
    },
    /// The end.
    Report(Report),
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Report {
    /// A worker's.
    Worker(WorkerReport),
    /// The server's.
    Server(ServerReport),
    /// That of the run without a network.
    Reference(ReferenceReport),
}

/// A round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RoundReport {
    /// Which, from 0.
    pub round: u64,
    /// How many there will be.
    pub rounds: u64,
    /// The fraction of held-out samples that the weights recognise now.
    pub accuracy: f64,
    /// How long the round took.
    pub wall_ms: f64,
}

/// What was sent. Bytes are whole Ethernet frames without FCS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SentReport {
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames whose chunk had been sent before to the same destination.
    pub retransmitted_frames: u64,
    /// Their bytes.
    pub retransmitted_bytes: u64,
}

/// Of a frame, in front of the aggregation header.
const HEADERS: u64 = 14 + 20 + 8;

/// What came to a server in frames that brought nothing new, with their headers.
pub(super) fn repeated_bytes(counters: &ServerCounters) -> u64 {
    let frames = counters.again + counters.duplicates + counters.stale;
    counters.repeated_bytes + frames * HEADERS
}

impl SentReport {
    /// Adds the headers that each frame has in front.
    pub(crate) fn new(sent: Sent) -> SentReport {
        SentReport {
            frames: sent.frames,
            bytes: sent.bytes + sent.frames * HEADERS,
            retransmitted_frames: sent.retransmitted_frames,
            retransmitted_bytes: sent.retransmitted_bytes + sent.retransmitted_frames * HEADERS,
        }
    }
}

/// What a worker did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// Which worker.
    pub rank: u16,
    /// The SHA-256 of the weights that it received last.
    pub weights_sha256: String,
    /// What it sent.
    pub sent: SentReport,
    /// Chunks that timed out.
    pub timeouts: u64,
    /// Chunks sent again because later ones were answered.
    pub fast_retransmits: u64,
    /// Answers that came again.
    pub duplicates: u64,
    /// Frames that were for others, or no aggregation frames.
    pub not_ours: u64,
    /// Aggregation frames that were broken.
    pub malformed: u64,
    /// The mean loss of its batch, by round.
    pub losses: Vec<f32>,
    /// How long each round took.
    pub rounds_ms: Vec<f64>,
    /// From the start to the end.
    pub wall_ms: f64,
}

/// What a server did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerReport {
    /// The SHA-256 of the final weights.
    pub weights_sha256: String,
    /// The fraction of held-out samples that the final weights recognise.
    pub accuracy: f64,
    /// What it sent.
    pub sent: SentReport,
    /// Chunks applied or agreed on.
    pub completed: u64,
    /// Frames that asked again.
    pub again: u64,
    /// Frames that brought nothing new.
    pub duplicates: u64,
    /// Frames older than what their cell holds.
    pub stale: u64,
    /// Bytes of the last three: whole Ethernet frames without FCS.
    pub repeated_bytes: u64,
    /// Frames that were for others, or no aggregation frames.
    pub not_ours: u64,
    /// Aggregation frames that were broken.
    pub malformed: u64,
    /// Answers not sent because the queue was full.
    pub dropped: u64,
    /// How long each round took.
    pub rounds_ms: Vec<f64>,
    /// From the start to the end.
    pub wall_ms: f64,
}

/// What the run without a network came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReferenceReport {
    /// The SHA-256 of the final weights.
    pub weights_sha256: String,
    /// The fraction of held-out samples that the final weights recognise.
    pub accuracy: f64,
    /// The mean loss of the workers' batches, by round.
    pub losses: Vec<f32>,
    /// From the start to the end.
    pub wall_ms: f64,
}

#[cfg(test)]
mod tests {
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
