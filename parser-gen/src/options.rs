//! Options of a generated P4 program: features besides the classification of packets.

use serde::Serialize;

/// Features of a generated P4 program besides the classification of packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Number of values in the aggregation frames that the program sums; `None`: none are summed. The parser always reads them.
    pub aggregate: Option<FrameValues>,
    /// Whether the switch is a wire: it forwards each packet by the port at which the packet arrived.
    pub wire: bool,
    /// Whether faults make packets wait for later packets of their flow; an extra header then counts the latter.
    pub waits: bool,
    /// Whether the switch checks, before a sum, which hosts may send for the job, until when, and how much. Not on Tofino.
    pub guards_jobs: bool,
    /// Hosts may have several paths, and a packet's flow decides which it takes: addresses and ports are parsed, whatever the
    /// filters name. Not on Tofino.
    pub multipath: bool,
    /// Whether the switch also sums RoCEv2 frames of 256 values: docs/rdma.md, "Sums by the switch". Not on Tofino.
    pub sums_roce: bool,
}

impl Options {
    /// Options of a program that sums frames of the default size, or no frames if `aggregate` is false.
    #[must_use]
    pub fn aggregating(aggregate: bool) -> Options {
        Options {
            aggregate: aggregate.then(FrameValues::default),
            ..Options::default()
        }
    }
}

/// Number of values in an aggregation frame that is summed; frames of another size are malformed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "u16")]
pub enum FrameValues {
    /// 32 values a frame: one pass through a Tofino.
    V32,
    /// 64 values a frame: one pass through a Tofino 2.
    V64,
    /// 256 values a frame: the largest power of two that fits a frame of 1,500 bytes.
    #[default]
    V256,
    /// 2,048 values a frame: the largest power of two that fits a frame of 9,000 bytes.
    V2048,
}

impl From<FrameValues> for u16 {
    fn from(values: FrameValues) -> u16 {
        values.count()
    }
}

impl FrameValues {
    /// All frame sizes, ascending.
    pub const ALL: [FrameValues; 4] = [
        FrameValues::V32,
        FrameValues::V64,
        FrameValues::V256,
        FrameValues::V2048,
    ];

    /// Number of values in a frame of this size.
    #[must_use]
    pub fn count(self) -> u16 {
        match self {
            FrameValues::V32 => 32,
            FrameValues::V64 => 64,
            FrameValues::V256 => 256,
            FrameValues::V2048 => 2048,
        }
    }

    /// Number of P4 headers `values32_h` (32 values each) in a frame of this size.
    pub(crate) fn blocks(self) -> u16 {
        self.count() / 32
    }
}
