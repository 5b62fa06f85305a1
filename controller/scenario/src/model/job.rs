//! Jobs whose values switches sum.

use parser_gen::FrameValues;

use crate::diagnostic::{Span, Spanned};

/// The job number of a scenario's training.
pub const JOB: u16 = 1;
/// Pairs of cells of a switch, shared by all its jobs (`NUM_SLOTS` in p4src).
pub const SLOTS: u32 = 1024;
/// Maximum number of ranks of a job, on a tree of switches.
pub const MAX_RANKS: usize = 1024;
/// Maximum number of children of a summing switch: the number of bits in a slot's bitmap of contributors.
pub const MAX_CHILDREN: usize = 64;
/// Maximum number of jobs on one switch (`jobs` in p4src/common/aggregate.p4).
pub const MAX_JOBS: usize = 64;
/// Bytes of an IP packet in front of the values: headers of IPv4, UDP and aggregation (docs/protocol.md).
pub const HEADERS: u32 = 20 + 8 + 24;
/// Bytes that RoCEv2 reserves for headers, whatever the packet: a link uses the largest RoCE MTU that is smaller than its
/// own by this amount, as the kernel's rxe does (docs/rdma.md, "Sums by the switch").
pub const ROCE_HEADERS: u32 = 80;
/// Queue pairs that a switch knows, over all its jobs (`NUM_CONTACTS` in p4src).
pub const CONTACTS: u32 = 1024;

/// The lowest rate limit of a job, in bits per second.
pub const MIN_RATE_BPS: u64 = 1000;
/// Bytes of a frame of 256 values, with its headers (docs/protocol.md, "Frame").
const FRAME_BYTES: u64 = 1090;

/// Burst size, in bytes, of a rate-limited job whose `children` at a switch each have such a window: two windows per
/// child, so that the initial burst of the ranks is not dropped.
#[must_use]
pub fn burst_bytes(window: u32, children: usize) -> u64 {
    2 * u64::from(window) * children as u64 * FRAME_BYTES
}

/// The longest deadline of a sum, in nanoseconds.
pub const MAX_DEADLINE_NS: u64 = 60_000_000_000;

/// The treatment of late contributions: values that come after their sum was completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// Late contributions are dropped.
    Drop,
    /// Late contributions join the next sum of the same values.
    Next,
}

/// When a switch completes a partial sum, without all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// Time after the first contribution, in nanoseconds.
    pub after_ns: u64,
    /// Minimum number of ranks that must have contributed.
    pub quorum: u16,
    /// The treatment of late contributions.
    pub late: Late,
    /// Position of the declaration in the file.
    pub span: Span,
}

/// The transport of a job's values between the ranks and the switch that sums them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// UDP (docs/protocol.md).
    #[default]
    Udp,
    /// RDMA WRITEs with immediate, over RoCEv2.
    Rdma,
}

impl Transport {
    /// The transport's word in scenarios and programs.
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
    /// Number of the job on the wire, counted from 1 in declared order.
    pub number: u16,
    /// Hosts of the ranks, in rank order.
    pub ranks: Vec<String>,
    /// The switches that sum, the root first.
    pub tree: Vec<Summing>,
    /// Maximum number of chunks that a rank has in flight: a power of two.
    pub window: u32,
    /// Index of the job's first slot on each switch.
    pub base: u32,
    /// When a switch completes a partial sum; `None`: never.
    pub deadline: Option<Deadline>,
    /// Rate limit of all frames that come to one switch of the tree, in bits per second.
    pub rate: Option<Spanned<u64>>,
    /// Number of values in a frame.
    pub values: FrameValues,
    /// Position where the file declares the number of values; `None` if it follows from the links.
    pub values_span: Option<Span>,
    /// The transport of the values.
    pub transport: Spanned<Transport>,
    /// For RDMA: index of rank 0's queue pair on a switch; the other ranks follow in order.
    pub contact: u32,
    /// Position of the declaration in the file.
    pub span: Span,
}

/// A switch that sums values of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summing {
    /// The switch's name.
    pub switch: String,
    /// Hosts and lower switches whose values this switch sums, in the order of their numbers at this switch.
    pub children: Vec<String>,
    /// The parent switch, and this switch's number there. `None` for the root.
    pub parent: Option<(String, u16)>,
}

impl Job {
    /// A switch's node in the tree; `None` if the switch does not sum for this job.
    #[must_use]
    pub fn on(&self, switch: &str) -> Option<&Summing> {
        self.tree.iter().find(|summing| summing.switch == switch)
    }

    /// The root of the tree, whose sum covers all ranks.
    #[must_use]
    pub fn top(&self) -> &str {
        self.tree.first().map_or("", |top| &top.switch)
    }

    /// Whether RoCEv2 carries the job's values.
    #[must_use]
    pub fn is_rdma(&self) -> bool {
        self.transport.value == Transport::Rdma
    }

    /// Environment variables that tell a program on a host its rank in the job; empty if the host is not a rank.
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
