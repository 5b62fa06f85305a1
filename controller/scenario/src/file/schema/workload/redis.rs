//! Reads the workload `redis`: a redis-server and its clients.

use super::RawWorkload;
use crate::diagnostic::{Code, Sink, Spanned};
use crate::file::schema::reader;
use crate::file::schema::shape::{DURATION, Object, Shape, may, needed, size};
use crate::file::yaml::Node;
use crate::model::workload::{Redis, RedisClient, Workload};

pub(super) static REDIS: Object = Object {
    what: "`redis`",
    keys: &[
        needed("server", Shape::Name("a host"), "the host of redis-server"),
        needed("clients", Shape::Map(&Shape::Object(&CLIENT)), "by name"),
        may("port", Shape::Integer(1, 65_535), "TCP port of the server").or(6379),
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
        may("host", Shape::Name("a host"), "where it runs; its name"),
        may("value_size", size(0, 1 << 20), "of what SET writes").or(64),
        may("pause", DURATION, "between an answer and the next request").or(0),
    ],
};

pub(super) fn read(sink: &mut Sink<'_>, node: &Node) -> Option<RawWorkload> {
    let fields = reader::fields(sink, node, &REDIS)?;
    let (server, port) = (fields.name(sink, "server"), fields.number(sink, "port"));
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
        port: port?.value,
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
    let host = fields.name(sink, "host");
    let requests = fields.number(sink, "requests");
    let value_bytes = fields.number(sink, "value_size");
    let pause = fields.number(sink, "pause");
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
        requests: requests?.value,
        commands,
        value_bytes: value_bytes?.value,
        pause_ns: pause?.value,
    };
    Some((client, host))
}
