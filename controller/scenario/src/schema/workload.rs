//! Section `workload`.

use super::{RawWorkload, reader};
use crate::diagnostic::{Code, Sink, Spanned};
use crate::units::Dimension;
use crate::workload::{Redis, RedisClient, Training, Workload};
use crate::yaml::Node;

const WORKLOADS: [&str; 3] = ["redis", "training", "idle"];

pub(super) fn read(sink: &mut Sink<'_>, node: &Node) -> Option<Spanned<RawWorkload>> {
    let variant = reader::variant(sink, node, "a workload", &WORKLOADS)?;
    let body = variant.needed(sink, "{…}")?;
    let workload = match variant.name {
        "redis" => redis(sink, body)?,
        "training" => training(sink, body)?,
        _ => idle(sink, body)?,
    };
    Some(Spanned::new(workload, node.span))
}

fn redis(sink: &mut Sink<'_>, node: &Node) -> Option<RawWorkload> {
    let fields = reader::fields(sink, node, "`redis`", &["server", "clients"], &["port"])?;
    let server = fields
        .get("server")
        .and_then(|node| reader::name(sink, node, "a host"));
    let port = fields.get("port").map_or(Some(6379), |node| {
        reader::integer(sink, node, "`port`", 1..=65_535)
    });
    let (mut clients, mut hosts) = (Vec::new(), Vec::new());
    for entry in fields
        .get("clients")
        .and_then(|node| reader::map(sink, node, "`clients`"))
        .unwrap_or_default()
    {
        reader::check_name(sink, &entry.key, entry.key_span, "a client");
        let Some((client, host)) = redis_client(sink, &entry.key, &entry.value) else {
            continue;
        };
        hosts.push(host.unwrap_or_else(|| Spanned::new(entry.key.clone(), entry.key_span)));
        clients.push(client);
    }
    let server = server?;
    hosts.push(server.clone());
    let workload = Workload::Redis(Redis {
        server: server.value,
        port: port? as u16,
        clients,
    });
    Some(RawWorkload {
        workload,
        hosts,
        switches: Vec::new(),
    })
}

fn redis_client(
    sink: &mut Sink<'_>,
    name: &str,
    node: &Node,
) -> Option<(RedisClient, Option<Spanned<String>>)> {
    let optional = ["host", "value_size", "pause"];
    let fields = reader::fields(sink, node, "a client", &["requests", "commands"], &optional)?;
    let host = fields
        .get("host")
        .and_then(|node| reader::name(sink, node, "a host"));
    let requests = fields
        .get("requests")
        .and_then(|node| reader::integer(sink, node, "`requests`", 1..=10_000_000));
    let value_bytes = fields
        .get("value_size")
        .map_or(Some(Spanned::new(64, fields.span)), |node| {
            reader::quantity(sink, node, "`value_size`", Dimension::Size)
        })?;
    if value_bytes.value > 1 << 20 {
        sink.error(
            Code::OutOfRange,
            value_bytes.span,
            "values are at most 1MiB",
        );
    }
    let pause = fields.get("pause").map_or(Some(0), |node| {
        reader::quantity(sink, node, "`pause`", Dimension::Duration).map(|pause| pause.value)
    });
    let mut commands = Vec::new();
    for item in fields
        .get("commands")
        .and_then(|node| reader::list(sink, node, "`commands`"))
        .unwrap_or_default()
    {
        let Some(text) = reader::text(sink, item, "a command") else {
            continue;
        };
        let words: Vec<String> = text.value.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() {
            sink.error(
                Code::OutOfRange,
                text.span,
                "a command has at least one word",
            );
        }
        commands.push(words);
    }
    if let Some(node) = fields.get("commands").filter(|_| commands.is_empty()) {
        sink.error(
            Code::OutOfRange,
            node.span,
            "a client has at least one command",
        )
        .hint("for example `[\"GET user:{n}\", \"SET cart:{n}\"]`");
    }
    let client = RedisClient {
        name: name.to_owned(),
        host: host
            .as_ref()
            .map_or_else(|| name.to_owned(), |host| host.value.clone()),
        requests: requests? as u32,
        commands,
        value_bytes: value_bytes.value.min(u64::from(u32::MAX)) as u32,
        pause_ns: pause?,
    };
    Some((client, host))
}

fn training(sink: &mut Sink<'_>, node: &Node) -> Option<RawWorkload> {
    let optional = ["aggregate_on", "window"];
    let fields = reader::fields(
        sink,
        node,
        "`training`",
        &["server", "workers", "iterations"],
        &optional,
    )?;
    let server = fields
        .get("server")
        .and_then(|node| reader::name(sink, node, "a host"));
    let workers = fields
        .get("workers")
        .and_then(|node| reader::names(sink, node, "a host"));
    let iterations = fields
        .get("iterations")
        .and_then(|node| reader::integer(sink, node, "`iterations`", 1..=1_000_000));
    let window = match fields.get("window") {
        Some(node) => {
            let window = reader::integer(sink, node, "`window`", 1..=32_768);
            if window.is_some_and(|window| !window.is_power_of_two()) {
                sink.error(Code::OutOfRange, node.span, "`window` is a power of two");
            }
            window
        }
        None => Some(64),
    };
    let aggregate_on = fields
        .get("aggregate_on")
        .and_then(|node| reader::name(sink, node, "a switch"));
    let (server, workers) = (server?, workers?);
    if workers.is_empty() || workers.len() > 32 {
        let node = fields.get("workers")?;
        sink.error(
            Code::OutOfRange,
            node.span,
            format!("a job has 1 to 32 workers; found {}", workers.len()),
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
                format!("host `{}` has two parts in the job", worker.value),
            );
        }
    }
    let hosts = workers.iter().chain([&server]).cloned().collect();
    let workload = Workload::Training(Training {
        server: server.value,
        workers: workers.into_iter().map(|worker| worker.value).collect(),
        iterations: iterations? as u32,
        aggregate_on: aggregate_on.as_ref().map(|switch| switch.value.clone()),
        window: window? as u32,
    });
    Some(RawWorkload {
        workload,
        hosts,
        switches: aggregate_on.into_iter().collect(),
    })
}

fn idle(sink: &mut Sink<'_>, node: &Node) -> Option<RawWorkload> {
    let fields = reader::fields(sink, node, "`idle`", &["for"], &[])?;
    let length = reader::quantity(sink, fields.get("for")?, "`for`", Dimension::Duration)?;
    let workload = Workload::Idle {
        for_ns: length.value,
    };
    Some(RawWorkload {
        workload,
        hosts: Vec::new(),
        switches: Vec::new(),
    })
}
