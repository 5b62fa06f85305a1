//! Reads the section `workload`; each kind of workload has its own file here.

mod commands;
mod file;
mod idle;
mod redis;
mod training;

use super::shape::{Alternative, Shape};
use super::{RawWorkload, reader};
use crate::diagnostic::{Sink, Spanned};
use crate::file::schema::Given;
use crate::file::yaml::Node;

pub(super) use file::{WORKLOAD_FILE, version_of};

/// The shape of the section: a workload, or a reference to a workload file.
pub(super) static SECTION: Shape =
    Shape::Either(&[Shape::At(&WORKLOAD), Shape::Object(&file::FROM_FILE)]);

static WORKLOAD: Shape = Shape::Variant(|| {
    vec![
        Alternative::with(
            "commands",
            COMMANDS,
            "programs: services, and drivers whose end is the run's",
        ),
        Alternative::with(
            "redis",
            Shape::Object(&redis::REDIS),
            "a redis-server and its clients",
        ),
        Alternative::with(
            "training",
            Shape::Object(&training::TRAINING),
            "workers that train with a server",
        ),
        Alternative::with("idle", Shape::Object(&idle::IDLE), "nothing of ours"),
    ]
});

const COMMANDS: Shape = Shape::List(&Shape::Object(&commands::COMMAND));

const WORKLOADS: [&str; 5] = ["commands", "redis", "training", "idle", "file"];

pub(super) fn read(
    sink: &mut Sink<'_>,
    node: &Node,
    given: &Given,
) -> Option<Spanned<RawWorkload>> {
    if file::is_named(node) {
        let workload = file::read(sink, node, given)?;
        return Some(Spanned::new(workload, node.span));
    }
    let variant = reader::variant(sink, node, "a workload", &WORKLOADS)?;
    let example = match variant.name {
        "file" => "PATH",
        _ => "{…}",
    };
    let body = variant.needed(sink, example)?;
    let workload = match variant.name {
        "commands" => commands::read(sink, body)?,
        "redis" => redis::read(sink, body)?,
        "training" => training::read(sink, body)?,
        "file" => file::read_alone(sink, body, given)?,
        _ => idle::read(sink, body)?,
    };
    Some(Spanned::new(workload, node.span))
}
