//! The tests of this crate that see it from outside, as one program: each more would be linked anew.

mod bounds;
mod corpus;
mod decision;
mod delays;
mod elsewhere;
mod faults_page;
mod frame_values;
mod hints;
mod keys;
mod leases;
mod many;
mod p4_names;
mod protocols;
mod psn;
mod refused;
mod routing;
mod schema;
mod shares;
mod shipped;
mod together;
mod topologies;
mod translations;
mod transport;
mod ways;
mod workloads;
