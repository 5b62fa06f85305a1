//! The metrics that ranks, workers and servers export. Names and units follow Prometheus' conventions; each metric has the
//! labels `job` and `rank` (`server` for the parameter server). A test compares the table in docs/doctor.md with this one.

/// Kind of a metric, in Prometheus' terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// The metric only increases, from 0 on.
    Counter,
    /// The metric increases and decreases.
    Gauge,
}

/// A metric that ranks, workers or servers export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Name of the metric.
    pub name: &'static str,
    /// Kind of the metric.
    pub kind: MetricKind,
    /// Help text of the metric, for Prometheus.
    pub help: &'static str,
}

const fn counter(name: &'static str, help: &'static str) -> Metric {
    let kind = MetricKind::Counter;
    Metric { name, kind, help }
}

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    let kind = MetricKind::Gauge;
    Metric { name, kind, help }
}

pub const INFO: Metric = gauge("weir_info", "1, with the labels role, interface and io");
pub const RANKS: Metric = gauge("weir_job_ranks", "ranks, or workers, in the job");
pub const UP: Metric = gauge("weir_up", "1; 0 after the member has given up");
pub const STATUS_AGE: Metric = gauge(
    "weir_status_age_seconds",
    "age of these values; more than a second while the member computes or hangs",
);
pub const WAITING: Metric = gauge(
    "weir_waiting_seconds",
    "waiting time of the oldest chunk in flight; 0 if there is none",
);
pub const WAITING_SLOT: Metric = gauge("weir_waiting_slot", "slot of that chunk");
pub const WAITS_FOR: Metric = gauge(
    "weir_waits_for_worker",
    "1 for each worker, in the label worker, that the switch has reported missing from that chunk",
);
pub const OPERATIONS: Metric = counter("weir_operations_total", "operations with sums");
pub const NON_FINITE: Metric = counter(
    "weir_non_finite_operations_total",
    "operations without sums, because of a value that is not finite",
);
pub const ROUNDS: Metric = counter("weir_rounds_total", "completed rounds of training");
pub const COMPLETED: Metric = counter(
    "weir_completed_chunks_total",
    "chunks that the server has applied or agreed on",
);
pub const SENT_FRAMES: Metric = counter("weir_sent_frames_total", "frames sent");
pub const SENT_BYTES: Metric = counter(
    "weir_sent_bytes_total",
    "bytes in sent frames: whole Ethernet frames without FCS",
);
pub const RESENT_FRAMES: Metric = counter(
    "weir_resent_frames_total",
    "sent frames whose chunk had been sent before",
);
pub const RESENT_BYTES: Metric = counter("weir_resent_bytes_total", "bytes in those frames");
pub const RECEIVED_FRAMES: Metric = counter("weir_received_frames_total", "frames received");
pub const LOST_FRAMES: Metric = counter(
    "weir_lost_frames_total",
    "frames that the kernel dropped because the receive queue was full",
);
pub const UNSENT_FRAMES: Metric = counter(
    "weir_unsent_frames_total",
    "frames that the link did not accept, because it was full or down",
);
pub const PROBES: Metric = counter(
    "weir_probes_total",
    "probes of the switch; included in sent frames",
);
pub const EARLY_PROBES: Metric = counter(
    "weir_early_probes_total",
    "probes for a chunk that later ones have overtaken",
);
pub const WORDS: Metric = counter(
    "weir_words_total",
    "frames to other ranks: requests, replies, and sums that they missed",
);
pub const GUESSES: Metric = counter(
    "weir_repeated_guesses_total",
    "chunks sent again because their exponent was guessed wrongly",
);
pub const TIMEOUTS: Metric = counter("weir_timeouts_total", "chunks that timed out");
pub const MARKS: Metric = counter(
    "weir_congestion_marks_total",
    "answers that a full queue on the path has marked",
);
pub const WINDOW: Metric = gauge(
    "weir_congestion_window_chunks",
    "current limit of chunks in flight",
);
pub const LEAST_WINDOW: Metric = gauge(
    "weir_least_congestion_window_chunks",
    "minimum of that limit so far",
);
pub const FALLBACKS: Metric = counter(
    "weir_fallbacks_total",
    "times that the ranks began to sum themselves because the switch was silent",
);
pub const RETURNS: Metric = counter("weir_returns_total", "times that it answered again");
pub const BY_HOSTS: Metric = counter(
    "weir_chunks_by_hosts_total",
    "chunks that ranks summed themselves",
);
pub const DEADLINES: Metric = counter(
    "weir_deadline_probes_total",
    "probes that asked whether a chunk can be closed",
);
pub const CLOSES: Metric = counter(
    "weir_closes_total",
    "frames sent to close a chunk, including those after another rank's",
);
pub const PARTIAL: Metric = counter(
    "weir_partial_chunks_total",
    "chunks whose sum lacks some ranks",
);
pub const LATE: Metric = counter(
    "weir_late_chunks_total",
    "partial chunks without this rank's values",
);
pub const CLIPPED: Metric = counter(
    "weir_clipped_chunks_total",
    "chunks in which this rank's largest values were clipped",
);
pub const NOT_CARRIED: Metric = counter(
    "weir_dropped_chunks_total",
    "late and clipped chunks whose missing values join no later operation",
);
pub const CARRIED: Metric = counter(
    "weir_carried_operations_total",
    "operations that late values have joined",
);
pub const LOST_RESIDUALS: Metric = counter(
    "weir_lost_residuals_total",
    "operations whose late values were lost",
);
pub const FORGOTTEN: Metric = counter(
    "weir_forgotten_chunks_total",
    "chunks of which the switch forgot whether they were closed",
);
pub const EARLY_SUMS: Metric = counter(
    "weir_early_sums_total",
    "sums that arrived before this rank had sent its values",
);
pub const FAST: Metric = counter(
    "weir_fast_retransmits_total",
    "chunks sent again because later ones were answered",
);
pub const DUPLICATES: Metric = counter("weir_duplicate_frames_total", "frames received again");
pub const AGAIN: Metric = counter(
    "weir_asked_again_total",
    "frames that requested an answer again",
);
pub const STALE: Metric = counter(
    "weir_stale_frames_total",
    "frames older than their cell's chunk",
);
pub const DROPPED: Metric = counter(
    "weir_dropped_answers_total",
    "answers not sent because the queue was full",
);
pub const NOT_OURS: Metric = counter(
    "weir_foreign_frames_total",
    "frames of other jobs or protocols",
);
pub const MALFORMED: Metric = counter(
    "weir_malformed_frames_total",
    "invalid frames, and answers to nothing that was sent",
);

