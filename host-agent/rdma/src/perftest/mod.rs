//! perftest's tests, as ib_write_bw, ib_send_bw, ib_read_bw, ib_write_lat, ib_send_lat and ib_read_lat do them, and with those
//! programs of Debian 12.
//!
//! | file | what |
//! |---|---|
//! | `message.rs` | what is said over TCP |
//! | `session.rs` | how two programs meet and connect |
//! | `terms.rs` | what both must have been given alike |
//! | `bandwidth.rs` | what the client sends, writes or reads, and how fast |
//! | `latency.rs` | how long a message takes |

mod bandwidth;
mod latency;
mod message;
mod session;
mod terms;

pub use bandwidth::{Options, Outcome, SIZES, bandwidth};
pub use latency::{Latencies, LatencyOptions, LatencyOutcome, latency};
pub use message::{Keys, Report, Verb};
pub use session::PerftestError;
pub use terms::{Term, Terms};
