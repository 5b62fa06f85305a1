//! Status of a running agent or rank: counters for Prometheus, and the unfinished chunk for `weir doctor`.
//!
//! | file | contents |
//! |---|---|
//! | `board.rs` | exchange of a status between threads, without cost while nobody requests it |
//! | `names.rs` | the metrics: names, kinds and help texts (docs/doctor.md has the same table) |
//! | `sent.rs` | transmitted frames and bytes |
//! | `status.rs` | the status, as JSON |
//! | `page.rs` | the status in Prometheus' text format |
//! | `serve.rs` | HTTP server for both, at an address or a Unix socket |
//! | `fetch.rs` | HTTP client for the status |

mod board;
mod fetch;
pub(crate) mod names;
mod page;
mod sent;
mod serve;
mod status;

pub use board::Board;
pub use fetch::{FetchError, fetch};
pub use names::{ALL, Metric, MetricKind};
pub use page::page;
pub(crate) use sent::HEADERS;
pub use sent::SentReport;
pub use serve::{Address, AddressError, Exporter};
pub use status::{Role, Status, Waits, count_rank, count_server, count_worker};
