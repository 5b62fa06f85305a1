//! Reads the section `probes`: periodic requests whose response times are measured.

use super::reader::{self, Fields};
use super::shape::{Object, Shape, duration, may, needed};
use super::templates::{self, RUN};
use crate::diagnostic::{Code, Sink, Span, Spanned, enumerate_names};
use crate::file::yaml::{Entry, Kind, Node, locate};
use crate::model::probe::{Ask, Endpoint, MAX_PROGRAMS, Probe};

const MAX_PROBES: usize = 32;
const KINDS: [&str; 4] = ["tcp", "udp", "http", "run"];
/// Shortest period of a probe's requests, in nanoseconds; below it, the probe would measure itself.
const SHORTEST_NS: u64 = 1_000_000;
const LONGEST_NS: u64 = 60_000_000_000;
const TIME: Shape = duration(SHORTEST_NS, LONGEST_NS);
/// Maximum number of requests of one probe that wait for an answer at the same time.
const MAX_WAITING: u64 = 1_000;
/// Maximum payload of a UDP request, in bytes, so that it fits into one Ethernet frame.
const MAX_DATAGRAM: usize = 1_472;

pub(super) static PROBE: Object = Object {
    what: "a probe",
    keys: &[
        needed("from", Shape::Name("a host"), "the host that asks"),
        may(
            "tcp",
            Shape::Text,
            "`HOST:PORT`: how long a connection takes",
        ),
        may(
            "udp",
            Shape::Text,
            "`HOST:PORT`: how long an answer to `send` takes",
        ),
        may(
            "http",
            Shape::Text,
            "a URL, `http://HOST/PATH`: how long an answer takes",
        ),
        may(
            "run",
            RUN,
            "a line for the shell, or words: how long the program takes to end with exit code 0",
        ),
        may("send", Shape::Text, "what `udp` sends: text, or `0x…`"),
        may("every", TIME, "from one question to the next").or(100_000_000),
        may("timeout", TIME, "how long it waits for an answer").or(1_000_000_000),
    ],
};

/// A probe as written, with the positions where it names hosts and commands.
#[derive(Debug)]
pub(crate) struct RawProbe {
    pub probe: Probe,
    pub from: Spanned<String>,
    pub hosts: Vec<Spanned<String>>,
    /// Names of the commands whose folders the probe's texts mention, as in `{dir.web}`.
    pub folders: Vec<Spanned<String>>,
    /// Whether a workload file declares the probe; its hosts are then roles.
    pub is_of_file: bool,
}

impl RawProbe {
    /// The probe of a workload file. `host` returns the host that the scenario assigns to a role, which replaces the role.
    pub fn of_file(mut self, file: &str, host: &impl Fn(&str) -> String) -> RawProbe {
        self.probe = self.probe.with_hosts(host);
        self.probe.file = Some(file.to_owned());
        self.is_of_file = true;
        self
    }
}

/// Adds a workload file's probes to those of the scenario.
pub(super) fn add(
    sink: &mut Sink<'_>,
    probes: &mut Vec<RawProbe>,
    of_file: Vec<RawProbe>,
    workload: Span,
) {
    let count = probes.len() + of_file.len();
    if count > MAX_PROBES {
        let message =
            format!("{count} probes with those of its file; a run has at most {MAX_PROBES}");
        sink.error(Code::Capacity, workload, message);
    }
    for probe in of_file {
        let name = &probe.probe.name;
        if let Some(own) = probes.iter().find(|own| own.probe.name == *name) {
            let message = format!("the workload file has a probe `{name}` as well");
            sink.error(Code::Duplicate, own.from.span, message)
                .hint("give one of the two another name");
        }
        probes.push(probe);
    }
}

/// The request that a probe repeats, with the hosts and the folders of commands that it names.
struct Question {
    ask: Ask,
    hosts: Vec<Spanned<String>>,
    folders: Vec<Spanned<String>>,
}

