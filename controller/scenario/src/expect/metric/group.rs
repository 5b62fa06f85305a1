//! The groups of metrics: the word of each, and what it measures.

use super::UnknownMetric;
use crate::expect::Measure;

/// A line of a group's table.
pub(super) struct Line {
    /// In which the names of its metrics end.
    pub(super) word: &'static str,
    /// What they measure.
    pub(super) measure: Measure,
}

/// The table of a group of metrics: the word of each, and what it measures.
macro_rules! group {
    ($(#[$about:meta])* $group:ident { $($(#[$doc:meta])* $variant:ident = $word:literal: $measure:ident,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $group {
            $($(#[$doc])* $variant,)+
        }

        impl $group {
            /// All of them.
            pub const ALL: &'static [$group] = &[$($group::$variant),+];

            pub(super) fn line(self) -> Line {
                match self {
                    $($group::$variant => Line { word: $word, measure: Measure::$measure },)+
                }
            }

            /// The word in which its metric's name ends.
            #[must_use]
            pub fn word(self) -> &'static str {
                self.line().word
            }

            /// The words of all.
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
    /// Of the run itself.
    RunMetric {
        /// How long the workload took.
        Wall = "wall": Duration,
        /// For how long, at worst, some switches were in a step of the timeline and others not yet.
        Skew = "skew": Duration,
    }
}

group! {
    /// Of a fault.
    FaultMetric {
        /// Counted by the switches.
        Fired = "fired": Number,
        /// Had to be hit, and was: by captures on both sides of them.
        Observed = "observed": Number,
        /// Of those, dropped by another fault.
        Overridden = "overridden": Number,
        /// Had to be hit, and nothing shows whether it was: the switch's entries forward them nowhere.
        Unforwarded = "unforwarded": Number,
        /// Their key had no cell, and so they were spared.
        Keyless = "keyless": Number,
        /// Had to be hit, and was not.
        Missed = "missed": Number,
        /// Had not to be hit, and was.
        Collateral = "collateral": Number,
        /// Came while an epoch was being written.
        Boundary = "boundary": Number,
        /// Had not to be delayed, and was as late as if it had.
        Slow = "slow": Number,
        /// Of a delay: how much later than asked the latest packet left.
        Beyond = "beyond": Duration,
        /// Of data of an RDMA connection that was taken: what came again.
        Recovered = "recovered": Number,
        /// The longest time that took.
        Recovery = "recovery": Duration,
    }
}

group! {
    /// Of a trigger.
    TriggerMetric {
        /// How often it came on, all keys together: counted by the switch.
        On = "on": Number,
        /// Packets that it would have counted, and whose key had no cell.
        Keyless = "keyless": Number,
    }
}

group! {
    /// Of a flow, from captures at both of its ends.
    FlowMetric {
        /// What the sender put on its link.
        Sent = "sent": Number,
        /// Of those, what came out towards the receiver.
        Received = "received": Number,
        /// Sent and not received.
        Lost = "lost": Number,
        /// Received more often than sent.
        Extra = "extra": Number,
        /// The longest time between the two.
        Longest = "longest": Duration,
    }
}

group! {
    /// Of a switch.
    SwitchMetric {
        /// Packets that came in.
        Received = "received": Number,
        /// Packets that went out.
        Sent = "sent": Number,
        /// Packets that could not be read as deep as the filters ask.
        Unparsed = "unparsed": Number,
        /// Packets that its ports marked (ECN) because too many waited for their links.
        Marked = "marked": Number,
    }
}

group! {
    /// Of a client: all its requests, or those of one command.
    ClientMetric {
        /// How many were answered.
        Requests = "requests": Number,
        /// How many were answered with an error; of a whole client alone.
        Errors = "errors": Number,
        /// The shortest latency.
        Min = "min": Duration,
        /// The mean latency.
        Mean = "mean": Duration,
        /// Half took no longer.
        P50 = "p50": Duration,
        /// 90 of 100 took no longer.
        P90 = "p90": Duration,
        /// 99 of 100 took no longer.
        P99 = "p99": Duration,
        /// The longest latency.
        Max = "max": Duration,
    }
}

group! {
    /// Of a training.
    TrainingMetric {
        /// The fraction of held-out samples that the final weights recognise.
        Accuracy = "accuracy": Number,
        /// Iterations.
        Iterations = "iterations": Number,
        /// Chunks with values in one iteration.
        Chunks = "chunks": Number,
        /// 1 if the weights are those of the reference run.
        WeightsEqual = "weights_equal": Number,
        /// Frame bytes that were sent again.
        RetransmittedBytes = "retransmitted_bytes": Size,
        /// Frame bytes on the server's link, both directions.
        ServerLinkBytes = "server_link_bytes": Size,
        /// How often gradients were planned again, and training went on by that plan.
        Repairs = "repairs": Number,
        /// The longest of those times: from when a switch was seen to have gone, or to be back, to the first sum of the new plan.
        Repair = "repair": Duration,
        /// From the start signal to the last report.
        Wall = "wall": Duration,
        /// From when a worker had its data to when the job was closed: the longest of all workers.
        Took = "took": Duration,
    }
}

group! {
    /// Of a command.
    CommandMetric {
        /// Its exit code: the first that is not 0, of several runs. 128 and the signal's number, if a signal ended it.
        Exit = "exit": Number,
        /// How often it ran.
        Runs = "runs": Number,
        /// How many of those had another exit code than 0.
        Failures = "failures": Number,
    }
}

group! {
    /// Of a series of numbers. All but the count measure what the numbers do.
    Statistic {
        /// How many there are.
        Count = "count": Number,
        /// The smallest.
        Min = "min": Number,
        /// Their mean.
        Mean = "mean": Number,
        /// Half are no larger.
        P50 = "p50": Number,
        /// 90 of 100 are no larger.
        P90 = "p90": Number,
        /// 99 of 100 are no larger.
        P99 = "p99": Number,
        /// The largest.
        Max = "max": Number,
    }
}

group! {
    /// Of a probe: latencies of what was answered.
    ProbeMetric {
        /// How often it asked.
        Count = "count": Number,
        /// How often there was no answer, or a bad one.
        Failures = "failures": Number,
        /// The shortest latency.
        Min = "min": Duration,
        /// The mean latency.
        Mean = "mean": Duration,
        /// Half took no longer.
        P50 = "p50": Duration,
        /// 90 of 100 took no longer.
        P90 = "p90": Duration,
        /// 99 of 100 took no longer.
        P99 = "p99": Duration,
        /// The longest latency.
        Max = "max": Duration,
    }
}
