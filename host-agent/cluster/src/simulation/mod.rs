//! Simulation of round times: a network of any shape in virtual time, frame by frame, with the state machines of the agents.
//!
//! [`Setup`] describes the network and its work; [`run()`] returns the [`Outcome`]. The rest of this crate tests whether the
//! protocol is correct, over one switch with faulty links; this module predicts durations, over links with a rate, a delay
//! and a queue.
//!
//! ```text
//!  host: one thread, as an agent's           link: token bucket, then delay        switch: one thread
//!  inbox ▶ ≤ 64 frames ▶ send ▶ look again ─▶ queue ▶ rate ▶ delay ▶ loss ─▶ slots, else by address ─▶ links
//! ```
//!
//! A link is modeled as the testbed builds it (`testbeds/src/net/tbf.rs`): the bucket counts a frame from its Ethernet header
//! to its last value, without preamble, gap and frame check sequence; it releases a burst at once; and frames that do not fit
//! the queue are lost. Processor times are inputs ([`Costs`]), not measurements.
//!
//! Equal setups give equal outcomes: every random decision follows from the seed.

mod cable;
mod host;
mod outcome;
mod run;
mod setup;
mod switch;

pub use outcome::{Direction, End, Member, Outcome, Role, Span};
pub use run::run;
pub use setup::{
    Address, Costs, Half, LinkSpec, Loss, NodeSpec, PortId, RankAt, Setup, SetupError, Summing,
    SwitchSpec, Work, WorkerAt,
};
