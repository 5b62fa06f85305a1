//! Section `workload`: one file each.

mod commands;
mod idle;
mod redis;
mod training;

use super::shape::{Shape, Way};
use super::{RawWorkload, reader};
use crate::diagnostic::{Sink, Spanned};
use crate::yaml::Node;

pub(super) static WORKLOAD: Shape = Shape::Variant(|| {
    vec![
        Way::with(
            "commands",
            COMMANDS,
            "programs: services, and drivers whose end is the run's",
        ),
        Way::with(
            "redis",
            Shape::Object(&redis::REDIS),
            "a redis-server and its clients",
        ),
        Way::with(
            "training",
            Shape::Object(&training::TRAINING),
            "workers that train with a server",
        ),
        Way::with("idle", Shape::Object(&idle::IDLE), "nothing of ours"),
    ]
});

const COMMANDS: Shape = Shape::List(&Shape::Object(&commands::COMMAND));

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
