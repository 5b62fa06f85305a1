//! Section `workload`: one file each.

mod commands;
mod idle;
mod redis;
mod training;

use super::{RawWorkload, reader};
use crate::diagnostic::{Sink, Spanned};
use crate::yaml::Node;

const WORKLOADS: [&str; 4] = ["commands", "redis", "training", "idle"];

pub(super) fn read(sink: &mut Sink<'_>, node: &Node) -> Option<Spanned<RawWorkload>> {
    let variant = reader::variant(sink, node, "a workload", &WORKLOADS)?;
    let body = variant.needed(sink, "{…}")?;
    let workload = match variant.name {
        "commands" => commands::read(sink, body)?,
        "redis" => redis::read(sink, body)?,
        "training" => training::read(sink, body)?,
        _ => idle::read(sink, body)?,
    };
    Some(Spanned::new(workload, node.span))
}