pub(super) fn read(sink: &mut Sink<'_>, node: &Node) -> Vec<RawProbe> {
    let entries: &[Entry] = reader::map(sink, node, "`probes`").unwrap_or_default();
    if let Some(beyond) = entries.get(MAX_PROBES) {
        let message = format!("{} probes; a run has at most {MAX_PROBES}", entries.len());
        sink.error(Code::Capacity, beyond.key_span, message);
        return Vec::new();
    }
    entries
        .iter()
        .filter_map(|entry| probe(sink, entry))
        .collect()
}

fn probe(sink: &mut Sink<'_>, entry: &Entry) -> Option<RawProbe> {
    let is_good = reader::check_name(sink, &entry.key, entry.key_span, "a probe");
    let fields = reader::fields(sink, &entry.value, &PROBE)?;
    let from = fields.name(sink, "from");
    let asked = question(sink, &fields);
    let (every, timeout) = (fields.number(sink, "every"), fields.number(sink, "timeout"));
    let (every_ns, timeout_ns): (u64, u64) = (every?.value, timeout?.value);
    let (most, what) = match fields.get("run") {
        Some(_) => (MAX_PROGRAMS, "programs of this probe could run"),
        None => (MAX_WAITING, "requests of this probe could wait for a reply"),
    };
    let at_once = timeout_ns.div_ceil(every_ns);
    if at_once > most {
        let span = ["timeout", "every"]
            .into_iter()
            .find_map(|key| fields.get(key));
        let span = span.map_or(fields.span, |node| node.span);
        let message = format!("{at_once} {what} at once; at most {most} are allowed");
        sink.error(Code::Capacity, span, message)
            .hint("raise `every`, or lower `timeout`");
    }
    let (from, asked) = (from?, asked?);
    is_good.then(|| RawProbe {
        probe: Probe {
            name: entry.key.clone(),
            from: from.value.clone(),
            file: None,
            ask: asked.ask,
            every_ns,
            timeout_ns,
        },
        from,
        hosts: asked.hosts,
        folders: asked.folders,
        is_of_file: false,
    })
}

fn question(sink: &mut Sink<'_>, fields: &Fields<'_>) -> Option<Question> {
    let declared: Vec<&str> = KINDS
        .into_iter()
        .filter(|kind| fields.get(kind).is_some())
        .collect();
    let [kind] = declared[..] else {
        let message = format!(
            "a probe needs one of {}; found {}",
            enumerate_names(KINDS),
            enumerate_names(declared.iter().copied())
        );
        sink.error(Code::WrongType, fields.span, message)
            .hint("write for example `tcp: s:6379`");
        return None;
    };
    if let (Some(node), true) = (fields.get("send"), kind != "udp") {
        let message = format!("`send` has no effect on a probe with `{kind}`");
        sink.error(Code::OutOfRange, node.span, message)
            .hint("leave `send` out, or write `udp`");
    }
    let node = fields.get(kind)?;
    if kind == "run" {
        let mut reader = templates::Reader::new(sink);
        let run = reader.run(node);
        let templates::Reader { hosts, folders, .. } = reader;
        let ask = Ask::Run(run?);
        return Some(Question {
            ask,
            hosts,
            folders,
        });
    }
    if let (Kind::Number { .. }, "tcp" | "udp") = (&node.kind, kind) {
        let port = reader::written(sink, node);
        let message = format!("`{kind}` must be `HOST:PORT`; found {}", node.describe());
        sink.error(Code::WrongType, node.span, message)
            .hint(format!("write the host as well: `HOST:{port}`"));
        return None;
    }
    let text = fields.text(sink, kind)?;
    let (ask, span) = match kind {
        "http" => http(sink, node, &text.value)?,
        "tcp" => {
            let (to, span) = endpoint(sink, node, &text.value, 0, None)?;
            (Ask::Tcp { to }, span)
        }
        _ => {
            let (to, span) = endpoint(sink, node, &text.value, 0, None)?;
            let send = payload(sink, fields)?;
            (Ask::Udp { to, send }, span)
        }
    };
    let to = ask.to().map(|to| to.host.clone());
    let is_name = |host: &String| host.parse::<std::net::Ipv4Addr>().is_err();
    let named = to.filter(is_name).map(|host| Spanned::new(host, span));
    Some(Question {
        ask,
        hosts: named.into_iter().collect(),
        folders: Vec::new(),
    })
}

