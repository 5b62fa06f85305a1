//! Bundles: one packet that stands for many frames with the same headers, as the kernel passes it with a virtio header
//! (generic segmentation offload). [`Cut`] takes a bundle apart, and [`Run`] joins frames to one.
//!
//! Nothing here reads a socket or a clock.

mod checksum;
mod cut;
mod headers;
mod joins;
mod malformed;
mod offload;
mod plain;
mod run;

pub use checksum::{Checksums, fold, sum};
pub use cut::Cut;
pub(crate) use headers::network;
pub use joins::Joins;
pub use malformed::Malformed;
pub use offload::Offload;
pub use run::{Longest, Run};

/// Maximum number of frames in a [`Run`]. Every kernel since Linux 6.2 accepts a UDP packet with 64 segments.
pub const MAX_FRAMES: usize = 64;
/// Maximum number of frames in a UDP bundle that [`Cut`] accepts. Linux sends no more (`UDP_MAX_SEGMENTS`).
pub const MAX_UDP_SEGMENTS: usize = 128;
/// Maximum number of frames in a TCP bundle that [`Cut`] accepts: 65,535 bytes in the shortest segments that Linux sends by default
/// (`net.ipv4.tcp_min_snd_mss`). A TCP socket fills its packets also when the MTU is small.
pub const MAX_TCP_SEGMENTS: usize = 65_535 / 48;
