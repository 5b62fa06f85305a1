//! BMv2, the reference switch, as the user has it installed.
//!
//! | module | what |
//! |---|---|
//! | [`tools`] | `simple_switch_grpc`, `psa_switch` and p4c's back ends: found, or missed with a word on where to get them |
//! | [`compile`] | P4 text through the user's p4c |
//! | [`mend`] | what p4c leaves out of it |
//! | [`cache`] | what p4c made of it, kept between runs |
//! | [`launch`] | the command lines of the two switches |
//! | [`program`] | BMv2's JSON: keys, actions, sizes |
//! | [`thrift`] | the calls that BMv2 answers, over Thrift's binary protocol |
//! | [`translate`] | entries, groups and sessions by name → Thrift calls |
//! | [`device`] | a `psa_switch` that is driven with them |
//!
//! `simple_switch_grpc` speaks P4Runtime and is driven by crate `p4rt`; `psa_switch` speaks Thrift only. docs/bmv2.md is
//! the users' view.

pub mod cache;
pub mod compile;
pub mod device;
pub mod launch;
pub mod mend;
pub mod program;
pub mod thrift;
pub mod tools;
pub mod translate;
