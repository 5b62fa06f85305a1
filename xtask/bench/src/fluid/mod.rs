//! How long transfers take that share a network, in virtual time, without packets.
//!
//! A [`Transfer`] loads several resources at once, each by so much for each bit a second that it goes at: a stream loads
//! each link of its way once; an aggregate and its members are one transfer, since a switch sends no faster than its
//! slowest member. At every moment the rates are max-min fair ([`max_min`]): what TCP and AIMD with equal round trips tend
//! to. Between a start and an end of transfers nothing changes, so a run is exact but for rounding.
//!
//! [`Round`] is a job's push and pull by a plan, [`Schedule`] a collective without a server; a run may have several of
//! either. [`ring`] and [`halving_doubling`] build the schedules of two all-reduce algorithms.
//!
//! What is left out: queues, losses, delays of links, and that fair shares need time to be found.

pub mod halving_doubling;
pub mod ring;
mod round;
mod schedule;
mod share;
mod simulation;
#[cfg(test)]
mod tests;

pub use round::{Pull, Round};
pub use schedule::Schedule;
pub use share::{Demand, max_min};
pub use simulation::{FluidError, Outcome, Simulation, Transfer, TransferId, Use};
