//! The groups of metrics (run, fault, flow, switch …): for each metric, the last word of its name, and what it measures.

use super::UnknownMetric;
use crate::model::expect::Measure;

/// A metric in the table of its group.
pub(super) struct Line {
    /// The last word of the metric's name, such as `fired`.
    pub(super) word: &'static str,
    /// The quantity that the metric measures.
    pub(super) measure: Measure,
}

/// Declares a group of metrics as an enumeration, with the last word of each name, and what the metric measures.
macro_rules! group {
    ($(#[$about:meta])* $group:ident { $($(#[$doc:meta])* $variant:ident = $word:literal: $measure:ident,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $group {
            $($(#[$doc])* $variant,)+
        }

        impl $group {
            /// All metrics of the group, in declared order.
            pub const ALL: &'static [$group] = &[$($group::$variant),+];

            pub(super) fn line(self) -> Line {
                match self {
                    $($group::$variant => Line { word: $word, measure: Measure::$measure },)+
                }
            }

            /// The last word of the metric's name, such as `fired`.
            #[must_use]
            pub fn word(self) -> &'static str {
                self.line().word
            }

            /// The last words of the names of all metrics of the group.
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
        /// Number of hits that the switches counted.
        Fired = "fired": Number,
        /// Packets that the fault had to hit and did hit, according to captures on both sides of the switch.
        Observed = "observed": Number,
        /// Packets that the fault hit, but another fault dropped.
        Overridden = "overridden": Number,
        /// Packets that the fault had to hit, but that show no result: the switch's table entries forward them to no port.
        Unforwarded = "unforwarded": Number,
        /// Packets that the fault did not hit because the switch had no state cell for their key, such as their connection.
        Keyless = "keyless": Number,
        /// Packets that the fault had to hit and did not hit.
        Missed = "missed": Number,
        /// Packets that the fault hit although it must not hit them.
        Collateral = "collateral": Number,
        /// Packets that came while the controller was writing an epoch, so that it is unknown whether the fault was armed.
        Boundary = "boundary": Number,
        /// Packets that the fault was not to delay, and that were as late as packets which it delays.
        Slow = "slow": Number,
        /// For a fault that delays: the longest time by which a packet left later than the fault asks.
        Beyond = "beyond": Duration,
        /// Packets of RDMA data that the fault took away and the sender retransmitted.
        Recovered = "recovered": Number,
        /// The longest time until the sender retransmitted a packet of RDMA data that the fault took away.
        Recovery = "recovery": Duration,
    }
}

group! {
    /// Metrics of a trigger.
    TriggerMetric {
        /// Number of times that the trigger came on, over all keys, as the switch counts.
        On = "on": Number,
        /// Packets that the trigger should have counted, but whose key (such as their connection) had no state cell.
        Keyless = "keyless": Number,
    }
}

group! {
    /// Metrics of a flow, from captures at both of its ends.
    FlowMetric {
        /// Packets of the flow that the sender put on its link.
        Sent = "sent": Number,
        /// Packets of the sender that arrived at the receiver's end.
        Received = "received": Number,
        /// Packets that the sender sent and the receiver did not receive.
        Lost = "lost": Number,
        /// Packets that the receiver received more often than the sender sent them.
        Extra = "extra": Number,
        /// The median time from the sending of a packet to its receipt.
        P50 = "p50": Duration,
        /// The 99th percentile of the times from the sending of a packet to its receipt.
        P99 = "p99": Duration,
        /// The longest time from the sending of a packet to its receipt.
        Longest = "longest": Duration,
    }
}

group! {
    /// Metrics of a switch.
    SwitchMetric {
        /// Packets that came to the switch.
        Received = "received": Number,
        /// Packets that the switch sent.
        Sent = "sent": Number,
        /// Packets that the switch could not parse as deep as the filters require.
        Unparsed = "unparsed": Number,
        /// Packets that ports of the switch marked (ECN) because too many packets waited at the port.
        Marked = "marked": Number,
    }
}

group! {
    /// Metrics of a client, over all its requests or over those with one Redis command.
    ClientMetric {
        /// Number of answered requests.
        Requests = "requests": Number,
        /// Number of requests that were answered with an error; only over all requests of a client.
        Errors = "errors": Number,
        /// The shortest latency of a request.
        Min = "min": Duration,
        /// The mean latency of the requests.
        Mean = "mean": Duration,
        /// The median latency of the requests.
        P50 = "p50": Duration,
        /// The 90th percentile of the requests' latencies.
        P90 = "p90": Duration,
        /// The 99th percentile of the requests' latencies.
        P99 = "p99": Duration,
        /// The longest latency of a request.
        Max = "max": Duration,
    }
}

group! {
    /// Metrics of a training.
    TrainingMetric {
        /// The fraction of held-out samples that the final weights classify correctly.
        Accuracy = "accuracy": Number,
        /// Number of training iterations.
        Iterations = "iterations": Number,
        /// Number of chunks (pieces of the gradient) that have values, in one training iteration.
        Chunks = "chunks": Number,
        /// 1 if the final weights equal those of the reference run, otherwise 0.
        WeightsEqual = "weights_equal": Number,
        /// Bytes of frames that were retransmitted.
        RetransmittedBytes = "retransmitted_bytes": Size,
        /// Bytes of frames on the server's link, in both directions together.
        ServerLinkBytes = "server_link_bytes": Size,
        /// Number of repairs: the gradients were planned again, and the training continued by the new plan.
        Repairs = "repairs": Number,
        /// Duration of the longest repair: from noticing that a switch left or came back, to the first sum of the new plan.
        Repair = "repair": Duration,
        /// Duration from the start signal to the last report of a worker.
        Wall = "wall": Duration,
        /// The longest time of a worker from having its training data until its job is closed.
        Took = "took": Duration,
    }
}

group! {
    /// Metrics of a command.
    CommandMetric {
        /// Exit code: the first nonzero one of several runs; 128 plus the signal's number if a signal ended the command.
        Exit = "exit": Number,
        /// Number of runs of the command.
        Runs = "runs": Number,
        /// Number of runs of the command with a nonzero exit code.
        Failures = "failures": Number,
    }
}

group! {
    /// Statistics of a series of numbers. Except for the count, they have the unit of the numbers.
    Statistic {
        /// How many numbers the series has.
        Count = "count": Number,
        /// The smallest number of the series.
        Min = "min": Number,
        /// The mean of the numbers.
        Mean = "mean": Number,
        /// The median of the numbers.
        P50 = "p50": Number,
        /// The 90th percentile of the numbers.
        P90 = "p90": Number,
        /// The 99th percentile of the numbers.
        P99 = "p99": Number,
        /// The largest number of the series.
        Max = "max": Number,
    }
}

group! {
    /// Metrics of a probe. Latencies cover answered requests only.
    ProbeMetric {
        /// Number of requests that the probe sent.
        Count = "count": Number,
        /// Number of requests without an answer, or with a wrong one.
        Failures = "failures": Number,
        /// The shortest latency of an answered request.
        Min = "min": Duration,
        /// The mean latency of the answered requests.
        Mean = "mean": Duration,
        /// The median latency of the answered requests.
        P50 = "p50": Duration,
        /// The 90th percentile of the answered requests' latencies.
        P90 = "p90": Duration,
        /// The 99th percentile of the answered requests' latencies.
        P99 = "p99": Duration,
        /// The longest latency of an answered request.
        Max = "max": Duration,
    }
}
