//! A P4_16 front end: preprocessor, parser, type checker, IR, P4Info.

pub mod p4info;
pub mod runtime;
