//! A P4_16 front end: preprocessor, parser, type checker, IR, P4Info.

pub mod ast;
pub mod diagnostics;
pub mod ir;
pub mod lexer;
pub mod p4info;
pub mod parse;
pub mod runtime;
pub mod source;
