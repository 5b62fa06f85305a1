//! A P4_16 compiler front end: preprocessor, parser, type checker, intermediate representation (IR), P4Info.

pub mod ast;
pub mod check;
pub mod diagnostics;
pub mod format;
pub mod graph;
pub mod ids;
pub mod ir;
pub mod lexer;
mod limits;
pub mod p4info;
pub mod parse;
pub mod preprocess;
pub mod runtime;
pub mod source;
mod spelling;
pub mod tofino;
pub mod validity;

use diagnostics::{Diagnostics, Sink};
use source::SourceMap;
use std::sync::Arc;

pub use limits::{LIMITS, Limits};
pub use preprocess::{Files, Loader, Options, source_text};

/// A program that was parsed, but not checked.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The syntax tree of the program.
    pub program: ast::Program,
    /// Maps the tree's spans to file, line and column.
    pub source: Arc<SourceMap>,
    /// Warnings of the preprocessor and the parser.
    pub warnings: Diagnostics,
}

/// A program that was compiled.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The checked and lowered program: the form that a target executes.
    pub program: ir::Program,
    /// The program's objects that the control plane may address.
    pub p4info: p4info::P4Info,
    /// The source as one self-contained file; `#line` markers keep the original positions.
    pub preprocessed: String,
    /// Warnings of all compiler phases.
    pub warnings: Diagnostics,
}

/// Preprocesses and parses the file `path` of `loader`.
pub fn parse(loader: &dyn Loader, path: &str, options: &Options) -> Result<Parsed, Diagnostics> {
    let mut sink = Sink::new();
    match parse_into(loader, path, options, &mut sink) {
        (Some(program), source) => Ok(Parsed {
            program,
            warnings: sink.finish(source.clone()),
            source,
        }),
        (None, source) => Err(sink.finish(source)),
    }
}

/// Preprocesses, parses, checks and lowers the file `path` of `loader`, and builds its P4Info.
pub fn compile(
    loader: &dyn Loader,
    path: &str,
    options: &Options,
) -> Result<Compiled, Diagnostics> {
    let mut sink = Sink::new();
    let (tree, source) = parse_into(loader, path, options, &mut sink);
    let program = tree.and_then(|tree| check::check(&tree, &source, &mut sink));
    let described = program.map(|program| {
        let p4info = p4info::build(&program, &mut sink);
        (program, p4info)
    });
    match described {
        Some((program, p4info)) if !sink.has_errors() => Ok(Compiled {
            program,
            p4info,
            preprocessed: source.with_line_markers(),
            warnings: sink.finish(source),
        }),
        _ => Err(sink.finish(source)),
    }
}

/// Returns the file `path` of `loader` with all its includes as one self-contained text; `#line` markers keep the positions.
pub fn preprocessed(
    loader: &dyn Loader,
    path: &str,
    options: &Options,
) -> Result<String, Diagnostics> {
    let mut sink = Sink::new();
    let source = preprocess::preprocess(loader, path, options, &mut sink);
    if sink.has_errors() {
        return Err(sink.finish(Arc::new(source)));
    }
    Ok(source.with_line_markers())
}

/// Preprocesses and parses `path`. Returns the tree (`None` if `sink` has errors) and the source to which all spans refer.
fn parse_into(
    loader: &dyn Loader,
    path: &str,
    options: &Options,
    sink: &mut Sink,
) -> (Option<ast::Program>, Arc<SourceMap>) {
    let source = Arc::new(preprocess::preprocess(loader, path, options, sink));
    if sink.has_errors() {
        return (None, source);
    }
    let program = parse::parse(&source.text, sink);
    ((!sink.has_errors()).then_some(program), source)
}
