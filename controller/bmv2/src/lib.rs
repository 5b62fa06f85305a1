//! Compiles P4 programs for BMv2, the reference switch that the user has installed, and starts and controls it.
//!
//! | module | what it does |
//! |---|---|
//! | [`tools`] | finds `simple_switch_grpc`, `psa_switch` and p4c's back ends, or reports where to get them |
//! | [`compile`] | compiles P4 text with the user's p4c |
//! | [`mend`] | adds declarations that p4c omits |
//! | [`cache`] | keeps p4c's output between runs |
//! | [`launch`] | builds the command lines of the two switches |
//! | [`program`] | parses BMv2's JSON: keys, actions, sizes |
//! | [`thrift`] | makes the calls that BMv2 answers, over Thrift's binary protocol |
//! | [`translate`] | translates table entries, multicast groups and clone sessions into Thrift calls |
//! | [`device`] | controls a `psa_switch` with these calls |
//!
//! `simple_switch_grpc` is controlled by P4Runtime (crate `p4rt`); `psa_switch` supports only Thrift. docs/bmv2.md describes
//! BMv2 for users.

pub mod cache;
pub mod compile;
pub mod device;
pub mod launch;
pub mod mend;
pub mod program;
pub mod thrift;
pub mod tools;
pub mod translate;
