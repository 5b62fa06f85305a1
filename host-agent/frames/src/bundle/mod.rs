//! Bundles: one packet that stands for many frames with the same headers, as the kernel passes it with a virtio header
//! (generic segmentation offload). [`Cut`] takes a bundle apart, and [`Run`] joins frames to one.
//!
//! Nothing here reads a socket or a clock.

mod checksum;
mod cut;
mod headers;
mod malformed;
mod offload;
mod run;

pub use checksum::{fold, sum};
pub use cut::{Checksums, Cut};
pub use malformed::Malformed;
pub use offload::Offload;
pub use run::{Joins, Run};

/// Maximum number of frames in a [`Run`]: the most that kernels before Linux 6.10 take in one UDP packet.
pub const MAX_FRAMES: usize = 64;
/// Maximum number of frames that [`Cut`] takes a UDP bundle for: the most that Linux sends (`UDP_MAX_SEGMENTS`).
pub const MAX_UDP_SEGMENTS: usize = 128;
/// Maximum number of frames that [`Cut`] takes a TCP bundle for. Linux fills 65,535 bytes also with short segments; shorter
/// ones than 48 bytes come from attackers (`net.ipv4.tcp_min_snd_mss`).
pub const MAX_TCP_SEGMENTS: usize = 65_535 / 48;
