//! perftest's bandwidth tests, as ib_write_bw, ib_send_bw and ib_read_bw do them, and with those programs of Debian 12.
//!
//! | file | what |
//! |---|---|
//! | `message.rs` | what is said over TCP |
//! | `bandwidth.rs` | what the client sends, writes or reads, and how fast |

mod bandwidth;
mod message;

pub use bandwidth::{Options, Outcome, PerftestError, Verb, bandwidth};
pub use message::{Keys, Report};
