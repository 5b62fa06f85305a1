//! A redis-server and its clients.

use super::RawWorkload;
use crate::diagnostic::{Code, Sink, Spanned};
use crate::file::schema::reader;
use crate::file::schema::shape::{DURATION, Object, SIZE, Shape, may, needed};
use crate::file::yaml::Node;
use crate::model::workload::{Redis, RedisClient, Workload};
use crate::units::Dimension;

pub(super) static REDIS: Object = Object {
    what: "`redis`",
    keys: &[
        needed("server", Shape::Name, "the host of redis-server"),
        needed("clients", Shape::Map(&Shape::Object(&CLIENT)), "by name"),
        may("port", Shape::Integer(1, 65_535), "6379"),
    ],
};

static CLIENT: Object = Object {
    what: "a client",
    keys: &[
        needed(
            "requests",
            Shape::Integer(1, 10_000_000),
            "how many it makes, one after the other",
        ),
        needed(
            "commands",
            Shape::List(&Shape::Text),
            "in turns, such as `GET user:{n}`",
        ),
        may("host", Shape::Name, "where it runs; its name"),
        may("value_size", SIZE, "of what SET writes; 64B"),
        may(
            "pause",
            DURATION,
            "between an answer and the next request; 0s",
        ),
    ],
};

pub(super) fn read(sink: &mut Sink<'_>, node: &Node) -> Option<RawWorkload> {
    let fields = reader::fields(sink, node, &REDIS)?;
    let server = fields.read("server", |node| reader::name(sink, node, "a host"));
    let port = fields.get("port").map_or(Some(6379), |node| {
        reader::integer(sink, node, "`port`", 1..=65_535)
    });
    let (mut clients, mut hosts) = (Vec::new(), Vec::new());
    for entry in fields
        .read("clients", |node| reader::map(sink, node, "`clients`"))
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
        file: None,
    })
}

fn redis_client(
    sink: &mut Sink<'_>,
    name: &str,
    node: &Node,
) -> Option<(RedisClient, Option<Spanned<String>>)> {
    let fields = reader::fields(sink, node, &CLIENT)?;
    let host = fields.read("host", |node| reader::name(sink, node, "a host"));
    let requests = fields.read("requests", |node| {
        reader::integer(sink, node, "`requests`", 1..=10_000_000)
    });
    let value_bytes = fields
        .get("value_size")
        .map_or(Some(Spanned::new(64, fields.span)), |node| {
            reader::quantity(sink, node, "`value_size`", Dimension::Size)
        });
    if let Some(size) = value_bytes.filter(|size| size.value > 1 << 20) {
        sink.error(Code::OutOfRange, size.span, "a value is at most 1MiB");
    }
    let pause = fields.get("pause").map_or(Some(0), |node| {
        reader::quantity(sink, node, "`pause`", Dimension::Duration).map(|pause| pause.value)
    });
    let mut commands = Vec::new();
    for item in fields
        .read("commands", |node| reader::list(sink, node, "`commands`"))
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
                "a command needs at least one word",
            );
        }
        commands.push(words);
    }
    if let Some(node) = fields.get("commands").filter(|_| commands.is_empty()) {
        sink.error(
            Code::OutOfRange,
            node.span,
            "a client needs at least one command",
        )
        .hint("write for example `[\"GET user:{n}\", \"SET cart:{n}\"]`");
    }
    let client = RedisClient {
        name: name.to_owned(),
        host: host
            .as_ref()
            .map_or_else(|| name.to_owned(), |host| host.value.clone()),
        requests: requests? as u32,
        commands,
        value_bytes: value_bytes?.value.min(u64::from(u32::MAX)) as u32,
        pause_ns: pause?,
    };
    Some((client, host))
}
