//! What an agent or a rank shows of itself while it works: counters for Prometheus, and what it waits for, for `weir doctor`.
//!
//! | file | what |
//! |---|---|
//! | `board.rs` | how one thread asks another what it counts, which costs that one nothing while nobody asks |
//! | `names.rs` | the metrics: their names, kinds and help (docs/doctor.md has the same table) |
//! | `status.rs` | what is shown, as JSON |
//! | `page.rs` | the same as Prometheus reads it |
//! | `serve.rs` | the two by HTTP, at an address or a Unix socket |
//! | `fetch.rs` | the other end: a status is asked for |

mod board;
mod fetch;
pub(crate) mod names;
mod page;
mod serve;
mod status;

pub use board::Board;
pub use fetch::{FetchError, fetch};
pub use names::{ALL, Kind, Metric};
pub use page::page;
pub use serve::{Address, AddressError, Exporter};
pub use status::{Role, Status, Waits, count_rank, count_server, count_worker};