fn http(sink: &mut Sink<'_>, node: &Node, url: &str) -> Option<(Ask, Span)> {
    const SCHEME: &str = "http://";
    let Some(rest) = url.strip_prefix(SCHEME) else {
        let diagnostic = sink.error(
            Code::OutOfRange,
            node.span,
            format!("`{url}` is not a URL that a probe can request"),
        );
        diagnostic.hint(match url.starts_with("https://") {
            true => "a probe does not support TLS; write `tcp: HOST:443` to measure the connection setup alone",
            false => "write for example `http://s/index.html`",
        });
        return None;
    };
    let (authority, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, "/"),
    };
    if let Some(wrong) = path.find(|c: char| !c.is_ascii_graphic()) {
        let at = url.len() - path.len() + wrong;
        let file = sink.source().text;
        let span = locate(file, node, at, at + 1);
        sink.error(
            Code::OutOfRange,
            span,
            "this character is not allowed in a URL",
        )
        .hint("write the character as `%` and two hexadecimal digits");
        return None;
    }
    let (to, span) = endpoint(sink, node, authority, SCHEME.len(), Some(80))?;
    let path = path.to_owned();
    Some((Ask::Http { to, path }, span))
}

/// Reads an endpoint `HOST:PORT`, which starts at byte `start` of the node's text.
fn endpoint(
    sink: &mut Sink<'_>,
    node: &Node,
    text: &str,
    at: usize,
    default_port: Option<u16>,
) -> Option<(Endpoint, Span)> {
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, port.parse::<u16>().ok().filter(|port| *port > 0)),
        None => (text, default_port),
    };
    let (Some(port), false) = (port, host.is_empty()) else {
        sink.error(
            Code::OutOfRange,
            node.span,
            format!("`{text}` is not `HOST:PORT`"),
        )
        .hint("write for example `s:6379`");
        return None;
    };
    let file = sink.source().text;
    let span = locate(file, node, at, at + host.len());
    let host = host.to_owned();
    Some((Endpoint { host, port }, span))
}

/// Reads the payload of a UDP request: text, or `0x` and hexadecimal digits.
fn payload(sink: &mut Sink<'_>, fields: &Fields<'_>) -> Option<Vec<u8>> {
    let Some(node) = fields.get("send") else {
        sink.error(Code::MissingKey, fields.span, "`udp` needs the key `send`")
            .hint("write a request that the service answers: text, or bytes as `\"0x01ff\"`");
        return None;
    };
    let text = fields.text(sink, "send")?;
    let bytes = match text.value.strip_prefix("0x") {
        None => text.value.into_bytes(),
        Some(digits) => {
            let Some(bytes) = hexadecimal(digits) else {
                sink.error(
                    Code::OutOfRange,
                    node.span,
                    "`send` must have two hexadecimal digits for each byte",
                )
                .hint("write two digits per byte after `0x`; spaces between them are allowed");
                return None;
            };
            bytes
        }
    };
    if bytes.is_empty() || bytes.len() > MAX_DATAGRAM {
        let message = format!(
            "`send` must have 1 to {MAX_DATAGRAM} bytes; found {}",
            bytes.len()
        );
        sink.error(Code::OutOfRange, node.span, message);
        return None;
    }
    Some(bytes)
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).map(|digit| digit as u8))
        .collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(
        digits
            .chunks_exact(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect(),
    )
}
