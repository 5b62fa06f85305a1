//! Bandwidth and latency tests: perftest's ib_write_bw, ib_send_bw, ib_read_bw, ib_write_lat, ib_send_lat and ib_read_lat,
//! interoperable with these programs of Debian 12.
//!
//! | file | contents |
//! |---|---|
//! | `message.rs` | the messages over TCP |
//! | `session.rs` | connection of the two programs and their queue pairs |
//! | `terms.rs` | options that both sides must have in common |
//! | `bandwidth.rs` | bandwidth of SENDs, WRITEs or READs |
//! | `latency.rs` | latency of a message |

mod bandwidth;
mod latency;
mod message;
mod session;
mod terms;

pub use bandwidth::{BandwidthOptions, BandwidthOutcome, SIZES, bandwidth};
pub use latency::{Latencies, LatencyOptions, LatencyOutcome, latency};
pub use message::{Keys, Report, Verb};
pub use session::PerftestError;
pub use terms::{Term, Terms};
