//! Collective communication as schedules of one-sided puts (`docs/rdma.md`, "Collectives").
//!
//! ```text
//!  Collective, sizes ─▶ algorithms ─▶ Schedule ─┬─▶ verify    can it fail?
//!                           ▲                   ├─▶ execute   what does it compute, symbol by symbol?
//!                           │                   └─▶ cost      how long does it take?
//!                      cost::choose
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`schedule`] | puts, waits, reductions, copies, and their order |
//! | [`collective`] | specification of the collectives |
//! | [`builder`] | derives dependencies from ranges, tile by tile |
//! | [`algorithms`] | one file per algorithm; [`algorithms::build`] |
//! | [`graph`] | well-formedness, matching of puts and waits, deadlocks, rounds |
//! | [`verify`](mod@verify) | detection of races |
//! | [`execute`](mod@execute) | a seeded run on symbolic values |
//! | [`progress`] | for executors: the steps that a rank may begin now |
//! | [`phases`](mod@phases) | the peers to which a rank puts at the same time |
//! | [`cost`] | α-β model on edges; bounds; [`cost::choose::choose`] |
//! | [`machine`] | the inside of a node: GPUs, NICs, PCIe, NVLink |
//! | [`sharing`] | few NICs for many GPUs |
//!
//! The executor of a schedule owns memory, queue pairs and arithmetic.

pub mod algorithms;
pub mod builder;
pub mod collective;
pub mod cost;
pub mod execute;
pub mod graph;
pub mod machine;
pub mod phases;
pub mod progress;
pub mod schedule;
pub mod sharing;
pub mod verify;

pub use algorithms::{Algorithm, BuildError, Hierarchy, Options, build, offered};
pub use collective::Collective;
pub use phases::phases;
pub use progress::Progress;
pub use schedule::{Action, Buffer, Program, ReduceOp, Schedule, Signal, Span, Step};
pub use verify::{VerifyError, verify};
