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

/// Maximum number of frames in a bundle.
pub const MAX_FRAMES: usize = 64;
