//! A P4_16 front end: preprocessor, parser, type checker, IR, P4Info.

pub mod ast;
pub mod diagnostics;
pub mod ir;
pub mod lexer;
pub mod p4info;
pub mod parse;
pub mod preprocess;
pub mod runtime;
pub mod source;

use diagnostics::{Diagnostics, Sink};
use source::SourceMap;
use std::sync::Arc;

pub use preprocess::{Files, Loader, Options};

/// A program that was parsed, but not checked.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The tree.
    pub program: ast::Program,
    /// Leads its spans back to files.
    pub source: Arc<SourceMap>,
    /// Warnings.
    pub warnings: Diagnostics,
}

/// Preprocesses and parses the file `path` of `loader`.
pub fn parse(loader: &dyn Loader, path: &str, options: &Options) -> Result<Parsed, Diagnostics> {
    let mut sink = Sink::new();
    let source = Arc::new(preprocess::preprocess(loader, path, options, &mut sink));
    if sink.has_errors() {
        return Err(sink.finish(source));
    }
    let program = parse::parse(&source.text, &mut sink);
    if sink.has_errors() {
        return Err(sink.finish(source));
    }
    Ok(Parsed {
        program,
        warnings: sink.finish(source.clone()),
        source,
    })
}