/// All metrics, in the order of output.
pub const ALL: &[&Metric] = &[
    &INFO,
    &RANKS,
    &UP,
    &STATUS_AGE,
    &WAITING,
    &WAITING_SLOT,
    &WAITS_FOR,
    &OPERATIONS,
    &NON_FINITE,
    &ROUNDS,
    &COMPLETED,
    &SENT_FRAMES,
    &SENT_BYTES,
    &RESENT_FRAMES,
    &RESENT_BYTES,
    &RECEIVED_FRAMES,
    &LOST_FRAMES,
    &UNSENT_FRAMES,
    &PROBES,
    &EARLY_PROBES,
    &WORDS,
    &GUESSES,
    &TIMEOUTS,
    &MARKS,
    &WINDOW,
    &LEAST_WINDOW,
    &FALLBACKS,
    &RETURNS,
    &BY_HOSTS,
    &DEADLINES,
    &CLOSES,
    &PARTIAL,
    &LATE,
    &CLIPPED,
    &NOT_CARRIED,
    &CARRIED,
    &LOST_RESIDUALS,
    &FORGOTTEN,
    &EARLY_SUMS,
    &FAST,
    &DUPLICATES,
    &AGAIN,
    &STALE,
    &DROPPED,
    &NOT_OURS,
    &MALFORMED,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// promtool's rules: counters end in `_total`, nothing else does; units are base units, in full.
    #[test]
    fn names_follow_the_conventions() {
        let names: BTreeSet<&str> = ALL.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), ALL.len());
        for metric in ALL {
            let Metric { name, kind, help } = metric;
            assert_eq!(
                name.ends_with("_total"),
                *kind == MetricKind::Counter,
                "{name}"
            );
            let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
            assert!(
                name.starts_with("weir_") && name.bytes().all(is_plain),
                "{name}"
            );
            assert!(
                !help.is_empty() && !help.contains(['\n', '\\', '|']),
                "{name}"
            );
        }
    }
}
