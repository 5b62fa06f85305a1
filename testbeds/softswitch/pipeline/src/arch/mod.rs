//! Architectures: which blocks a packet passes and what their metadata mean. One file each.

pub mod psa;

use crate::error::LoadError;
use p4lang::ir::{Package, PackageArg, Program};

/// A program under its architecture. v1model and TNA join here.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// Portable Switch Architecture.
    Psa(psa::Psa),
}

/// The parser and the two controls of a pipeline package, in the order of the package's parameters.
pub(crate) fn blocks(
    program: &Program,
    package: &Package,
) -> Result<
    (
        p4lang::ir::ParserId,
        p4lang::ir::ControlId,
        p4lang::ir::ControlId,
    ),
    LoadError,
> {
    let parser = package.args.iter().find_map(|(_, a)| match a {
        PackageArg::Parser(id) if id.index() < program.parsers.len() => Some(*id),
        _ => None,
    });
    let mut controls = package.args.iter().filter_map(|(_, a)| match a {
        PackageArg::Control(id) if id.index() < program.controls.len() => Some(*id),
        _ => None,
    });
    match (parser, controls.next(), controls.next()) {
        (Some(parser), Some(control), Some(deparser)) => Ok((parser, control, deparser)),
        _ => Err(LoadError::Shape(format!(
            "{} wants a parser, a control and a deparser",
            package.type_name
        ))),
    }
}
