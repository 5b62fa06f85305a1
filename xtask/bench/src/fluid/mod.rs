//! Durations of transfers that share a network, in virtual time and without packets.
//!
//! A [`Transfer`] loads each resource by a factor times its rate. A stream loads each link of its path once. An
//! aggregate and its members are one transfer, since a switch sends no faster than its slowest member. At every moment
//! the rates are max-min fair ([`max_min`]), to which TCP and AIMD with equal round trips tend. Rates change only when
//! a transfer starts or ends, so a run is exact up to rounding.
//!
//! A [`Round`] is the push and pull of a job by a plan; a [`Schedule`] is a collective without a server. A run may
//! contain several of both. [`ring`] and [`halving_doubling`] build the schedules of two all-reduce algorithms.
//!
//! The model has no queues, no losses and no link delays, and fair shares apply at once.

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
