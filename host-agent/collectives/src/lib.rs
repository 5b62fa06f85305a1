//! Collective communication as schedules of one-sided puts (`docs/rdma.md`, "Collectives").
//!
//! ```text
//!  Collective, sizes ─▶ algorithms ─▶ Schedule ─┬─▶ verify    can it go wrong?
//!                           ▲                   ├─▶ execute   what comes of it, symbol by symbol
//!                           │                   └─▶ cost      how long does it take?
//!                      cost::choose
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`schedule`] | puts, waits, reductions, copies; what comes after what |
//! | [`collective`] | what is asked for |
//! | [`builder`] | dependencies from ranges, tile by tile |
//! | [`algorithms`] | one file each; [`algorithms::build`] |
//! | [`graph`] | form, pairs of puts and waits, deadlocks, rounds |
//! | [`verify`](mod@verify) | races |
//! | [`execute`](mod@execute) | a run by seed, with symbols for values |
//! | [`progress`] | for who carries a schedule out: what a rank may do now |
//! | [`phases`](mod@phases) | to whom a rank puts at a time |
//! | [`cost`] | α-β on edges; bounds; [`cost::choose::choose`] |
//! | [`machine`] | what is inside a node: GPUs, NICs, PCIe, NVLink |
//! | [`sharing`] | few NICs for many GPUs |
//!
//! Who carries a schedule out owns memory, queue pairs and arithmetic.

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
