//! Reads the workload `training`: a training job with a parameter server and workers.

use super::RawWorkload;
use crate::diagnostic::{Code, Sink};
use crate::file::schema::reader;
use crate::file::schema::shape::{Object, Shape, may, needed};
use crate::file::yaml::Node;
use crate::model::workload::{Training, Workload};

pub(super) static TRAINING: Object = Object {
    what: "`training`",
    keys: &[
        needed(
            "server",
            Shape::Name("a host"),
            "the host of the parameter server",
        ),
        needed("workers", Shape::Names("a host"), "hosts, 1 to 32"),
        needed("iterations", Shape::Integer(1, 1_000_000), "how many"),
        may(
            "aggregate_on",
            Shape::Name("a switch"),
            "the switch that sums; without, the server does",
        ),
        may(
            "window",
            Shape::Integer(1, 32_768),
            "chunks in flight, a power of two",
        )
        .or(64),
    ],
};

pub(super) fn read(sink: &mut Sink<'_>, node: &Node) -> Option<RawWorkload> {
    let fields = reader::fields(sink, node, &TRAINING)?;
    let server = fields.name(sink, "server");
    let workers = fields.names(sink, "workers");
    let iterations = fields.number(sink, "iterations");
    let window = fields.number::<u32>(sink, "window");
    if let Some(window) = window.filter(|window| !window.value.is_power_of_two()) {
        sink.error(
            Code::OutOfRange,
            window.span,
            "`window` must be a power of two",
        );
    }
    let aggregate_on = fields.name(sink, "aggregate_on");
    let (server, workers) = (server?, workers?);
    if workers.is_empty() || workers.len() > 32 {
        let node = fields.get("workers")?;
        sink.error(
            Code::OutOfRange,
            node.span,
            format!(
                "a training must have 1 to 32 workers; found {}",
                workers.len()
            ),
        );
    }
    for (i, worker) in workers.iter().enumerate() {
        if workers[..i]
            .iter()
            .chain([&server])
            .any(|other| other.value == worker.value)
        {
            sink.error(
                Code::Duplicate,
                worker.span,
                format!("host `{}` has two roles in the training", worker.value),
            );
        }
    }
    let hosts = workers.iter().chain([&server]).cloned().collect();
    let workload = Workload::Training(Training {
        server: server.value,
        workers: workers.into_iter().map(|worker| worker.value).collect(),
        iterations: iterations?.value,
        aggregate_on: aggregate_on.as_ref().map(|switch| switch.value.clone()),
        window: window?.value,
    });
    Some(RawWorkload {
        workload,
        hosts,
        switches: aggregate_on.into_iter().collect(),
        file: None,
    })
}
