//! The groups of metrics: the word and measure of each metric.

use super::UnknownMetric;
use crate::model::expect::Measure;

/// A line of a group's table.
pub(super) struct Line {
    /// The last word of the metric's name.
    pub(super) word: &'static str,
    /// The measure of the metric.
    pub(super) measure: Measure,
}

/// Declares a group of metrics: the word and measure of each.
macro_rules! group {
    ($(#[$about:meta])* $group:ident { $($(#[$doc:meta])* $variant:ident = $word:literal: $measure:ident,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $group {
            $($(#[$doc])* $variant,)+
        }

        impl $group {
            /// All metrics of the group.
            pub const ALL: &'static [$group] = &[$($group::$variant),+];

            pub(super) fn line(self) -> Line {
                match self {
                    $($group::$variant => Line { word: $word, measure: Measure::$measure },)+
                }
            }

            /// The last word of the metric's name.
            #[must_use]
            pub fn word(self) -> &'static str {
                self.line().word
            }

            /// The words of all metrics of the group.
            pub fn words() -> impl Iterator<Item = &'static str> {
                Self::ALL.iter().map(|what| what.line().word)
            }

            pub(super) fn of(word: &str) -> Result<$group, UnknownMetric> {
                let found = $group::ALL.iter().find(|what| what.line().word == word);
                found.copied().ok_or(UnknownMetric)
            }
        }
    };
}

group! {
    /// Metrics of the run itself.
    RunMetric {
        /// Duration of the workload.
        Wall = "wall": Duration,
        /// The longest time during which some switches were in a step of the timeline and others not yet.
        Skew = "skew": Duration,
    }
}

group! {
    /// Metrics of a fault. Unless stated otherwise, they count packets.
    FaultMetric {
        /// Hits that the switches counted.
        Fired = "fired": Number,
        /// Packets that had to be hit, and were, according to captures on both sides of the switch.
        Observed = "observed": Number,
        /// Observed packets that another fault dropped.
        Overridden = "overridden": Number,
        /// Packets that had to be hit, without evidence whether they were: the switch's entries forward them to no port.
        Unforwarded = "unforwarded": Number,
        /// Packets that were not hit because their key had no cell.
        Keyless = "keyless": Number,
        /// Packets that had to be hit, and were not.
        Missed = "missed": Number,
        /// Packets that must not be hit, and were.
        Collateral = "collateral": Number,
        /// Packets that came while an epoch was being written.
        Boundary = "boundary": Number,
        /// Packets that were not to be delayed, and were as late as delayed ones.
        Slow = "slow": Number,
        /// For a delay: the maximum time by which a packet left later than asked.
        Beyond = "beyond": Duration,
        /// Packets of RDMA data that the fault took and the sender retransmitted.
        Recovered = "recovered": Number,
        /// The longest time until such a retransmission.
        Recovery = "recovery": Duration,
    }
}

group! {
    /// Metrics of a trigger.
    TriggerMetric {
        /// Number of times that the trigger came on, over all keys, as the switch counts.
        On = "on": Number,
        /// Packets that the trigger would have counted, but whose key had no cell.
        Keyless = "keyless": Number,
    }
}

group! {
    /// Metrics of a flow, from captures at both of its ends.
    FlowMetric {
        /// Packets that the sender put on its link.
        Sent = "sent": Number,
        /// Sent packets that arrived at the receiver's end.
        Received = "received": Number,
        /// Packets that were sent and not received.
        Lost = "lost": Number,
        /// Packets that were received more often than sent.
        Extra = "extra": Number,
        /// The median time from sending to receipt.
        P50 = "p50": Duration,
        /// The 99th percentile of times from sending to receipt.
        P99 = "p99": Duration,
        /// The longest time from sending to receipt.
        Longest = "longest": Duration,
    }
}

group! {
    /// Metrics of a switch.
    SwitchMetric {
        /// Packets that came in.
        Received = "received": Number,
        /// Packets that went out.
        Sent = "sent": Number,
        /// Packets that could not be parsed as deep as the filters require.
        Unparsed = "unparsed": Number,
        /// Packets that its ports marked (ECN) because too many waited for their links.
        Marked = "marked": Number,
    }
}

group! {
    /// Metrics of a client: for all its requests, or for those with one command.
    ClientMetric {
        /// Answered requests.
        Requests = "requests": Number,
        /// Requests that were answered with an error; only for a whole client.
        Errors = "errors": Number,
        /// The shortest latency.
        Min = "min": Duration,
        /// The mean latency.
        Mean = "mean": Duration,
        /// The median latency.
        P50 = "p50": Duration,
        /// The 90th percentile of latencies.
        P90 = "p90": Duration,
        /// The 99th percentile of latencies.
        P99 = "p99": Duration,
        /// The longest latency.
        Max = "max": Duration,
    }
}

group! {
    /// Metrics of a training.
    TrainingMetric {
        /// The fraction of held-out samples that the final weights classify correctly.
        Accuracy = "accuracy": Number,
        /// Iterations.
        Iterations = "iterations": Number,
        /// Chunks of one iteration that carry values.
        Chunks = "chunks": Number,
        /// 1 if the weights are those of the reference run.
        WeightsEqual = "weights_equal": Number,
        /// Frame bytes that were retransmitted.
        RetransmittedBytes = "retransmitted_bytes": Size,
        /// Frame bytes on the server's link, both directions.
        ServerLinkBytes = "server_link_bytes": Size,
        /// Number of times that the gradients were planned again and training continued by the new plan.
        Repairs = "repairs": Number,
        /// The longest repair: from the detection that a switch left or came back, to the first sum of the new plan.
        Repair = "repair": Duration,
        /// From the start signal to the last report.
        Wall = "wall": Duration,
        /// The longest time, over all workers, from a worker having its data to the job being closed.
        Took = "took": Duration,
    }
}

group! {
    /// Metrics of a command.
    CommandMetric {
        /// Exit code: the first nonzero one of several runs; 128 plus the signal's number if a signal ended the command.
        Exit = "exit": Number,
        /// Number of runs.
        Runs = "runs": Number,
        /// Number of runs with a nonzero exit code.
        Failures = "failures": Number,
    }
}

group! {
    /// Statistics of a series of numbers. All but the count have the measure of the numbers.
    Statistic {
        /// How many numbers there are.
        Count = "count": Number,
        /// The smallest number.
        Min = "min": Number,
        /// The mean.
        Mean = "mean": Number,
        /// The median.
        P50 = "p50": Number,
        /// The 90th percentile.
        P90 = "p90": Number,
        /// The 99th percentile.
        P99 = "p99": Number,
        /// The largest number.
        Max = "max": Number,
    }
}

group! {
    /// Metrics of a probe. Latencies are those of answered requests.
    ProbeMetric {
        /// Number of requests.
        Count = "count": Number,
        /// Number of requests without an answer, or with a wrong one.
        Failures = "failures": Number,
        /// The shortest latency.
        Min = "min": Duration,
        /// The mean latency.
        Mean = "mean": Duration,
        /// The median latency.
        P50 = "p50": Duration,
        /// The 90th percentile of latencies.
        P90 = "p90": Duration,
        /// The 99th percentile of latencies.
        P99 = "p99": Duration,
        /// The longest latency.
        Max = "max": Duration,
    }
}
