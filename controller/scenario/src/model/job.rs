//! Aggregation jobs: trainings whose values switches sum, with their ranks, summing switches, slots and limits.

use parser_gen::FrameValues;

use crate::diagnostic::{Span, Spanned};

/// Number of the job that a scenario's training has in aggregation headers.
pub const JOB: u16 = 1;
/// Number of aggregation slots of a switch, shared by its jobs. A slot has two cells of each register (`NUM_SLOTS` in p4src).
pub const SLOTS: u32 = 1024;
/// Maximum number of ranks of a job on a tree of summing switches.
pub const MAX_RANKS: usize = 1024;
/// Maximum number of children (ranks and lower switches) of a summing switch: a slot's bitmap has a bit for each of them.
pub const MAX_CHILDREN: usize = 64;
/// Maximum number of jobs that one switch sums (`jobs` in p4src/common/aggregate.p4).
pub const MAX_JOBS: usize = 64;
/// Bytes of an aggregation packet in front of the values: headers of IPv4, UDP and aggregation (docs/protocol.md).
pub const HEADERS: u32 = 20 + 8 + 24;
/// Bytes that RoCEv2 reserves for headers in every packet. A link uses the largest RoCE MTU that leaves these bytes free in its
/// own MTU, as the kernel's rxe does (docs/rdma.md, "Sums by the switch").
pub const ROCE_HEADERS: u32 = 80;
/// Maximum number of queue pairs that a switch stores, over all its jobs (`NUM_CONTACTS` in p4src).
pub const CONTACTS: u32 = 1024;

/// The lowest rate limit of a job, in bits per second.
pub const MIN_RATE_BPS: u64 = 1000;
/// Bytes of a frame of 256 values, with its headers (docs/protocol.md, "Frame").
const FRAME_BYTES: u64 = 1090;

/// Burst size, in bytes, for a job's rate limit: two windows of `window` frames from each of a switch's `children`. So the
/// switch does not drop the frames that all ranks send at the start.
#[must_use]
pub fn burst_bytes(window: u32, children: usize) -> u64 {
    2 * u64::from(window) * children as u64 * FRAME_BYTES
}

/// Maximum of a job's deadline, in nanoseconds.
pub const MAX_DEADLINE_NS: u64 = 60_000_000_000;

/// The treatment of late contributions: values that come after their sum was completed without them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// Late contributions are dropped.
    Drop,
    /// Late contributions are added to the next sum of the same values.
    Next,
}

/// The deadline of a job's sums: when a switch completes a sum without all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// Time from the first contribution to a sum until the switch may complete it, in nanoseconds.
    pub after_ns: u64,
    /// Minimum number of ranks whose contributions a partial sum needs.
    pub quorum: u16,
    /// The treatment of contributions that come after the sum was completed.
    pub late: Late,
    /// Position of the deadline's declaration in the file.
    pub span: Span,
}

/// The transport of a job's values between the ranks and the switch that sums them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// UDP datagrams of the aggregation protocol (docs/protocol.md).
    #[default]
    Udp,
    /// RDMA WRITEs with immediate, over RoCEv2.
    Rdma,
}

impl Transport {
    /// The word for the transport in scenario files and programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Transport::Udp => "udp",
            Transport::Rdma => "rdma",
        }
    }
}

/// A job: ranks that contribute values, and the switches that sum the values and send the sums to all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The job's name.
    pub name: String,
    /// The job's number in aggregation headers, counted from 1 in declared order.
    pub number: u16,
    /// Names of the hosts of the ranks (the job's participants), in rank order.
    pub ranks: Vec<String>,
    /// The switches that sum the job's values, the root of the tree first.
    pub tree: Vec<Summing>,
    /// Maximum number of chunks (pieces of values) that a rank has in flight: a power of two, and the job's number of slots.
    pub window: u32,
    /// Index of the job's first aggregation slot on each switch.
    pub base: u32,
    /// When a switch completes a partial sum; `None`: a switch always waits for all ranks.
    pub deadline: Option<Deadline>,
    /// Rate limit, in bits per second, of all frames of the job that come to one switch of the tree; `None`: no limit.
    pub rate: Option<Spanned<u64>>,
    /// Number of values in each aggregation frame of the job.
    pub values: FrameValues,
    /// Position where the file declares the number of values; `None` if it follows from the links.
    pub values_span: Option<Span>,
    /// The transport of the values between ranks and switches.
    pub transport: Spanned<Transport>,
    /// For a job over RDMA: index of rank 0's queue pair in a switch's registers. The other ranks' queue pairs follow in order.
    pub contact: u32,
    /// Position of the job's declaration in the file.
    pub span: Span,
}

/// A summing switch in the tree of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summing {
    /// The switch's name.
    pub switch: String,
    /// Hosts and lower switches whose values this switch sums. The position in this list is the child's number at this switch.
    pub children: Vec<String>,
    /// Name of the parent switch, and this switch's number among the parent's children. `None` for the root.
    pub parent: Option<(String, u16)>,
}

impl Job {
    /// The position of a switch in the job's tree; `None` if the switch does not sum for this job.
    #[must_use]
    pub fn on(&self, switch: &str) -> Option<&Summing> {
        self.tree.iter().find(|summing| summing.switch == switch)
    }

    /// Name of the root of the tree; the root's sums cover all ranks.
    #[must_use]
    pub fn top(&self) -> &str {
        self.tree.first().map_or("", |top| &top.switch)
    }

    /// Whether RoCEv2 carries the job's values.
    #[must_use]
    pub fn is_rdma(&self) -> bool {
        self.transport.value == Transport::Rdma
    }

    /// Environment variables with the job and the rank, for programs on a host; empty if the host is not a rank of the job.
    #[must_use]
    pub fn environment(&self, host: &str) -> Vec<(&'static str, String)> {
        let rank = self.ranks.iter().position(|rank| rank == host);
        let place = self.tree.iter().find_map(|summing| {
            let child = summing.children.iter().position(|child| child == host)?;
            Some((child, summing.children.len()))
        });
        let (Some(rank), Some((child, siblings)), Some(top)) = (rank, place, self.tree.first())
        else {
            return Vec::new();
        };
        let mut environment = vec![
            ("WEIR_JOB", self.number.to_string()),
            ("WEIR_RANK", rank.to_string()),
            ("WEIR_RANKS", self.ranks.len().to_string()),
            ("WEIR_WINDOW", self.window.to_string()),
            ("WEIR_VALUES", self.values.count().to_string()),
            (
                "WEIR_PLACE",
                format!("{child}/{siblings}/{}", top.children.len()),
            ),
        ];
        if self.is_rdma() {
            environment.push(("WEIR_TRANSPORT", self.transport.value.name().to_owned()));
        }
        if let Some(deadline) = self.deadline {
            let seconds = deadline.after_ns as f64 / 1e9;
            let late = match deadline.late {
                Late::Drop => "drop",
                Late::Next => "next",
            };
            environment.extend([
                ("WEIR_DEADLINE", seconds.to_string()),
                ("WEIR_QUORUM", deadline.quorum.to_string()),
                ("WEIR_LATE", late.to_owned()),
            ]);
        }
        environment
    }
}
