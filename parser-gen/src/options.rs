//! Features of a program besides classification.

use serde::Serialize;

/// Features of the program besides classification.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Number of values in frames that the program sums. They are parsed, values included, whatever the filters name.
    pub aggregate: Option<FrameValues>,
    /// Forward each packet by the port at which it arrived.
    pub wire: bool,
    /// Packets wait for others of their flow; an extra header holds for how many.
    pub waits: bool,
    /// Before a frame is summed, check which hosts may send for its job, until when, and how much. Not on Tofino.
    pub guards_jobs: bool,
    /// Hosts may have several paths, and a packet's flow decides which it takes: addresses and ports are parsed, whatever the
    /// filters name. Not on Tofino.
    pub multipath: bool,
    /// Sum RoCEv2 frames of 256 values as well: docs/rdma.md, "Sums by the switch". Not on Tofino.
    pub sums_roce: bool,
}

impl Options {
    /// Options that sum frames of the default size, or none.
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
    /// 32 values: one pass of a Tofino.
    V32,
    /// 64 values: one pass of a Tofino 2.
    V64,
    /// 256 values: the largest power of two that fits a frame of 1,500 bytes.
    #[default]
    V256,
    /// 2,048 values: the largest power of two that fits a frame of 9,000 bytes.
    V2048,
}

impl From<FrameValues> for u16 {
    fn from(values: FrameValues) -> u16 {
        values.count()
    }
}

impl FrameValues {
    /// All sizes, ascending.
    pub const ALL: [FrameValues; 4] = [
        FrameValues::V32,
        FrameValues::V64,
        FrameValues::V256,
        FrameValues::V2048,
    ];

    /// Number of values.
    #[must_use]
    pub fn count(self) -> u16 {
        match self {
            FrameValues::V32 => 32,
            FrameValues::V64 => 64,
            FrameValues::V256 => 256,
            FrameValues::V2048 => 2048,
        }
    }

    /// Number of headers `values32_h` in a frame.
    pub(crate) fn blocks(self) -> u16 {
        self.count() / 32
    }
}
