//! A network of any shape in virtual time, frame by frame, with the very state machines of the agents: how long rounds take.
//!
//! [`Setup`] is the network and what runs on it; [`run()`] gives its [`Outcome`]. The rest of this crate asks whether the protocol
//! is right, over one switch whose links misbehave; this asks when it is done, over links with a rate, a delay and a queue.
//!
//! ```text
//!  host: one thread, as an agent's           link: token bucket, then delay        switch: one thread
//!  inbox ▶ ≤ 64 frames ▶ send ▶ look again ─▶ queue ▶ rate ▶ delay ▶ loss ─▶ slots, else by address ─▶ links
//! ```
//!
//! What is modelled of a link is what a testbed makes of one (`testbeds/src/net/tbf.rs`): the bucket counts a frame from its
//! Ethernet header to its last value, without preamble, gap and frame check sequence; it lets out a burst at once; and what does
//! not fit its queue is lost. What processors take is stated ([`Costs`]) and not found out.
//!
//! The same setup gives the same outcome: everything random follows from its seed.

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
