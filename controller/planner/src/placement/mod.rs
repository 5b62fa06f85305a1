//! Which hosts a training's workers get, and where what they need stands, so that one switch lost touches few.
//!
//! | objective | what it looks for | source |
//! |---|---|---|
//! | [`workers`] | the fewest idle hosts taken, then the fewest hosts | Titan, ICNP 2024 |
//! | [`robust`] | one lost switch touches the fewest trainings, then the least cost | Reveal, Computer Networks 2023 |
//!
//! Both are objectives over what the other planners have already: hosts, slots and racks of a [`Network`](crate::Network);
//! plans of gradients and their loads ([`crate::gradient`]). Each
//! has the program, solved by [`crate::solve`] where it is small, and the papers' greedy or rounding where it is not. The
//! papers' texts are not before us: what is said of them here is our reading of their formulations.

mod deletion;
pub mod robust;
pub mod workers;
