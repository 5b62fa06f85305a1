//! BMv2, the reference switch, as the user has it installed.
//!
//! | module | what |
//! |---|---|
//! | [`tools`] | finds `simple_switch_grpc`, `psa_switch` and p4c's back ends, or reports where to get them |
//! | [`compile`] | compiles P4 text with the user's p4c |
//! | [`mend`] | adds declarations that p4c omits |
//! | [`cache`] | keeps p4c's output between runs |
//! | [`launch`] | the command lines of the two switches |
//! | [`program`] | BMv2's JSON: keys, actions, sizes |
//! | [`thrift`] | the calls that BMv2 answers, over Thrift's binary protocol |
//! | [`translate`] | entries, groups and sessions by name → Thrift calls |
//! | [`device`] | a `psa_switch` that is controlled with these calls |
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
