//! Places a training's workers at hosts, and what it needs at switches, so that the loss of one switch touches few trainings.
//!
//! | objective | goal | source |
//! |---|---|---|
//! | [`workers`] | the fewest idle hosts taken, then the fewest hosts | Titan, ICNP 2024 |
//! | [`robust`] | one lost switch touches the fewest trainings, then the least cost | Reveal, Computer Networks 2023 |
//!
//! Both are objectives over the data of the other planners: hosts, slots and racks of a [`Network`](crate::Network); plans of
//! gradients and their loads ([`crate::gradient`]). Each has the paper's program, solved by [`crate::solve`] if it is small,
//! and the papers' greedy method or rounding if it is not. The papers' texts were not available: this is our reading of them.

mod deletion;
pub mod robust;
pub mod workers;
